"""Who consolidates: the offline engine, or an agent in a jail. Both rewrite the staging folder in place.

Each imports what it needs when it is used: a pass without news should not wait for either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stillroom import telemetry
from stillroom.clock import Clock
from stillroom.config import OFFLINE, Settings
from stillroom.errors import ConfigError, StillroomError, WorkspaceError
from stillroom.models import Allowance, RateLimitSink, open_agent_model
from stillroom.rollouts.redact import redact
from stillroom.spending import Usage
from stillroom.store import Store
from stillroom.store.records import Stage1Output

if TYPE_CHECKING:
    from stillroom.sandbox import Jail

Check = Callable[[Path], Sequence[str]]


class ConsolidatorStopped(StillroomError):
    """The agent did not come to an end of its own; the message says what ended it."""


class ConsolidatorNotStarted(ConsolidatorStopped):
    """There was no agent: its model could not be opened, or its tools did not come up."""


class Consolidator(Protocol):
    """Brings `MEMORY.md`, `memory_summary.md` and `skills/` of a staging folder up to date."""

    engine: str
    #: Which words a model is sent; None: there is no model.
    prompt: str | None
    jail: str | None
    #: What `run` spent, known when it ends; None: no model was called.
    usage: Usage | None
    #: What a person should know of how the model was asked, known when `run` ends.
    notes: tuple[str, ...]

    async def run(self, folder: Path, inputs: Sequence[Stage1Output], *, check: Check) -> None:
        """`check` says what is still wrong with the folder, for who can mend it.

        Raises `StillroomError`; the folder is then thrown away.
        """
        ...


def open_consolidator(
    settings: Settings, store: Store, clock: Clock, *, allowance: Allowance | None = None
) -> Consolidator:
    """The consolidator that the settings name. Raises `ConfigError` or `JailUnavailable`; starts nothing yet."""
    if settings.memories.consolidation_model == OFFLINE:
        return RulesConsolidator(settings, clock)
    from stillroom.sandbox import choose

    return AgentConsolidator(settings, store, clock, jail=choose(settings.memories.jail), allowance=allowance)


class RulesConsolidator:
    """The offline engine."""

    engine = OFFLINE
    prompt: str | None = None
    jail: str | None = None
    usage: Usage | None = None
    notes: tuple[str, ...] = ()

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._limits = settings.stage_two
        self._clock = clock

    async def run(self, folder: Path, inputs: Sequence[Stage1Output], *, check: Check) -> None:
        from stillroom.offline import consolidate

        await asyncio.to_thread(consolidate, folder, inputs, now=self._clock.now(), limits=self._limits)


class AgentConsolidator:
    """One agent whose tools run in a jail."""

    def __init__(
        self, settings: Settings, store: Store, clock: Clock, *, jail: Jail, allowance: Allowance | None
    ) -> None:
        self.engine = settings.memories.consolidation_model
        self.prompt: str | None = None
        self.jail: str | None = jail.level
        self.usage: Usage | None = None
        self.notes: tuple[str, ...] = ()
        self._settings, self._store, self._clock, self._jail = settings, store, clock, jail
        self._allowance = allowance

    async def run(self, folder: Path, inputs: Sequence[Stage1Output], *, check: Check) -> None:
        from stillroom.consolidate.agent import AgentCompleted, run_agent
        from stillroom.consolidate.prompt import prompt_version, render_prompt
        from stillroom.models.prices import context_window_of, reply_tokens_of
        from stillroom.workspace.citations import fill_citations

        self.prompt = prompt_version()
        memories = self._settings.memories

        def filled_and_checked(folder: Path) -> Sequence[str]:
            try:
                fill_citations(folder, limits=self._settings.stage_two)
            except (WorkspaceError, OSError):  # what keeps the folder from being read is told by the check
                pass
            return check(folder)

        limits = RateLimitSink()
        try:
            model = await asyncio.to_thread(
                open_agent_model,
                self.engine,
                self._settings,
                ledger=self._store.ledger,
                clock=self._clock,
                redact=lambda text: redact(text, style=memories.redaction),
                rate_limits=limits,
                allowance=self._allowance,
            )
        except ConfigError as error:  # it could be opened when the pass began
            raise ConsolidatorNotStarted(str(error), hint=error.hint) from error
        try:
            reply_tokens = reply_tokens_of(self.engine, self._settings)
            async with model:  # its connections end with the run
                report = await run_agent(
                    model,
                    folder,
                    self._jail,
                    prompt=render_prompt(folder, limits=self._settings.stage_two, reply_tokens=reply_tokens),
                    effort=memories.consolidation_effort,
                    limits=self._settings.stage_two,
                    concurrency=memories.consolidation_concurrency,
                    context_window=await asyncio.to_thread(context_window_of, self.engine, self._settings),
                    reply_tokens=reply_tokens,
                    check=filled_and_checked,
                )
        finally:
            self.notes = model.notes
            if (snapshot := limits.snapshot_json()) is not None:  # for the guard of the next pass
                provider = self.engine.partition(":")[0]
                await asyncio.to_thread(self._store.ledger.save_rate_limits, provider, snapshot, self._clock.now())
        self.usage = report.usage
        if not isinstance(report.outcome, AgentCompleted):
            stopped = ConsolidatorStopped if report.started else ConsolidatorNotStarted
            raise stopped(report.outcome.reason)
        for token_type, tokens in report.usage.by_type():
            telemetry.record("memory.phase2.token_usage", tokens, token_type=token_type)
