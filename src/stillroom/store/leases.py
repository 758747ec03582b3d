"""Who may work on a job, and from when on: leases and pauses, judged by the clock that there is.

A promise about the future ("mine until", "not before") counts from the moment when it was made. If the clock was set
back since, the promise would last for hours or years; so none is kept that has more than twice its own length left.
An owner that lives renews its lease by the new clock at the next heartbeat.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3

from stillroom.store.records import Job
from stillroom.store.sql import execute

STAGE1 = "memory_stage1"
CONSOLIDATION = "memory_consolidate_global"
CONSOLIDATION_KEY = "global"


def promise_holds(*, made_at: int | None, until: int | None, now: int) -> bool:
    """Whether `until` is still ahead, and no further than a promise of this length can be."""
    if until is None or until <= now:
        return False
    return made_at is None or until - now <= 2 * (until - made_at)


def is_leased(job: Job, *, now: int) -> bool:
    """Whether somebody works on the job with a fresh lease."""
    return job.status == "running" and promise_holds(made_at=job.leased_at, until=job.lease_until, now=now)


def is_paused(job: Job, *, now: int) -> bool:
    """Whether a failure is too recent."""
    return promise_holds(made_at=job.finished_at, until=job.retry_at, now=now)


def read_job(db: sqlite3.Connection, kind: str, job_key: str | bytes) -> Job | None:
    row = execute(db, "get_job", kind=kind, job_key=job_key).fetchone()
    return to_job(row) if row else None


def to_job(row: sqlite3.Row) -> Job:
    """Read a job from the columns of it that the query has."""
    fields = {name: row[name] for name in row.keys() if name in Job.__struct_fields__}  # noqa: SIM118 - a Row yields values
    return Job(**{**fields, "reopened": bool(row["reopened"])})


def count_leased(db: sqlite3.Connection, kind: str, *, now: int) -> int:
    """Jobs of this kind that are being worked on."""
    rows = execute(db, "list_running_leases", kind=kind).fetchall()
    return sum(promise_holds(made_at=leased_at, until=until, now=now) for leased_at, until in rows)


def renew(db: sqlite3.Connection, kind: str, job_key: str | bytes, *, token: str, lease_seconds: int, now: int) -> bool:
    """Keep the lease for this long from now on. False: it has run out, or is somebody else's."""
    until = now + max(lease_seconds, 0)
    return execute(db, "renew_lease", kind=kind, job_key=job_key, token=token, now=now, lease_until=until).rowcount == 1


def fail(
    db: sqlite3.Connection,
    kind: str,
    job_key: str | bytes,
    *,
    token: str | None,
    reason: str,
    retry_delay_seconds: int | None,
    now: int,
    or_unowned: bool = False,
) -> bool:
    """Give the job up: one retry less, and none before the delay is over, if there is one. False: it is not ours."""
    cursor = execute(
        db,
        "fail_job",
        kind=kind,
        job_key=job_key,
        token=token,
        reason=reason,
        retry_at=None if retry_delay_seconds is None else now + max(retry_delay_seconds, 0),
        or_unowned=or_unowned,
        now=now,
    )
    return cursor.rowcount == 1


def release(db: sqlite3.Connection, kind: str, job_key: str | bytes, *, token: str) -> bool:
    """Hand the job back as it was: no retry is spent. False: it is not ours."""
    return execute(db, "release_job", kind=kind, job_key=job_key, token=token).rowcount == 1


def cut_reason(reason: str, max_chars: int) -> str:
    """Why a job failed, as far as it is kept, in characters that SQLite's text can hold."""
    return reason[:max_chars].encode("utf-8", "replace").decode()
