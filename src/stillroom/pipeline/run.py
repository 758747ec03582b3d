"""One startup pass, in the order of the seeds: the only place that knows the order.

Codex: `memories/write/src/start.rs` (spec §1.2). A pass is skipped, with its reason, when the feature is off, when the
session that triggers it is ephemeral, a sub-agent or a memory worker, or when the state database can't be had.
"""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Literal

import msgspec

from stillroom import telemetry
from stillroom.clock import Clock, SystemClock
from stillroom.config import OFFLINE, Settings
from stillroom.consolidate.job import consent
from stillroom.consolidate.outcome import Failed, Phase2Report
from stillroom.consolidate.run import run_phase2
from stillroom.errors import StillroomError, StoreError, WorkspaceError
from stillroom.extract.guard import Guard, GuardDecision, default_guard
from stillroom.extract.register import RegisterReport, register_threads
from stillroom.extract.run import Phase1Report, run_phase1
from stillroom.extract.workers import Worker, begin_for
from stillroom.forecast import Forecast, forecast, may_need_consent, needs_consent
from stillroom.models import Allowance, AllowanceReport, check_model
from stillroom.pausing import paused_since
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.recall.telling.preparing import RecallReport, prepare_recall
from stillroom.recall.usage.counts import UsageReport, count_usage
from stillroom.store import Question, Store
from stillroom.undoing.alone import beside_others
from stillroom.undoing.finishing import finish_if_begun
from stillroom.undoing.projects import obey_switches
from stillroom.workspace.extensions import seed_instructions
from stillroom.workspace.layout import LayoutReport, prepare_folder

SkipReason = Literal[
    "feature_off", "paused", "ephemeral", "sub_agent", "memory_worker", "no_state_db", "taking_back", "not_agreed"
]


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """The session that a pass is started from; without one, a person started it."""

    thread_id: str | None = None
    kind: Literal["root", "sub_agent", "memory_worker"] = "root"
    ephemeral: bool = False


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may ask of a pass beyond the settings."""

    #: No age limit, everything that is finished instead of `max_rollouts_per_startup`, and no pause since the last
    #: consolidation: a person asks, and wants to see it.
    backfill: bool = False
    #: Extract again what the offline engine extracted, all of it at once and however old, and consolidate at once.
    upgrade: bool = False
    #: Try again at once what failed, however often it did and however old it is, all of it; nothing else is extracted.
    retry: bool = False
    #: Take over a memory folder that holds another program's memories; what is in it is kept in the history first.
    adopt: bool = False
    #: At most so many threads.
    max_threads: int | None = None
    #: Only threads that ran in this folder or below it.
    cwd: str | None = None
    #: Only tell what would be done and what it would cost, on a copy of the database: nothing is sent or changed.
    dry_run: bool = False
    #: A person agrees to what the first calls of a model cost, whatever it is.
    agreed: bool = False

    @property
    def take_all(self) -> bool:
        """A person asks for all that there is of something, not for what the start of a session may take."""
        return self.backfill or self.upgrade or self.retry


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """What ended a pass before its last step: the state database or the memory folder could not be used."""

    reason: str
    hint: str | None = None


class PipelineReport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a pass did, and why it did not do the rest."""

    started_at: int  #: seconds
    root: str = ""  #: the memory folder
    skipped: SkipReason | None = None
    detail: str = ""
    #: What a killed command had begun to take back, and this pass finished.
    finished: str | None = None
    folder: LayoutReport | None = None
    threads: RegisterReport | None = None
    usage: UsageReport | None = None
    reopened: int = 0
    #: What failed and is tried again because somebody asked for it: threads, and the consolidation.
    retried: int = 0
    pruned: int = 0
    guard: GuardDecision | None = None
    #: Of a dry run, and of a pass that is to be agreed to.
    forecast: Forecast | None = None
    extract: Phase1Report | None = None
    consolidate: Phase2Report | None = None
    recall: RecallReport | None = None
    #: What was spent on models, where there are any, and whether a cap stopped it.
    spending: AllowanceReport | None = None
    #: What is above was done all the same.
    stopped: Stopped | None = None

    @property
    def failed(self) -> bool:
        """Something was tried and did not work."""
        if self.skipped in ("no_state_db", "not_agreed") or self.stopped:
            return True
        return bool(self.extract and self.extract.failed) or isinstance(self.consolidate, Failed)


