"""Jobs of phase 1: claims, finishes, and the outputs that they leave (spec §4.4-4.7).

Where this differs from Codex: a lease can be renewed but not revived; taking over a job whose owner went silent costs
it a retry, so that a rollout which kills its worker is not run for ever; a backfill has neither age nor scan limit;
threads can be reopened for another engine.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence, Set
from itertools import islice
from typing import NamedTuple

from stillroom.config import Memories, StageOne
from stillroom.errors import StoreError
from stillroom.release import VERSION
from stillroom.store import contents, leases
from stillroom.store.consolidation import enqueue, to_output
from stillroom.store.leases import STAGE1
from stillroom.store.records import (
    Job,
    Learnt,
    OutputStamp,
    RawMemory,
    RetryBackoff,
    RetryExhausted,
    Running,
    Stage1Claim,
    Stage1ClaimOutcome,
    Stage1Draft,
    Stage1Output,
    ThreadsLeft,
    UpToDate,
)
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql, to_sql, values

_DAY_MS = 24 * 3600 * 1000
_HOUR_MS = 3600 * 1000
#: Before every thread: a backfill has no age limit.
_EVER_MS = -(2**62)


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
    cwd: str | None,
    limit: int,
    seen: Set[str],
    now_ms: int,
) -> list[Candidate]:
    """The newest threads that are eligible, quiet for long enough, and behind. Those in `seen` are passed over."""
    if stage.thread_scan_limit <= 0:
        return []
    span = _span(current_thread_id, memories, backfill=backfill, cwd=cwd, now_ms=now_ms)
    # A backfill has no edge: thousands of extracted threads must not hide the older ones behind them.
    edge = None if backfill else execute(db, "find_scan_edge", **span, scan_limit=stage.thread_scan_limit).fetchone()
    edge_ms, edge_thread_id = edge or (span["oldest_ms"], "")
    rows = execute(db, "scan_threads", **{**span, "oldest_ms": edge_ms, "edge_thread_id": edge_thread_id})
    behind = (
        Candidate(from_sql(row["thread_id"]), row["updated_at"])
        for row in rows
        if row["status"] is None or _refusal(leases.to_job(row), row["updated_at"], now=now_ms // 1000) is None
    )
    return list(islice((candidate for candidate in behind if candidate.thread_id not in seen), limit))


def count_left(
    db: sqlite3.Connection,
    *,
    current_thread_id: str | None,
    memories: Memories,
    backfill: bool,
    cwd: str | None,
    now_ms: int,
) -> ThreadsLeft:
    """Why a scan with the same arguments leaves the threads that it leaves."""
    span = _span(current_thread_id, memories, backfill=backfill, cwd=cwd, now_ms=now_ms)
    rows = execute(db, "count_left", **span, now=now_ms // 1000)
    return ThreadsLeft(**{row["reason"]: row["threads"] for row in rows if row["reason"] is not None})


def _span(
    current_thread_id: str | None, memories: Memories, *, backfill: bool, cwd: str | None, now_ms: int
) -> dict[str, object]:
    return {
        "oldest_ms": _EVER_MS if backfill else now_ms - max(memories.max_rollout_age_days, 0) * _DAY_MS,
        "newest_ms": now_ms - max(memories.min_rollout_idle_hours, 0) * _HOUR_MS,
        "current_thread_id": current_thread_id and to_sql(current_thread_id),
        "cwd": cwd and to_sql(cwd.rstrip("/")),
    }


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


def heartbeat(db: sqlite3.Connection, claim: Stage1Claim, *, lease_seconds: int, now: int) -> bool:
    key, token = to_sql(claim.thread_id), claim.ownership_token
    return leases.renew(db, STAGE1, key, token=token, lease_seconds=lease_seconds, now=now)


def finish(
    db: sqlite3.Connection,
    claim: Stage1Claim,
    draft: Stage1Draft | None,
    *,
    engine: str,
    prompt: str | None,
    reason: str | None,
    now: int,
) -> bool:
    """Store the draft, or drop the old output if there is nothing durable, and have the change consolidated."""
    key = to_sql(claim.thread_id)
    ended = {"token": claim.ownership_token, "engine": engine, "reason": reason, "now": now}
    done = execute(db, "finish_stage1_job", thread_id=key, **ended)
    if done.rowcount != 1:
        return False
    if draft is None:
        changed = execute(db, "delete_output", thread_id=key).rowcount > 0
    else:
        changed = True
        execute(
            db,
            "save_output",
            thread_id=key,
            source_updated_at=claim.source_updated_at,
            raw_memory=to_sql(draft.raw_memory),
            rollout_summary=to_sql(draft.rollout_summary),
            rollout_slug=draft.rollout_slug and to_sql(draft.rollout_slug),
            engine=engine,
            prompt=prompt,
            release=VERSION,
            now=now,
        )
    if changed:
        enqueue(db, claim.source_updated_at)
    return True


def fail(db: sqlite3.Connection, claim: Stage1Claim, *, reason: str, retry_delay_seconds: int, now: int) -> bool:
    failed = leases.fail(
        db,
        STAGE1,
        to_sql(claim.thread_id),
        token=claim.ownership_token,
        reason=reason,
        retry_delay_seconds=retry_delay_seconds,
        now=now,
    )
    if failed:
        contents.reopen_resting(db, claim.thread_id)
    return failed


def release(db: sqlite3.Connection, claim: Stage1Claim) -> bool:
    key, token = to_sql(claim.thread_id), claim.ownership_token
    released = execute(db, "release_job", kind=STAGE1, job_key=key, token=token).rowcount == 1
    if released:
        contents.reopen_resting(db, claim.thread_id)
    return released


def reopen(db: sqlite3.Connection, *, engine: str, retries: int) -> int:
    """Make threads that this engine did last claimable again; returns how many."""
    return execute(db, "reopen_jobs", engine=engine, retries=retries).rowcount


def retry_failed(db: sqlite3.Connection, *, retries: int, now: int) -> int:
    """Make threads that failed claimable at once, with all their retries; returns how many."""
    return execute(db, "retry_failed_jobs", kind=STAGE1, retries=retries, now=now).rowcount


def latest_outputs(db: sqlite3.Connection, *, limit: int) -> list[Stage1Output]:
    return [to_output(row) for row in execute(db, "list_outputs", limit=limit)]


def output_stamps(db: sqlite3.Connection) -> list[OutputStamp]:
    """Which version there is of every output of an enabled thread."""
    return [OutputStamp(**values(row)) for row in execute(db, "list_output_stamps")]


def get_output(db: sqlite3.Connection, thread_id: str) -> Stage1Output | None:
    """The output of an enabled thread."""
    row = execute(db, "get_output", thread_id=to_sql(thread_id)).fetchone()
    return to_output(row) if row else None


def learnt(db: sqlite3.Connection) -> list[Learnt]:
    """Where, when and at which commit something was learnt, oldest first."""
    return [
        Learnt(from_sql(row["cwd"]), row["at"], row["commit_id"] and from_sql(row["commit_id"]))
        for row in execute(db, "list_learnt")
    ]


def raw_memories(db: sqlite3.Connection, *, one_in: int) -> list[RawMemory]:
    """Of every thread, whatever its mode, ascending by thread id; or of one in so many."""
    return [_raw_memory(row) for row in execute(db, "list_raw_memories", one_in=one_in)]


def count_outputs(db: sqlite3.Connection) -> int:
    """Whatever the modes of their threads."""
    return int(execute(db, "count_outputs").fetchone()["outputs"])


def raw_memory(db: sqlite3.Connection, thread_id: str) -> RawMemory | None:
    """Of one thread, whatever its mode."""
    row = execute(db, "get_raw_memory", thread_id=to_sql(thread_id)).fetchone()
    return _raw_memory(row) if row else None


def _raw_memory(row: sqlite3.Row) -> RawMemory:
    return RawMemory(from_sql(row["thread_id"]), row["source_updated_at"], from_sql(row["raw_memory"]))


def prune(db: sqlite3.Connection, *, max_unused_days: int, limit: int, now: int) -> int:
    """Remove unselected outputs that nobody used for longer than this, oldest first. Their jobs stay done."""
    cutoff = now - max(max_unused_days, 0) * _DAY_MS // 1000
    return execute(db, "prune_outputs", cutoff=cutoff, limit=max(limit, 0)).rowcount


def _output_watermark(db: sqlite3.Connection, thread_id: str) -> int:
    row = execute(db, "get_output_watermark", thread_id=to_sql(thread_id)).fetchone()
    return row["source_updated_at"] if row else -1
