"""Phase 2: many Stage1Outputs become `MEMORY.md`, `memory_summary.md` and skills. Ten steps, in strict order.

Codex: `memories/write/src/phase2.rs` (spec §1.5). What differs: the consolidator works on a staging copy, its result is
validated before any of it reaches the folder, and every success is a commit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import assert_never

import msgspec

from stillroom import telemetry
from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.consolidate.job import Job, StepFailed, told
from stillroom.consolidate.lease import run_under_lease
from stillroom.consolidate.outcome import Consolidated, Failed, HeldForReview, NoChanges, Phase2Report, Skipped
from stillroom.errors import HistoryError, StoreError
from stillroom.handover import take
from stillroom.models import Allowance
from stillroom.progress import Progress, ProgressListener, silent
from stillroom.rollouts.redact import redact
from stillroom.store import Store
from stillroom.store.records import (
    ConsolidationClaim,
    ConsolidationClaimOutcome,
    Cooldown,
    RetryBackoff,
    Running,
)
from stillroom.workspace import held
from stillroom.workspace.history import History
from stillroom.workspace.journal import Checkpoint, nothing
from stillroom.workspace.layout import HANDBOOK

#: Steps that use the history and can be done again at no cost.
_BEFORE_THE_AGENT = frozenset(
    {
        "failed_prepare_workspace",
        "failed_workspace_status",
        "failed_sync_workspace_inputs",
        "failed_workspace_diff_file",
        "failed_agent",
    }
)


async def run_phase2(
    settings: Settings,
    store: Store,
    clock: Clock,
    *,
    worker_id: str,
    adopt: bool = False,
    allowance: Allowance | None = None,
    origins: Callable[[], Mapping[str, str]] = dict,
    on_progress: ProgressListener = silent,
    checkpoint: Checkpoint = nothing,
) -> Phase2Report:
    """Consolidate once. Whatever goes wrong is the report's `Failed`, and the folder is then as it was.

    `adopt` consents to take over a folder with another program's memories. `origins` says of folders which repository
    they are checkouts of, so that sessions of one are consolidated together; it is asked only if there is something to
    do. `checkpoint` is told where the work is; tests stop the process there.
    """
    started = time.perf_counter()

    def give_back(claim: ConsolidationClaimOutcome) -> None:
        if isinstance(claim, ConsolidationClaim):
            store.consolidation.fail(claim.ownership_token, reason="stopped as it began", retry_delay_seconds=0)

    claim_lock = partial(store.consolidation.claim, worker_id=worker_id, stage=settings.consolidating)
    try:
        if await asyncio.to_thread(_has_nothing_to_do, settings, store):
            return _counted(Skipped(status="skipped_no_input"))
        if await asyncio.to_thread(_waits_for_the_first_memory, settings, store):
            return _counted(Skipped(status="skipped_running"))
        if await asyncio.to_thread(_waits_for_a_person, settings):
            return _counted(Skipped(status="skipped_held_for_review"))
        # 1. Claim the global lock.
        claim = await take(claim_lock, give_back=give_back)
    except StoreError as error:
        return _counted(Failed(status="failed_claim", reason=told(error)))
    if not isinstance(claim, ConsolidationClaim):
        return _counted(_skipped(claim))
    telemetry.count("memory.phase2", status="claimed")
    on_progress(Progress(stage="consolidate", done=0, total=1))
    job = Job(settings, store, clock, claim, checkpoint, allowance=allowance, origins=origins)
    report: Phase2Report
    try:
        try:
            report = await _consolidate(job, adopt=adopt)
        except StepFailed as failure:
            if not isinstance(failure.__cause__, HistoryError) or failure.status not in _BEFORE_THE_AGENT:
                raise
            # A damaged history would stop every run to come: look at all of it, and begin anew if need be.
            job.doubts_history = True
            report = await _consolidate(job, adopt=adopt)
    except StepFailed as failure:
        report = await _without_model(job, failure)
    except BaseException as error:
        job.interrupt(error)
        raise
    on_progress(Progress(stage="consolidate", done=1, total=1, note=report.status))
    telemetry.record("memory.phase2.e2e_ms", (time.perf_counter() - started) * 1000, unit="ms")
    return _counted(report)


async def _without_model(job: Job, failure: StepFailed) -> Phase2Report:
    """What is done when the model's consolidation failed."""
    if not await asyncio.to_thread(job.fall_back, failure):
        return job.fail(failure)
    try:
        report = await _consolidate(job, adopt=False)
    except StepFailed:  # the first failure is the one to tell
        return job.fail(failure)
    if isinstance(report, Consolidated | NoChanges):
        reason = redact(str(failure), style=job.settings.memories.redaction)
        return msgspec.structs.replace(report, fallback_reason=f"{failure.status}: {reason}")
    return report


