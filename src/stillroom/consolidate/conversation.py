"""The agent's loop by Pydantic AI: its tools bound to the jail's worker, and the ends that it doesn't choose itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic_ai import Agent, Tool, exceptions
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RunUsage, UsageLimits

from stillroom.config import Effort, StageTwo
from stillroom.consolidate.agent import AgentCompleted, AgentFailed, AgentOutcome, AgentStopped, StopKind
from stillroom.consolidate.history import keep_within
from stillroom.consolidate.prompt import AgentPrompt, corrections_prompt
from stillroom.consolidate.tools import TOOLS
from stillroom.errors import ModelError, SpendingCapped
from stillroom.sandbox import ToolResult, Worker
from stillroom.spending import Usage

_MAX_SAID_CHARS = 2000
_NO_TOOLS = "the model called none of its tools: `consolidation_model` takes one that can, or `offline`"


class _Stop(Exception):
    """A tool call that must not be answered: the run is over."""

    def __init__(self, kind: StopKind, reason: str) -> None:
        super().__init__(reason)
        self.outcome = AgentStopped(kind=kind, reason=reason)


class Conversation:
    """One run: what was asked, what was called, and when it last got anywhere."""

    def __init__(
        self,
        model: Model,
        worker: Worker,
        folder: Path,
        *,
        limits: StageTwo,
        concurrency: int,
        check: Callable[[Path], Sequence[str]] | None,
    ) -> None:
        self._model = model
        self._worker = worker
        self._folder = folder
        self._limits = limits
        self._check = check
        self._spent = RunUsage()
        # How many calls are taken up at once, of those that the model asked for together.
        self._turns = asyncio.Semaphore(concurrency)
        self._changed_at = 0
        self._same: dict[str, int] = {}
        self.tool_calls = 0

    @property
    def requests(self) -> int:
        return self._spent.requests

    @property
    def usage(self) -> Usage:
        return Usage(
            input_tokens=self._spent.input_tokens,
            cached_input_tokens=self._spent.cache_read_tokens,
            cache_write_tokens=self._spent.cache_write_tokens,
            output_tokens=self._spent.output_tokens,
            reasoning_tokens=self._spent.details.get("reasoning_tokens", 0),
        )

    async def run(self, prompt: AgentPrompt, *, effort: Effort, reply_tokens: int | None) -> AgentOutcome:
        """Talk until the agent is done and `check` finds nothing, or a limit is met. Raises `JailError`."""
        limits = self._limits
        settings = ModelSettings(thinking=effort)
        if reply_tokens is not None:
            settings["max_tokens"] = reply_tokens

        def within_room(messages: list[ModelMessage]) -> list[ModelMessage]:
            return keep_within(messages, max_bytes=limits.max_conversation_bytes)

        agent = Agent(
            self._model,
            instructions=prompt.instructions,
            tools=[self._tool(name) for name in self._worker.tools],
            retries={"tools": limits.max_invalid_calls, "output": limits.max_invalid_calls},
            model_settings=settings,
            capabilities=[ProcessHistory(within_room)],
        )
        try:
            return await self._talk(agent, prompt.task)
        except _Stop as stop:
            return stop.outcome
        except exceptions.UsageLimitExceeded as error:
            kind: StopKind = "requests" if self._spent.requests >= limits.max_requests else "tokens"
            return AgentStopped(kind=kind, reason=str(error)[:_MAX_SAID_CHARS])
        except SpendingCapped as capped:
            return AgentStopped(kind="spending", reason=str(capped))
        except (exceptions.AgentRunError, exceptions.UserError, ModelError) as error:
            return AgentFailed(reason=f"{type(error).__name__}: {error}"[:_MAX_SAID_CHARS])

    async def _talk(self, agent: Agent[None, str], task: str) -> AgentOutcome:
        limits = UsageLimits(request_limit=self._limits.max_requests, total_tokens_limit=self._limits.max_total_tokens)
        history: list[ModelMessage] = []
        corrections = 0
        while True:
            result = await agent.run(task, message_history=history, usage=self._spent, usage_limits=limits)
            findings = tuple(await asyncio.to_thread(self._check, self._folder)) if self._check is not None else ()
            if not findings or corrections == self._limits.max_corrections:
                return AgentCompleted(said=result.output[:_MAX_SAID_CHARS], findings=findings)
            if corrections and not self.tool_calls:  # told what is missing, it still only talks
                return AgentFailed(reason=_NO_TOOLS)
            corrections += 1
            task, history = corrections_prompt(findings), result.all_messages()

    def _tool(self, name: str) -> Tool[None]:
        text = TOOLS[name]

        async def call(**arguments: object) -> str:
            async with self._turns:
                return await self._call(name, arguments)

        return Tool.from_schema(call, name, text.description, text.schema())

    async def _call(self, name: str, arguments: dict[str, object]) -> str:
        self.tool_calls += 1
        if self.tool_calls > self._limits.max_tool_calls:
            raise _Stop("tool_calls", f"more than {self._limits.max_tool_calls:,} tool calls")
        result = await self._worker.call(name, arguments)
        text = result.text + self._progress(name, arguments, result)
        if not result.ok:
            raise exceptions.ToolFailed(text)
        return text

    def _progress(self, name: str, arguments: dict[str, object], result: ToolResult) -> str:
        """Whether the run still gets anywhere: a remark for the model when it doesn't, the end when it won't."""
        if result.changed:
            self._changed_at = self._spent.requests
            self._same.clear()
            return ""
        idle = self._spent.requests - self._changed_at
        if idle >= self._limits.max_requests_without_progress:
            raise _Stop("no_progress", f"{idle:,} requests without a change in the folder")
        key = json.dumps([name, arguments, result.text], sort_keys=True, default=repr)
        count = self._same[key] = self._same.get(key, 0) + 1
        if count >= self._limits.max_identical_calls:
            raise _Stop("repeated_calls", f"`{name}` was called {count} times in the same way with the same answer")
        if count > self._limits.max_identical_calls // 2:
            return f"\n[the same call had the same answer {count - 1} times before; the run ends if it goes on]"
        return ""
