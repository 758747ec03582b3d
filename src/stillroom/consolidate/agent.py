"""Runs the consolidation agent over one staging folder and tells how it ended.

The agent has six tools, all of them run by the worker in the jail, and nothing else: no approval to ask for, no other
agents, no memory of its own, no network.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from stillroom import telemetry
from stillroom.config import Effort, StageTwo
from stillroom.consolidate.prompt import AgentPrompt
from stillroom.consolidate.room import within
from stillroom.errors import JailError
from stillroom.sandbox import Jail, JailLimits, Level
from stillroom.spending import Usage

if TYPE_CHECKING:
    from pydantic_ai.models import Model

StopKind = Literal["requests", "tool_calls", "tokens", "spending", "time", "no_progress", "repeated_calls"]


class AgentCompleted(msgspec.Struct, frozen=True, kw_only=True, tag_field="ended", tag="completed"):
    """The agent said that it is done."""

    #: Its last words; for the log, not for a model.
    said: str
    #: What `check` still found after the last correction.
    findings: tuple[str, ...] = ()


class AgentStopped(msgspec.Struct, frozen=True, kw_only=True, tag_field="ended", tag="stopped"):
    """A limit ended it. The folder holds unfinished work."""

    kind: StopKind
    reason: str


class AgentFailed(msgspec.Struct, frozen=True, kw_only=True, tag_field="ended", tag="failed"):
    """The model or the jail failed. The folder holds unfinished work."""

    reason: str


AgentOutcome = AgentCompleted | AgentStopped | AgentFailed


class AgentReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended and what it took."""

    outcome: AgentOutcome
    jail: Level
    #: False: its tools did not come up, and nothing was asked.
    started: bool = True
    requests: int = 0
    tool_calls: int = 0
    usage: Usage = Usage()
    seconds: float = 0.0


async def run_agent(
    model: Model,
    folder: Path,
    jail: Jail,
    *,
    prompt: AgentPrompt,
    effort: Effort,
    limits: StageTwo,
    concurrency: int = 1,
    context_window: int | None = None,
    reply_tokens: int | None = None,
    check: Callable[[Path], Sequence[str]] | None = None,
) -> AgentReport:
    """Let the agent work on `folder` until it is done, stopped by a limit, or broken. None of these is an exception.

    Args:
        concurrency: Tool calls taken up at once. The worker answers them in turn all the same.
        context_window: Tokens; old tool answers are dropped from the conversation in time.
        reply_tokens: One answer at most; None: as the provider likes.
        check: What is wrong with the folder when the agent says that it is done. It is told, and goes on, a few times.

    Cancelling it ends everything in the jail before the cancellation goes on.
    """
    from stillroom.consolidate.conversation import Conversation  # imports Pydantic AI, which takes a second

    started = time.perf_counter()
    limits = within(limits, context_window, prompt, reply_tokens=reply_tokens)
    conversation: Conversation | None = None
    outcome: AgentOutcome
    try:
        async with asyncio.timeout(limits.max_run_seconds):
            async with await jail.start(folder, limits=JailLimits.of(limits)) as worker:
                telemetry.count("memory.phase2", status="agent_spawned")
                conversation = Conversation(model, worker, folder, limits=limits, concurrency=concurrency, check=check)
                outcome = await conversation.run(prompt, effort=effort, reply_tokens=reply_tokens)
    except TimeoutError:
        outcome = AgentStopped(kind="time", reason=f"not done after {limits.max_run_seconds:,} s")
    except JailError as error:
        outcome = AgentFailed(reason=str(error))
    if conversation is None:
        return AgentReport(outcome=outcome, jail=jail.level, started=False, seconds=time.perf_counter() - started)
    return AgentReport(
        outcome=outcome,
        jail=jail.level,
        requests=conversation.requests,
        tool_calls=conversation.tool_calls,
        usage=conversation.usage,
        seconds=time.perf_counter() - started,
    )
