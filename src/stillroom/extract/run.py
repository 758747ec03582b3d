"""Phase 1: one thread in, one memory out, several threads at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from stillroom import telemetry
from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.extract.claiming import claim_rounds
from stillroom.extract.engine import Engine, open_engine
from stillroom.extract.leases import Leases
from stillroom.extract.outcome import Capped, Phase1Report, ThreadOutcome, make_report
from stillroom.extract.thread_job import extract_thread, hand_back
from stillroom.models import Allowance
from stillroom.pausing import paused_since
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.store import Store
from stillroom.store.records import Stage1Claim

__all__ = ["Phase1Report", "run_phase1"]

#: A few texts of one session.
_KEPT_BYTES = 8 * 1024 * 1024


async def run_phase1(
    settings: Settings,
    store: Store,
    clock: Clock,
    *,
    worker_id: str,
    current_thread_id: str | None = None,
    backfill: bool = False,
    upgrade: bool = False,
    retry: bool = False,
    max_threads: int | None = None,
    cwd: str | None = None,
    engine: Engine | None = None,
    allowance: Allowance | None = None,
    on_progress: ProgressListener = silent,
) -> Phase1Report:
    """Extract what is finished and new, and report how each thread ended.

    Cancelling it hands the open claims back. Raises `ConfigError` for a model that can't be used and `StoreError` when
    nothing can be claimed; whatever happens to one thread is in the report.
    """
    started = time.perf_counter()
    outcomes: list[ThreadOutcome] = []
    try:
        # 1. Claim threads, newest first; in a backfill round after round until none is left.
        async for claims in claim_rounds(
            settings,
            store,
            worker_id=worker_id,
            current_thread_id=current_thread_id,
            backfill=backfill,
            upgrade=upgrade,
            retry=retry,
            max_threads=max_threads,
            cwd=cwd,
        ):
            telemetry.count("memory.phase1", len(claims), status="claimed")
            with Leases(store, settings.stage_one, claims) as leases:
                # 2. Open the engine, now that there is something to do: the rules, or one model for all threads.
                if engine is None:
                    engine = await asyncio.to_thread(open_engine, settings, store, clock, allowance=allowance)
                # 3. Extract some at a time, under a heartbeat; one that fails fails alone.
                await _extract_round(settings, store, engine, claims, leases, outcomes, on_progress)
            if any(isinstance(outcome, Capped) for outcome in outcomes):
                break
    finally:
        # 4. Let go of the model; what it said of its limits is kept for the next pass.
        if engine is not None:
            await asyncio.to_thread(engine.close)
    # 5. Add up, and say why the rest was left.
    duration_ms = round((time.perf_counter() - started) * 1000)
    left = await asyncio.to_thread(
        store.extraction.count_left,
        current_thread_id=current_thread_id,
        memories=settings.memories,
        backfill=backfill,
        upgrade=upgrade,
        cwd=cwd,
    )
    report = make_report(outcomes, engine=settings.memories.extract_model, duration_ms=duration_ms, left=left)
    _send_metrics(report)
    return report


async def _extract_round(
    settings: Settings,
    store: Store,
    engine: Engine,
    claims: Sequence[Stage1Claim],
    leases: Leases,
    outcomes: list[ThreadOutcome],
    on_progress: ProgressListener,
) -> None:
    """Extract every claim and append how it ended, in the order in which they end."""
    total, capped = len(outcomes) + len(claims), list[str]()
    loop, jobs = asyncio.get_running_loop(), iter(claims)

    def tell() -> None:
        on_progress(Progress(stage="extract", done=len(outcomes), total=total))

    def work() -> None:
        for claim in jobs:  # all threads take from the same
            outcome = _outcome(settings, store, engine, claim, leases, capped)
            if isinstance(outcome, Capped):
                capped.append(outcome.reason)
            outcomes.append(outcome)
            loop.call_soon_threadsafe(tell)

    tell()
    # The C library hands what is free back to the system when it is more than twice the largest block that it ever got
    # back. The system then clears every page anew for the next session's texts: a tenth of the time of a long one.
    bytes(_KEPT_BYTES)
    size = min(settings.memories.extract_concurrency, len(claims))
    pool = ThreadPoolExecutor(size, thread_name_prefix="extract")
    try:
        async with asyncio.TaskGroup() as group:
            beat = group.create_task(leases.keep())
            workers = [loop.run_in_executor(pool, work) for _ in range(size)]
            try:
                await asyncio.wait(workers)
            except asyncio.CancelledError:
                leases.stop_all()
                await asyncio.wait(workers)
                raise
            beat.cancel()
            await asyncio.gather(*workers)
    finally:
        pool.shutdown(wait=False)  # they are done, and the event loop must not wait until their threads have ended


def _outcome(
    settings: Settings, store: Store, engine: Engine, claim: Stage1Claim, leases: Leases, capped: Sequence[str]
) -> ThreadOutcome:
    if capped:  # not even read: that takes seconds for a long session
        return hand_back(claim, capped[0], store=store, leases=leases)
    if since := paused_since(str(settings.home)):
        return hand_back(claim, f"passes are paused since {since}", store=store, leases=leases)
    return extract_thread(claim, settings=settings, store=store, engine=engine, leases=leases)


def _send_metrics(report: Phase1Report) -> None:
    """Spec §1.12."""
    if report.claimed == 0:
        telemetry.count("memory.phase1", status="skipped_no_candidates")
        return
    telemetry.count("memory.phase1", report.with_output, status="succeeded")
    telemetry.count("memory.phase1", report.no_output, status="succeeded_no_output")
    telemetry.count("memory.phase1", report.failed + report.lost_lease, status="failed")
    telemetry.count("memory.phase1.output", report.with_output)
    telemetry.record("memory.phase1.e2e_ms", report.duration_ms, unit="ms")
    for token_type, tokens in report.usage.by_type() if report.usage else ():
        telemetry.record("memory.phase1.token_usage", tokens, token_type=token_type)
