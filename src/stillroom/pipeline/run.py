"""One startup pass, in the order of the seeds: the only place that knows the order.

Codex: `memories/write/src/start.rs` (spec §1.2). A pass is skipped, with its reason, when the feature is off, when the
session that triggers it is ephemeral, a sub-agent or a memory worker, or when the state database can't be had.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import msgspec

from stillroom import telemetry
from stillroom.clock import Clock, SystemClock
from stillroom.config import OFFLINE, Settings
from stillroom.consolidate.job import consent
from stillroom.consolidate.outcome import Phase2Report
from stillroom.consolidate.run import run_phase2
from stillroom.ending import ended_sessions
from stillroom.errors import StoreError, WorkspaceError
from stillroom.extract.guard import Guard, default_guard
from stillroom.extract.prompt import prompt_version
from stillroom.extract.register import register_threads
from stillroom.extract.run import Phase1Report, run_phase1
from stillroom.forecast import Forecast, forecast, may_need_consent, needs_consent
from stillroom.models import Allowance, AllowanceReport, check_model
from stillroom.pausing import paused_since, told_pause
from stillroom.pipeline.asked import Options, Trigger
from stillroom.pipeline.gates import gate, gate_source
from stillroom.pipeline.report import PipelineReport, Stopped, encode_report, stopped_by
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.recall.injection.folders import learn_folders, origins_of
from stillroom.recall.injection.preparing import prepare_recall
from stillroom.recall.usage.counts import UsageReport, count_usage
from stillroom.recall.usage.given import count_given
from stillroom.store import Question, Store
from stillroom.store.records import Leaving
from stillroom.undoing.alone import beside_others
from stillroom.undoing.finishing import finish_if_begun
from stillroom.undoing.projects import obey_switches
from stillroom.wording import plain
from stillroom.workspace.extensions import seed_instructions
from stillroom.workspace.layout import prepare_folder


async def run_pipeline(
    settings: Settings,
    *,
    trigger: Trigger = Trigger(),
    options: Options = Options(),
    clock: Clock | None = None,
    guard: Guard | None = None,
    on_progress: ProgressListener = silent,
) -> PipelineReport:
    """Run one pass and return what came of it.

    Safe to call at any time and from many processes: leases in the state database keep threads and the consolidation
    single. Cancelling it leaves nothing half done. Raises `ConfigError` for a model that can't be used; everything else
    that can go wrong is in the report.
    """
    clock = clock or SystemClock()
    report = PipelineReport(started_at=clock.now(), root=str(settings.root))
    if reason := gate(settings, trigger):
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
            report=report,
            settings=settings,
            store=store,
            clock=clock,
            trigger=trigger,
            options=options,
            guard=guard or default_guard(settings, store, clock),
            worker_id=trigger.thread_id or f"stillroom-{os.getpid()}-{uuid.uuid4().hex[:8]}",
            on_progress=on_progress,
        )
        report = await work.run()
        if options.dry_run:
            return report
        try:
            await asyncio.to_thread(store.ledger.record_pass, report.started_at, encode_report(report).encode())
        except StoreError as error:
            report = stopped_by(report, error)
    return report


class _Pass(msgspec.Struct, kw_only=True):
    """One pass, with all that its steps need, and what they found so far."""

    report: PipelineReport
    settings: Settings
    store: Store
    clock: Clock
    trigger: Trigger
    options: Options
    guard: Guard
    worker_id: str
    on_progress: ProgressListener
    #: Those that were asked for; empty: all.
    sessions: frozenset[str] = frozenset()

    async def run(self) -> PipelineReport:
        """The steps in their order. An error of the database or the folder ends them, and is in the report."""
        try:
            await self._steps()
        except (StoreError, WorkspaceError, OSError) as error:
            self.report = stopped_by(self.report, error)
        return self.report

    async def _steps(self) -> None:
        settings, store = self.settings, self.store
        # 0. Look, and ask: the folder is as it was, and nothing is paid for.
        if not await self._may_go_on():
            return
        reopened, retried = await self._take_up(store)
        self._put(reopened=reopened, retried=retried)
        # 1. Create the memory folder: no links followed, none left.
        self._put(folder=await asyncio.to_thread(prepare_folder, settings.root))
        # 2. Seed the extension instructions; a person's edit of them survives.
        await asyncio.to_thread(seed_instructions, settings.root)
        # 3. Prune stale, unused outputs: free, therefore ahead of the guard.
        self._put(expired=await asyncio.to_thread(self._prune))
        # 4. Leave a person's quota alone.
        self._put(guard=(decision := await asyncio.to_thread(self.guard)))
        if not decision.allowed:
            telemetry.count("memory.startup", status="skipped_rate_limit")
            return
        # 5. Extract, within what may be spent.
        allowance = Allowance(
            settings.memories,
            spent_since=store.ledger.spent_since,
            clock=self.clock,
            paused_since=self._paused_since,  # a person may not want to wait until a backfill ends
        )
        self._put(extract=await self._extract(allowance), spending=await _spending(settings, allowance))
        if since := self._paused_since():
            self._put(stopped=Stopped(reason=told_pause(since), hint="stillroom resume"))
            return
        # 6. Consolidate.
        # Which folders are one project is learnt ahead of it: their sessions belong together.
        known = await asyncio.to_thread(learn_folders, settings, store, self.clock)
        self._put(consolidate=await self._consolidate(allowance), spending=await _spending(settings, allowance))
        # 7. Have ready what the next session is told.
        self._put(recall=await asyncio.to_thread(prepare_recall, settings, store, self.clock, known=known))

    def _put(self, **found: object) -> None:
        change: Callable[..., PipelineReport] = msgspec.structs.replace
        self.report = change(self.report, **found)

    async def _may_go_on(self) -> bool:
        """Learn which threads there are and what they used. A dry run ends here, with all that it tells."""
        settings, store, options = self.settings, self.store, self.options
        threads = await register_threads(settings, store, on_progress=self.on_progress)
        self._put(threads=threads)
        await asyncio.to_thread(store.threads.end, ended_sessions(str(settings.home)))
        self.sessions = await asyncio.to_thread(self._find_sessions)
        if reason := await gate_source(store, self.trigger):  # what the trigger is may only be known now
            self._put(skipped=reason)
            return False
        await asyncio.to_thread(obey_switches, settings, store)
        if not options.dry_run:
            # Of every session, however old: what they used decides what the next consolidation rests on.
            self._put(usage=await self._count_usage())
            self._put(given=await asyncio.to_thread(count_given, settings, store, self.clock))
        # Before anything is changed or paid for: another program's memories are not ours to replace.
        await asyncio.to_thread(consent, settings, store, adopt=options.adopt)
        if options.dry_run:
            self._put(guard=await asyncio.to_thread(self.guard))
            reopened, retried = await self._take_up(store)
            self._put(reopened=reopened, retried=retried, forecast=await self._forecast(store))
            return False
        if too_much := await self._costs_too_much():
            self._put(skipped="not_agreed", forecast=too_much)
            return False
        return True

    def _find_sessions(self) -> frozenset[str]:
        """The sessions that were asked for, now that all are known. Raises `StoreError`."""
        return frozenset(_session(self.store, name) for name in self.options.sessions)

    def _paused_since(self) -> str | None:
        return paused_since(str(self.settings.home))

    async def _count_usage(self) -> UsageReport:
        listen = _from_thread(self.on_progress)
        return await asyncio.to_thread(count_usage, self.settings, self.store, self.clock, on_progress=listen)

    async def _take_up(self, store: Store) -> tuple[int, int]:
        """Have done again what a person wants done again: so many extracted sessions, so many failures."""
        reopened = await asyncio.to_thread(store.extraction.reopen_offline) if self.options.upgrade else 0
        if self.options.again:
            memories = self.settings.memories
            reopen = partial(store.extraction.reopen, engine=memories.extract_model, sessions=self.sessions)
            words = (
                None
                if memories.extract_model == OFFLINE
                else prompt_version(memories.extraction_input, memories.extraction_output)
            )
            reopened += await asyncio.to_thread(partial(reopen, prompt=words))
        retried = await asyncio.to_thread(store.jobs.retry_failed) if self.options.retry else 0
        if self.sessions:
            reopened += await asyncio.to_thread(store.extraction.reopen_expired, self.sessions)
        return reopened, retried

    async def _forecast(self, store: Store) -> Forecast:
        options = self.options
        question = Question(
            memories=self.settings.memories,
            stage=self.settings.stage_one,
            now_ms=self.clock.now_ms(),
            current_thread_id=self.trigger.thread_id,
            cwd=options.cwd,
            backfill=options.backfill,
            upgrade=options.reopens,
            retry=options.retry,
            max_threads=options.max_threads,
            sessions=self.sessions,
        )
        listen = _from_thread(self.on_progress)
        return await asyncio.to_thread(forecast, self.settings, store, question, on_progress=listen)

    async def _costs_too_much(self) -> Forecast | None:
        """What a person should not learn from the bill: the first calls of a model would cost more than they said."""
        settings, again = self.settings, self.options.again
        if self.options.agreed:
            return None
        if not again and not await asyncio.to_thread(may_need_consent, settings, self.store):
            return None
        # On a copy: who does not agree has changed nothing, and the next pass takes nothing up again.
        with ExitStack() as stack:
            trial = partial(Store.trial, settings.database, clock=self.clock, limits=settings.database_limits)
            copy = await asyncio.to_thread(lambda: stack.enter_context(trial()))
            await self._take_up(copy)
            expected = await self._forecast(copy)
        return expected if needs_consent(expected, settings, always=again) else None

    def _prune(self) -> tuple[Leaving, ...]:
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
            upgrade=options.reopens,
            retry=options.retry,
            max_threads=options.max_threads,
            cwd=options.cwd,
            sessions=self.sessions,
            allowance=allowance,
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
            origins=partial(origins_of, self.settings, self.store),
            on_progress=self.on_progress,
        )


def _session(store: Store, name: str) -> str:
    """The one session whose id begins so."""
    found = store.threads.beginning(name, limit=2)
    if not found:
        raise StoreError(f"no session `{plain(name)}` is known", hint="`stillroom threads` lists them")
    if len(found) > 1 and found[0].thread_id != name:
        raise StoreError(f"more than one session begins with `{plain(name)}`", hint="`stillroom threads` lists them")
    return found[0].thread_id


def _from_thread(listener: ProgressListener) -> ProgressListener:
    """The same for work in another thread."""
    loop = asyncio.get_running_loop()

    def listen(progress: Progress) -> None:
        loop.call_soon_threadsafe(listener, progress)

    return listen


async def _spending(settings: Settings, allowance: Allowance) -> AllowanceReport | None:
    """Nothing to tell where the offline engine does both phases."""
    if {settings.memories.extract_model, settings.memories.consolidation_model} == {OFFLINE}:
        return None
    return await asyncio.to_thread(allowance.report)


def _without_pause(settings: Settings) -> Settings:
    stage = msgspec.structs.replace(settings.stage_two, success_cooldown_seconds=0)
    return msgspec.structs.replace(settings, stage_two=stage)


__all__ = ["run_pipeline"]
