"""Pydantic AI: a capability of an agent, or of one run.

    recording = Recording(Recorder("shop-assistant"))
    agent = Agent("openai:gpt-6", capabilities=[recording])
    await agent.run("…")

Every message of a run is recorded once it stands in the run's history: prompts, answers, calls of tools, their results,
and what each request used. A history that is handed in is not recorded again; instructions never are. An agent that is
run inside of a tool has its own capability, with `recorder.child(…)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from stillroom.budget.adapters.pydantic_ai import usage_of
from stillroom.recording.adapters.writing import Writing
from stillroom.recording.recorder import Recorder
from stillroom.sessions.agents.pydantic_ai import Records
from stillroom.sessions.stats import ReadStats

try:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.capabilities.abstract import AgentNode, NodeResult
    from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
except ImportError as error:
    raise ImportError("Pydantic AI is missing: pip install 'stillroom[pydantic-ai]'") from error


class _Live(Records):
    """Nothing comes twice here, and some models give all of their calls one id."""

    def is_new(self, key: str) -> bool:
        return True


@dataclass
class Recording(AbstractCapability[Any]):
    """Records the runs of an agent in one thread. Runs may overlap."""

    recorder: Recorder
    _writing: Writing = field(init=False, repr=False)
    #: Messages of the run at hand that are recorded.
    _recorded: int = field(init=False, repr=False, default=0)

    def __post_init__(self) -> None:
        self._writing = Writing(self.recorder, _Live(ReadStats()))

    async def for_run(self, ctx: RunContext[Any]) -> Recording:
        """One of its own for each run, which counts that run's messages."""
        return type(self)(self.recorder)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        await self._record(ctx.run_id, ctx.messages)
        return request_context

    async def after_node_run(
        self, ctx: RunContext[Any], *, node: AgentNode[Any], result: NodeResult[Any]
    ) -> NodeResult[Any]:
        await self._record(ctx.run_id, ctx.messages)
        return result

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        await self._record(ctx.run_id, result.all_messages())
        return result

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        await self._record(ctx.run_id, ctx.messages)
        raise error

    async def _record(self, run_id: str | None, messages: Sequence[ModelMessage]) -> None:
        own = [message for message in messages if message.run_id == run_id]
        new, self._recorded = own[self._recorded :], max(self._recorded, len(own))
        if new:
            used = [usage_of(message.usage) for message in new if isinstance(message, ModelResponse)]
            await self._writing.write([ModelMessagesTypeAdapter.dump_json(new)], used)
