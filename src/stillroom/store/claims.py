"""Which threads may be claimed for phase 1, and which of them a worker gets (spec §4.4-4.6).

Where this differs from Codex: taking over a job whose owner went silent costs it a retry, so that a rollout which kills
its worker is not run for ever; a backfill has neither age nor scan limit; a session whose client said that it is
over waits for nothing, and one that is extracted by rules only a moment; threads can be reopened, and an upgrade
takes these however old they are; a retry takes those that failed, and no others.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence, Set
from itertools import islice
from typing import NamedTuple

from stillroom.clock import DAY_SECONDS
from stillroom.config import Memories, StageOne
from stillroom.errors import StoreError
from stillroom.store import leases
from stillroom.store.leases import STAGE1
from stillroom.store.records import (
    Job,
    RetryBackoff,
    RetryExhausted,
    Running,
    Stage1Claim,
    Stage1ClaimOutcome,
    ThreadsLeft,
    UpToDate,
)
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql, to_sql

#: A client may write a last record just behind the moment at which it says that the session is over.
ENDED_SLACK_MS = 10_000
#: Before every thread: a backfill has no age limit.
_EVER_MS = -(2**62)
#: After every thread.
_NEVER_MS = 2**62


class Candidate(NamedTuple):
    """A thread with something new to extract."""

    thread_id: str
    updated_at: int  #: seconds


class ClaimRound(NamedTuple):
    """What one transaction claimed."""

    claims: list[Stage1Claim]
    is_full: bool  #: the cap of running jobs is reached


def scan(
    db: sqlite3.Connection,
    *,
    current_thread_id: str | None,
    memories: Memories,
    stage: StageOne,
    backfill: bool,
    upgrade: bool,
    retry: bool,
    cwd: str | None,
    sessions: frozenset[str],
    limit: int,
    seen: Set[str],
    now_ms: int,
) -> list[Candidate]:
    """The newest threads that are eligible, over or quiet for long enough, and behind. Those in `seen` are passed over.

    With `sessions` only these, of any age and without a pause.
    """
    if stage.thread_scan_limit <= 0:
        return []
    span = _span(
        current_thread_id,
        memories,
        backfill=backfill,
        upgrade=upgrade,
        retry=retry,
        cwd=cwd,
        sessions=sessions,
        now_ms=now_ms,
    )
    only_failed = retry and not (backfill or upgrade)
    # Who asks for all gets no edge: thousands of extracted threads must not hide the older ones behind them.
    has_edge = not (backfill or upgrade or retry or sessions)
    edge = execute(db, "find_scan_edge", **span, scan_limit=stage.thread_scan_limit).fetchone() if has_edge else None
    edge_ms, edge_thread_id = edge or (span["oldest_ms"], "")
    rows = execute(db, "scan_threads", **{**span, "oldest_ms": edge_ms, "edge_thread_id": edge_thread_id})
    behind = (
        Candidate(from_sql(row["thread_id"]), row["updated_at"])
        for row in rows
        if row["status"] is None or _refusal(leases.to_job(row), row["updated_at"], now=now_ms // 1000) is None
        # What was reopened for another reason is not what was asked for.
        if not (only_failed and row["status"] == "done")
    )
    return list(islice((candidate for candidate in behind if candidate.thread_id not in seen), limit))


def count_left(
    db: sqlite3.Connection,
    *,
    current_thread_id: str | None,
    memories: Memories,
    backfill: bool,
    upgrade: bool,
    cwd: str | None,
    sessions: frozenset[str],
    now_ms: int,
) -> ThreadsLeft:
    """Why a scan with the same arguments leaves the threads that it leaves."""
    span = _span(
        current_thread_id,
        memories,
        backfill=backfill,
        upgrade=upgrade,
        retry=False,
        cwd=cwd,
        sessions=sessions,
        now_ms=now_ms,
    )
    rows = execute(db, "count_left", **span, now=now_ms // 1000)
    return ThreadsLeft(**{row["reason"]: row["threads"] for row in rows if row["reason"] is not None})


def _span(
    current_thread_id: str | None,
    memories: Memories,
    *,
    backfill: bool,
    upgrade: bool,
    retry: bool,
    cwd: str | None,
    sessions: frozenset[str],
    now_ms: int,
) -> dict[str, object]:
    young_ms = now_ms - max(memories.max_rollout_age_days, 0) * DAY_SECONDS * 1000
    return {
        "oldest_ms": _EVER_MS if backfill or upgrade or retry or sessions else young_ms,
        "oldest_new_ms": _EVER_MS if backfill or sessions else _NEVER_MS if retry and not upgrade else young_ms,
        "newest_ms": _NEVER_MS if sessions else now_ms - memories.idle_seconds * 1000,
        "slack_ms": ENDED_SLACK_MS,
        "sessions": as_json(sessions),
        "current_thread_id": current_thread_id and to_sql(current_thread_id),
        "cwd": cwd and to_sql(cwd.rstrip("/")),
    }


def as_json(sessions: frozenset[str]) -> str | None:
    """As the queries take them; None: no session is asked for."""
    return json.dumps(sorted(sessions)) if sessions else None


def claim_first(
    db: sqlite3.Connection,
    candidates: Sequence[Candidate],
    *,
    worker_id: str,
    stage: StageOne,
    max_running: int,
    new_token: Callable[[], str],
    now: int,
) -> ClaimRound:
    """Claim from the front up to the cap. Each is judged anew: others may have claimed since the scan."""
    claims: list[Stage1Claim] = []
    room = max_running - leases.count_leased(db, STAGE1, now=now)
    for candidate in candidates:
        if len(claims) >= room:
            return ClaimRound(claims, is_full=True)
        outcome = _claim(db, candidate, worker_id=worker_id, stage=stage, new_token=new_token, now=now)
        if isinstance(outcome, Stage1Claim):
            claims.append(outcome)
    return ClaimRound(claims, is_full=len(claims) >= room)


def try_claim(
    db: sqlite3.Connection,
    thread_id: str,
    *,
    worker_id: str,
    source_updated_at: int,
    stage: StageOne,
    max_running: int,
    new_token: Callable[[], str],
    now: int,
) -> Stage1ClaimOutcome:
    """Claim one thread, whatever its age. `Running` also stands for a cap that is reached."""
    if execute(db, "get_thread", thread_id=to_sql(thread_id)).fetchone() is None:
        raise StoreError(f"no thread `{thread_id}` is known", hint="save it before it is claimed")
    return _claim(
        db,
        Candidate(thread_id, source_updated_at),
        worker_id=worker_id,
        stage=stage,
        new_token=new_token,
        now=now,
        has_room=lambda: leases.count_leased(db, STAGE1, now=now) < max_running,
    )


def _claim(
    db: sqlite3.Connection,
    candidate: Candidate,
    *,
    worker_id: str,
    stage: StageOne,
    new_token: Callable[[], str],
    now: int,
    has_room: Callable[[], bool] = lambda: True,
) -> Stage1ClaimOutcome:
    thread_id, watermark = candidate
    key = to_sql(thread_id)
    job = leases.read_job(db, STAGE1, key)
    if not (job and job.reopened) and _output_watermark(db, thread_id) >= watermark:
        return UpToDate()
    if job and (refused := _refusal(job, watermark, now=now)):
        return refused
    retries = retries_left(job, watermark, stage=stage)
    if retries <= 0 and job:
        reason = "the worker went silent until its lease ran out, as often as there were retries"
        execute(db, "exhaust_job", kind=STAGE1, job_key=key, token=job.ownership_token, reason=reason, now=now)
        return RetryExhausted()
    if not has_room():
        return Running()
    token = new_token()
    execute(
        db,
        "take_job",
        kind=STAGE1,
        job_key=key,
        worker_id=worker_id,
        token=token,
        lease_until=now + max(stage.lease_seconds, 0),
        retry_remaining=retries,
        input_watermark=watermark,
        now=now,
    )
    return Stage1Claim(thread_id=thread_id, ownership_token=token, source_updated_at=watermark)


def _refusal(job: Job, watermark: int, *, now: int) -> UpToDate | Running | RetryBackoff | RetryExhausted | None:
    """Why a job can't be taken; None: it can (or its last retry is to be spent)."""
    if is_done(job, watermark):
        return UpToDate()
    if leases.is_leased(job, now=now):
        return Running()
    if is_newer(job, watermark):
        return None
    if job.retry_remaining <= 0:
        return RetryExhausted()
    if job.retry_at is not None and leases.is_paused(job, now=now):
        return RetryBackoff(job.retry_at)
    return None


def is_done(job: Job, watermark: int) -> bool:
    """Whether the thread was extracted up to here, with an output or without."""
    return not job.reopened and job.last_success_watermark is not None and job.last_success_watermark >= watermark


def is_newer(job: Job, watermark: int) -> bool:
    """Whether the thread moved on since the job was last taken: old failures don't count against new content."""
    return job.input_watermark is None or watermark > job.input_watermark


def retries_left(job: Job | None, watermark: int, *, stage: StageOne) -> int:
    """How often the job may be taken from now on; none of these is left to one whose last owner went silent."""
    if job is None or is_newer(job, watermark):
        return stage.retries
    return job.retry_remaining - (1 if job.status == "running" else 0)  # its owner went silent: that costs one


def _output_watermark(db: sqlite3.Connection, thread_id: str) -> int:
    row = execute(db, "get_output_watermark", thread_id=to_sql(thread_id)).fetchone()
    return row["source_updated_at"] if row else -1
