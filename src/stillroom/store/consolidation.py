"""The one job of phase 2, and what it works on (spec §4.8-4.10).

Where this differs from Codex: a lease can be renewed but not revived; new extractions lift the pause after a failure
only while retries are left, and a success fills these up again, so that a consolidation which always fails is not
tried at every pass; the files on disk are the union with the previous selection.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

from stillroom.config import StageTwo
from stillroom.store import leases
from stillroom.store.leases import CONSOLIDATION, CONSOLIDATION_KEY
from stillroom.store.records import (
    ConsolidationClaim,
    ConsolidationClaimOutcome,
    Cooldown,
    Job,
    RetryBackoff,
    Running,
    Selection,
    Stage1Output,
)
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import to_sql, values

_DAY_SECONDS = 24 * 3600
#: Of a job that is new, or that went well.
_RETRIES = StageTwo().retries


def enqueue(db: sqlite3.Connection, watermark: int) -> None:
    """Say that there is something to consolidate. The job's watermark grows each time, whatever is given."""
    execute(db, "enqueue_consolidation", watermark=watermark, retries=_RETRIES)


def claim(
    db: sqlite3.Connection, *, worker_id: str, stage: StageTwo, new_token: Callable[[], str], now: int
) -> ConsolidationClaimOutcome:
    """Take the global lock. Nobody asks here whether there is anything to do: the diff of the folder tells."""
    job = leases.read_job(db, CONSOLIDATION, CONSOLIDATION_KEY)
    if job and (refused := _refusal(job, stage=stage, now=now)):
        return refused
    token = new_token()
    watermark = (job and job.input_watermark) or 0
    execute(
        db,
        "take_job",
        kind=CONSOLIDATION,
        job_key=CONSOLIDATION_KEY,
        worker_id=worker_id,
        token=token,
        lease_until=now + max(stage.lease_seconds, 0),
        retry_remaining=job.retry_remaining if job else stage.retries,
        input_watermark=watermark,
        now=now,
    )
    return ConsolidationClaim(ownership_token=token, input_watermark=watermark)


def _refusal(job: Job, *, stage: StageTwo, now: int) -> Running | RetryBackoff | Cooldown | None:
    """Why the lock can't be had. Exhausted retries are no reason: the pause after each failure is brake enough."""
    if job.retry_at is not None and leases.is_paused(job, now=now):
        return RetryBackoff(job.retry_at)
    if leases.is_leased(job, now=now):
        return Running()
    if job.finished_at is not None and job.last_error is None:
        until = job.finished_at + stage.success_cooldown_seconds
        if leases.promise_holds(made_at=job.finished_at, until=until, now=now):
            return Cooldown(until)
    return None


def heartbeat(db: sqlite3.Connection, token: str, *, lease_seconds: int, now: int) -> bool:
    return leases.renew(db, CONSOLIDATION, CONSOLIDATION_KEY, token=token, lease_seconds=lease_seconds, now=now)


def succeed(db: sqlite3.Connection, token: str, *, watermark: int, selected: Iterable[Stage1Output], now: int) -> bool:
    """The folder now holds `selected`: remember exactly these versions as the previous selection."""
    cursor = execute(db, "finish_consolidation_job", token=token, watermark=watermark, retries=_RETRIES, now=now)
    if cursor.rowcount != 1:
        return False
    execute(db, "clear_selection")
    db.executemany(
        QUERIES["mark_selected"],
        [{"thread_id": to_sql(output.thread_id), "source_updated_at": output.source_updated_at} for output in selected],
    )
    return True


def fail(
    db: sqlite3.Connection, token: str, *, reason: str, retry_delay_seconds: int, or_unowned: bool, now: int
) -> bool:
    return leases.fail(
        db,
        CONSOLIDATION,
        CONSOLIDATION_KEY,
        token=token,
        reason=reason,
        retry_delay_seconds=retry_delay_seconds,
        or_unowned=or_unowned,
        now=now,
    )


def retry_failed(db: sqlite3.Connection, *, now: int) -> bool:
    """Lift the pause after a failure; False: the last time did not fail."""
    return execute(db, "retry_failed_jobs", kind=CONSOLIDATION, retries=_RETRIES, now=now).rowcount > 0


def release(db: sqlite3.Connection, token: str) -> bool:
    return execute(db, "release_job", kind=CONSOLIDATION, job_key=CONSOLIDATION_KEY, token=token).rowcount == 1


def select(db: sqlite3.Connection, *, limit: int, max_unused_days: int, now: int) -> Selection:
    """The top `limit` outputs, and with them what the previous selection adds to the files on disk."""
    if limit <= 0:
        return Selection(selected=(), on_disk=())
    cutoff = now - max(max_unused_days, 0) * _DAY_SECONDS
    selected = [to_output(row) for row in execute(db, "select_outputs", cutoff=cutoff, limit=limit)]
    previous = [to_output(row) for row in execute(db, "select_previous_outputs", limit=2 * limit)]
    chosen = {output.thread_id for output in selected}
    room = 2 * limit - len(selected)
    leaving = [output for output in previous if output.thread_id not in chosen][:room]
    return Selection(
        selected=tuple(selected), on_disk=tuple(sorted(selected + leaving, key=lambda output: output.thread_id))
    )


def selected_refused(db: sqlite3.Connection) -> set[str]:
    """The threads that the last successful consolidation drew on, and that may not be remembered any more."""
    return {row["thread_id"] for row in execute(db, "list_selected_refused")}


def is_selected(db: sqlite3.Connection, thread_id: str) -> bool:
    """Whether the last successful consolidation drew on the thread."""
    return execute(db, "is_selected", thread_id=to_sql(thread_id)).fetchone() is not None


def to_output(row: sqlite3.Row) -> Stage1Output:
    return Stage1Output(**values(row))