async def _consolidate(job: Job, *, adopt: bool) -> NoChanges | Skipped | HeldForReview | Consolidated:
    # 2. Prepare the workspace.
    with job.step("failed_prepare_workspace"):
        noted = await asyncio.to_thread(job.prepare, adopt=adopt)
    # 3. Configure the consolidator, jail included.
    with job.step("failed_sandbox_policy"):
        consolidator = await asyncio.to_thread(job.configure)
    # 4. Select the inputs.
    with job.step("failed_load_stage1_outputs"):
        selection = await asyncio.to_thread(job.select)
        telemetry.count("memory.phase2.input", len(selection.selected))
    with job.step("failed_workspace_status"):
        if await asyncio.to_thread(job.is_up_to_date):
            await asyncio.to_thread(job.succeed, selection)
            return NoChanges(inputs=len(selection.selected))
    with job.step("failed_sync_workspace_inputs"):
        staging = await asyncio.to_thread(job.stage)
    with staging:
        # 5. Sync the inputs into the copy.
        with job.step("failed_sync_workspace_inputs"):
            await asyncio.to_thread(job.sync, staging)
        # 6. Compare it with the baseline.
        with job.step("failed_workspace_status"):
            changes = await asyncio.to_thread(staging.seal)
            if await asyncio.to_thread(job.was_rejected, staging):
                await asyncio.to_thread(job.release)
                return Skipped(status="skipped_rejected")
        # 7. Write the bounded diff, for the agent to read first.
        with job.step("failed_workspace_diff_file"):
            await asyncio.to_thread(job.write_diff, staging)
        judge = job.judge(staging)
        # 8. Let the consolidator work on the copy. 9. Renew the lease meanwhile, and wait.
        with job.step("failed_agent"):
            outputs = await asyncio.to_thread(job.of_projects, selection.on_disk)
            work = consolidator.run(staging.path, outputs, check=judge.check)
            await run_under_lease(work, job.beat, every_seconds=job.limits.heartbeat_seconds)
            await asyncio.to_thread(job.bury, staging)
        # 10. Validate, make sure that the lock is still ours, swap in, commit; then mark the selection.
        with job.step("failed_invalid_artifacts"):
            warnings = await asyncio.to_thread(judge.validate)
            if await asyncio.to_thread(judge.must_wait, warnings):
                await asyncio.to_thread(job.hold, staging, selection, warnings)
                return HeldForReview(
                    inputs=len(selection.selected),
                    engine=consolidator.engine,
                    jail=consolidator.jail,
                    warnings=(*noted, *map(str, warnings)),
                    usage=consolidator.usage,
                )
        with job.step("failed_confirm_ownership"):
            await asyncio.to_thread(job.confirm)
        with job.step("failed_workspace_commit"):
            published = await asyncio.to_thread(job.publish, staging, selection)
    untold = await asyncio.to_thread(job.record_success, selection)
    untold += await asyncio.to_thread(job.pack_history)
    noted += consolidator.notes
    return Consolidated(
        inputs=len(selection.selected),
        engine=consolidator.engine,
        jail=consolidator.jail,
        changed=tuple(f"{change.status} {change.path}" for change in changes),
        written=published.written,
        deleted=published.deleted,
        kept_for_user=published.kept_for_user,
        ignored=published.ignored,
        warnings=(*noted, *map(str, warnings), *untold),
        commit=published.commit,
        usage=consolidator.usage,
        withheld=len(job.withheld),
        leaving=selection.leaving,
    )


def _has_nothing_to_do(settings: Settings, store: Store) -> bool:
    """No output, no memory yet, no note: a first, empty run must not start the pause that a real one would wait for."""
    memories = settings.memories
    selection = store.consolidation.select(limit=1, max_unused_days=memories.max_unused_days)
    notes = settings.root / "extensions" / "ad_hoc" / "notes"
    return not selection.on_disk and not (settings.root / HANDBOOK).exists() and not notes.exists()


def _waits_for_the_first_memory(settings: Settings, store: Store) -> bool:
    """No output, and another pass is extracting: a folder that outlived its database would be emptied until the next
    consolidation, six hours later."""
    selection = store.consolidation.select(limit=1, max_unused_days=settings.memories.max_unused_days)
    return not selection.on_disk and store.extraction.is_running()


def _waits_for_a_person(settings: Settings) -> bool:
    """A result is held, and the folder that it was made for is still the newest one. One that was left behind goes."""
    waiting = held.load(settings.review)
    if waiting is None:
        return False
    try:
        stale = held.is_stale(waiting, History(settings.history, limits=settings.stage_two).head())
    except HistoryError:
        return True
    if stale:
        held.discard(settings.review)
    return not stale


def _skipped(outcome: ConsolidationClaimOutcome) -> Skipped:
    match outcome:
        case Running():
            return Skipped(status="skipped_running")
        case Cooldown(until):
            return Skipped(status="skipped_cooldown", until=until)
        case RetryBackoff(retry_at):
            return Skipped(status="skipped_retry_unavailable", until=retry_at)
        case ConsolidationClaim():
            raise AssertionError("a claim is no reason to skip")
        case _:
            assert_never(outcome)


def _counted(report: Phase2Report) -> Phase2Report:
    telemetry.count("memory.phase2", status=report.status)
    return report