async def run_pipeline(
    settings: Settings,
    *,
    trigger: Trigger = Trigger(),
    options: Options = Options(),
    clock: Clock | None = None,
    guard: Guard | None = None,
    workers: Sequence[Worker] = (),
    on_progress: ProgressListener = silent,
) -> PipelineReport:
    """Run one pass and return what came of it; `workers` (`fork_workers`) help where there is much to extract.

    Safe to call at any time and from many processes: leases in the state database keep threads and the consolidation
    single. Cancelling it leaves nothing half done. Raises `ConfigError` for a model that can't be used; everything else
    that can go wrong is in the report.
    """
    clock = clock or SystemClock()
    report = PipelineReport(started_at=clock.now(), root=str(settings.root))
    if reason := _gate(settings, trigger):
        return msgspec.structs.replace(report, skipped=reason)
    if since := paused_since(str(settings.home)):
        return msgspec.structs.replace(report, skipped="paused", detail=f"since {since}")
    for name in {settings.memories.extract_model, settings.memories.consolidation_model}:
        check_model(name, settings)
    try:
        finished = None if options.dry_run else await asyncio.to_thread(finish_if_begun, settings, clock)
    except StoreError as error:
        return msgspec.structs.replace(report, skipped="no_state_db", detail=str(error))
    except (WorkspaceError, OSError) as error:
        return msgspec.structs.replace(report, skipped="taking_back", detail=str(error))
    report = msgspec.structs.replace(report, finished=finished)
    open_store = Store.trial if options.dry_run else Store.open
    with ExitStack() as stack:
        if not stack.enter_context(beside_others(settings.home)):
            return msgspec.structs.replace(report, skipped="taking_back")
        try:
            opening = partial(open_store, settings.database, clock=clock, limits=settings.database_limits)
            store = await asyncio.to_thread(lambda: stack.enter_context(opening()))
        except StoreError as error:
            detail = f"{error}" + (f" ({error.hint})" if error.hint else "")
            return msgspec.structs.replace(report, skipped="no_state_db", detail=detail)
        work = _Pass(
            settings=settings,
            store=store,
            clock=clock,
            trigger=trigger,
            options=options,
            guard=guard or default_guard(settings, store, clock),
            worker_id=trigger.thread_id or f"stillroom-{os.getpid()}-{uuid.uuid4().hex[:8]}",
            workers=workers,
            on_progress=on_progress,
        )
        report = await work.run(report)
        if options.dry_run:
            return report
        try:
            await asyncio.to_thread(store.ledger.record_pass, report.started_at, encode_report(report).encode())
        except StoreError as error:
            report = _stopped(report, error)
    return report


class _Pass(msgspec.Struct, frozen=True, kw_only=True):
    """One pass, with all that its steps need."""

    settings: Settings
    store: Store
    clock: Clock
    trigger: Trigger
    options: Options
    guard: Guard
    worker_id: str
    workers: Sequence[Worker]
    on_progress: ProgressListener

    async def run(self, report: PipelineReport) -> PipelineReport:
        """The steps in their order. An error of the database or the folder ends them, and is in the report."""
        settings, store, options = self.settings, self.store, self.options
        put: Callable[..., PipelineReport] = msgspec.structs.replace
        try:
            # 0. Learn which threads there are; what the trigger is may only be known now.
            threads = await register_threads(settings, store, on_progress=self.on_progress)
            report = put(report, threads=threads)
            begin_for(threads.found, self.workers)  # what is new is likely to be extracted; they get ready meanwhile
            if reason := await _gate_source(store, self.trigger):
                return put(report, skipped=reason)
            await asyncio.to_thread(obey_switches, settings, store)
            if not options.dry_run:
                # Of every session, however old: what they used decides what the next consolidation rests on.
                report = put(report, usage=await self._count_usage())
            # Before anything is changed or paid for: another program's memories are not ours to replace.
            await asyncio.to_thread(consent, settings, store, adopt=options.adopt)
            if options.dry_run:
                report = await self._taken_up(store, put(report, guard=await asyncio.to_thread(self.guard)))
                return put(report, forecast=await self._forecast(store))
            if too_much := await self._costs_too_much(report):
                return put(report, skipped="not_agreed", forecast=too_much)
            report = await self._taken_up(store, report)
            # 1. Create the memory folder: no links followed, none left.
            report = put(report, folder=await asyncio.to_thread(prepare_folder, settings.root))
            # 2. Seed the extension instructions; a person's edit of them survives.
            await asyncio.to_thread(seed_instructions, settings.root)
            # 3. Prune stale, unused outputs: free, therefore ahead of the guard.
            report = put(report, pruned=await asyncio.to_thread(self._prune))
            # 4. Leave a person's quota alone.
            report = put(report, guard=(decision := await asyncio.to_thread(self.guard)))
            if not decision.allowed:
                telemetry.count("memory.startup", status="skipped_rate_limit")
                return report
            # 5. Extract, within what may be spent.
            allowance = Allowance(
                settings.memories,
                spent_since=store.ledger.spent_since,
                clock=self.clock,
                paused_since=self._paused_since,  # a person may not want to wait until a backfill ends
            )
            extracted = await self._extract(allowance)
            report = put(report, extract=extracted, spending=await _spending(settings, allowance))
            if since := self._paused_since():
                return put(report, stopped=Stopped(reason=f"passes are paused since {since}", hint="stillroom resume"))
            # 6. Consolidate.
            consolidated = await self._consolidate(allowance)
            report = put(report, consolidate=consolidated, spending=await _spending(settings, allowance))
            # 7. Have ready what the next session is told.
            return put(report, recall=await asyncio.to_thread(prepare_recall, settings, store, self.clock))
        except (StoreError, WorkspaceError, OSError) as error:
            return _stopped(report, error)

    def _paused_since(self) -> str | None:
        return paused_since(str(self.settings.home))

    async def _count_usage(self) -> UsageReport:
        listen = _from_thread(self.on_progress)
        return await asyncio.to_thread(count_usage, self.settings, self.store, self.clock, on_progress=listen)

    async def _taken_up(self, store: Store, report: PipelineReport) -> PipelineReport:
        """What a person wants done again is to be done again."""
        if self.options.upgrade:
            report = msgspec.structs.replace(report, reopened=await asyncio.to_thread(store.extraction.reopen_offline))
        if self.options.retry:
            report = msgspec.structs.replace(report, retried=await asyncio.to_thread(store.jobs.retry_failed))
        return report

    async def _forecast(self, store: Store) -> Forecast:
        options = self.options
        question = Question(
            memories=self.settings.memories,
            stage=self.settings.stage_one,
            now_ms=self.clock.now_ms(),
            current_thread_id=self.trigger.thread_id,
            cwd=options.cwd,
            backfill=options.backfill,
            upgrade=options.upgrade,
            retry=options.retry,
            max_threads=options.max_threads,
        )
        listen = _from_thread(self.on_progress)
        return await asyncio.to_thread(forecast, self.settings, store, question, on_progress=listen)

    async def _costs_too_much(self, report: PipelineReport) -> Forecast | None:
        """What a person should not learn from the bill: the first calls of a model would cost more than they said."""
        settings = self.settings
        if self.options.agreed or not await asyncio.to_thread(may_need_consent, settings, self.store):
            return None
        # On a copy: who does not agree has changed nothing, and the next pass takes nothing up again.
        with ExitStack() as stack:
            trial = partial(Store.trial, settings.database, clock=self.clock, limits=settings.database_limits)
            copy = await asyncio.to_thread(lambda: stack.enter_context(trial()))
            await self._taken_up(copy, report)
            expected = await self._forecast(copy)
        return expected if needs_consent(expected, settings) else None

    def _prune(self) -> int:
        days, batch = self.settings.memories.max_unused_days, self.settings.stage_one.retention_batch
        return self.store.outputs.prune(max_unused_days=days, limit=batch)

    async def _extract(self, allowance: Allowance) -> Phase1Report:
        options = self.options
        return await run_phase1(
            self.settings,
            self.store,
            self.clock,
            worker_id=self.worker_id,
            current_thread_id=self.trigger.thread_id,
            backfill=options.backfill,
            upgrade=options.upgrade,
            retry=options.retry,
            max_threads=options.max_threads,
            cwd=options.cwd,
            allowance=allowance,
            workers=self.workers,
            on_progress=self.on_progress,
        )

    async def _consolidate(self, allowance: Allowance) -> Phase2Report:
        options = self.options
        return await run_phase2(
            _without_pause(self.settings) if options.take_all else self.settings,
            self.store,
            self.clock,
            worker_id=self.worker_id,
            adopt=options.adopt,
            allowance=allowance,
            on_progress=self.on_progress,
        )


