"""Phase 1: one thread in, one memory out, several threads at a time."""

from __future__ import annotations

import asyncio
import time

from stillroom import telemetry
from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.extract.claiming import claim_rounds
from stillroom.extract.engine import Engine, open_engine
from stillroom.extract.leases import Leases
from stillroom.extract.outcome import Capped, Failed, Phase1Report, ThreadOutcome, make_report
from stillroom.extract.round import Round
from stillroom.models import Allowance
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.store import Store

__all__ = ["Phase1Report", "run_phase1"]


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
    sessions: frozenset[str] = frozenset(),
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
    claimed = 0

    def tell() -> None:
        on_progress(Progress(stage="extract", done=len(outcomes), total=claimed))

    def hear(outcome: ThreadOutcome) -> None:
        outcomes.append(outcome)
        tell()

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
            sessions=sessions,
        ):
            telemetry.count("memory.phase1", len(claims), status="claimed")
            claimed += len(claims)
            tell()
            with Leases(store, settings.stage_one, claims) as leases:
                # 2. Open the engine, now that there is something to do: the offline one, or one model for all.
                if engine is None:
                    engine = await asyncio.to_thread(open_engine, settings, store, clock, allowance=allowance)
                # 3. Extract some at a time, under a heartbeat; one that fails fails alone.
                jobs = Round(settings, store, claims, leases, on_outcome=hear)
                await jobs.run(engine)
            if any(
                isinstance(outcome, Capped) or (isinstance(outcome, Failed) and outcome.refused) for outcome in outcomes
            ):
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
        sessions=sessions,
    )
    report = make_report(outcomes, engine=settings.memories.extract_model, duration_ms=duration_ms, left=left)
    _send_metrics(report)
    return report


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