def _from_thread(listener: ProgressListener) -> ProgressListener:
    """The same for work in another thread."""
    loop = asyncio.get_running_loop()

    def listen(progress: Progress) -> None:
        loop.call_soon_threadsafe(listener, progress)

    return listen


async def _spending(settings: Settings, allowance: Allowance) -> AllowanceReport | None:
    """Nothing to tell where both phases are done by rules."""
    if {settings.memories.extract_model, settings.memories.consolidation_model} == {OFFLINE}:
        return None
    return await asyncio.to_thread(allowance.report)


def _without_pause(settings: Settings) -> Settings:
    stage = msgspec.structs.replace(settings.stage_two, success_cooldown_seconds=0)
    return msgspec.structs.replace(settings, stage_two=stage)


def _stopped(report: PipelineReport, error: StillroomError | OSError) -> PipelineReport:
    """The first error is the one that counts; what could not be written because of it follows from it."""
    stopped = report.stopped or Stopped(
        reason=str(error), hint=error.hint if isinstance(error, StillroomError) else None
    )
    return msgspec.structs.replace(report, stopped=stopped)


def _gate(settings: Settings, trigger: Trigger) -> SkipReason | None:
    if not settings.memories.enabled:
        return "feature_off"
    if trigger.ephemeral:
        return "ephemeral"
    return None if trigger.kind == "root" else trigger.kind


async def _gate_source(store: Store, trigger: Trigger) -> SkipReason | None:
    """A thread's own record says whether it is a sub-agent (`{"subagent":…}`) or a worker (`{"internal":…}`)."""
    thread = await asyncio.to_thread(store.threads.get, trigger.thread_id) if trigger.thread_id else None
    if thread is None:
        return None
    if "internal" in thread.source:
        return "memory_worker"
    return "sub_agent" if "subagent" in thread.source else None


def encode_report(report: PipelineReport) -> str:
    """The report as JSON: the shape of `stillroom run --json`. Bytes that are no UTF-8 are `\\udc80` and up."""
    try:
        return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(report), indent=2)


__all__ = ["Options", "PipelineReport", "Stopped", "Trigger", "encode_report", "run_pipeline"]
