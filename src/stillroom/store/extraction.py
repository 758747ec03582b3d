"""Jobs of phase 1: claimed, kept, and ended with an output, with none, or with a failure (spec §4.4-4.7).

Each method of `Extraction` is one transaction, but for `claim`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

from stillroom.clock import Clock
from stillroom.config import OFFLINE, Memories, StageOne
from stillroom.release import VERSION
from stillroom.store import claims, contents, leases, memory_lines, reads, tombstones
from stillroom.store.database import Database
from stillroom.store.leases import STAGE1, cut_reason
from stillroom.store.records import (
    Job,
    Stage1Claim,
    Stage1ClaimOutcome,
    Stage1Draft,
    ThreadRead,
    ThreadsLeft,
    Told,
)
from stillroom.store.selection import enqueue
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql, to_sql


class Extraction:
    """Who works on which thread. Whoever lost a claim is refused, and told so: that is a normal outcome."""

    def __init__(
        self, database: Database, *, clock: Clock, new_token: Callable[[], str], max_reason_chars: int
    ) -> None:
        self._database = database
        self._clock = clock
        self._new_token = new_token
        self._max_reason_chars = max_reason_chars

    def claim(
        self,
        *,
        worker_id: str,
        current_thread_id: str | None,
        memories: Memories,
        stage: StageOne,
        max_claims: int,
        backfill: bool = False,
        upgrade: bool = False,
        retry: bool = False,
        cwd: str | None = None,
        sessions: frozenset[str] = frozenset(),
    ) -> list[Stage1Claim]:
        """Claim the newest threads that need extraction, at most `max_claims`, which is also the cap of fresh leases
        of all workers together. With `backfill` a thread may be of any age, with `upgrade` one that was reopened;
        `retry` alone takes only those that `Jobs.retry_failed` reopened, of any age; with `cwd` it ran there or
        below; with `sessions` it is one of these, of any age and however short it is quiet."""
        claimed: list[Stage1Claim] = []
        seen: set[str] = set()
        while len(claimed) < max_claims:
            with self._database.read() as db:  # the long part, while others write
                candidates = claims.scan(
                    db,
                    current_thread_id=current_thread_id,
                    memories=memories,
                    stage=stage,
                    backfill=backfill,
                    upgrade=upgrade,
                    retry=retry,
                    cwd=cwd,
                    sessions=sessions,
                    limit=max_claims - len(claimed),
                    seen=seen,
                    now_ms=self._clock.now_ms(),
                )
            if not candidates:
                break
            with self._database.write() as db:
                outcome = claims.claim_first(
                    db,
                    candidates,
                    worker_id=worker_id,
                    stage=stage,
                    max_running=max_claims,
                    new_token=self._new_token,
                    now=self._clock.now(),
                )
            claimed += outcome.claims
            seen |= {candidate.thread_id for candidate in candidates}
            if outcome.is_full:
                break
        return claimed

    def count_left(
        self,
        *,
        current_thread_id: str | None,
        memories: Memories,
        backfill: bool = False,
        upgrade: bool = False,
        cwd: str | None = None,
        sessions: frozenset[str] = frozenset(),
    ) -> ThreadsLeft:
        """Why threads are left that `claim`, asked the same, does not claim; what a retry passes over is no reason."""
        with self._database.read() as db:
            return claims.count_left(
                db,
                current_thread_id=current_thread_id,
                memories=memories,
                backfill=backfill,
                upgrade=upgrade,
                cwd=cwd,
                sessions=sessions,
                now_ms=self._clock.now_ms(),
            )

    def try_claim(
        self, thread_id: str, *, worker_id: str, source_updated_at: int, stage: StageOne, max_running: int
    ) -> Stage1ClaimOutcome:
        """Claim this thread, whatever its age and mode. Raises `StoreError` if it is not known."""
        with self._database.write() as db:
            return claims.try_claim(
                db,
                thread_id,
                worker_id=worker_id,
                source_updated_at=source_updated_at,
                stage=stage,
                max_running=max_running,
                new_token=self._new_token,
                now=self._clock.now(),
            )

    def heartbeat(self, claim: Stage1Claim, *, lease_seconds: int) -> bool:
        """Renew the lease. False: it has run out or was taken over, so stop. A result that is there already may still
        be handed in: it is accepted as long as nobody else has claimed the thread."""
        key, token, now = to_sql(claim.thread_id), claim.ownership_token, self._clock.now()
        with self._database.write() as db:
            return leases.renew(db, STAGE1, key, token=token, lease_seconds=lease_seconds, now=now)

    def settle_contents(self, thread_id: str, chain: bytes) -> Told | None:
        """Keep what a claimed thread says (`contents.settle`), and tell which other thread has told most of it."""
        with self._database.write() as db:
            return contents.settle(db, thread_id, chain)

    def finish(
        self,
        claim: Stage1Claim,
        draft: Stage1Draft | None,
        *,
        engine: str,
        prompt: str | None = None,
        reason: str | None = None,
        read: ThreadRead | None = None,
    ) -> bool:
        """Store what was extracted, and the hash of the prompt that the engine was sent; no draft: there is nothing
        durable, or it was not looked for, with the reason. `read` is kept with it, as by `Reads.save`. A change is to
        be consolidated. False: the thread is somebody else's by now."""
        key = to_sql(claim.thread_id)
        now = self._clock.now()
        with self._database.write() as db:
            done = execute(
                db,
                "finish_stage1_job",
                thread_id=key,
                token=claim.ownership_token,
                engine=engine,
                reason=reason and cut_reason(reason, self._max_reason_chars),
                now=now,
            )
            if done.rowcount != 1:
                return False
            if draft is None:
                changed = execute(db, "delete_output", thread_id=key).rowcount > 0
            else:
                changed = True
                _save(db, claim, draft, engine=engine, prompt=prompt, now=now)
            if changed:
                enqueue(db, claim.source_updated_at)
            if read is not None:
                reads.save(db, claim.thread_id, read)
            return True

    def save_fallback(self, claim: Stage1Claim, draft: Stage1Draft) -> bool:
        """Use what the offline engine made of a thread whose extraction by a model failed, or was handed back, until
        the next success. False: there is what a model made of it, or somebody else has the thread by now."""
        now = self._clock.now()
        with self._database.write() as db:
            free = execute(
                db,
                "save_fallback",
                thread_id=to_sql(claim.thread_id),
                engine=OFFLINE,
                source_updated_at=claim.source_updated_at,
            )
            if free.rowcount != 1:
                return False
            _save(db, claim, draft, engine=OFFLINE, prompt=None, now=now)
            enqueue(db, claim.source_updated_at)
            return True

    def fail(self, claim: Stage1Claim, *, reason: str, retry_delay_seconds: int) -> bool:
        """Give the thread up, with the reason (redacted by the caller). False: it is somebody else's by now."""
        with self._database.write() as db:
            failed = leases.fail(
                db,
                STAGE1,
                to_sql(claim.thread_id),
                token=claim.ownership_token,
                reason=cut_reason(reason, self._max_reason_chars),
                retry_delay_seconds=retry_delay_seconds,
                now=self._clock.now(),
            )
            if failed:
                contents.reopen_resting(db, claim.thread_id)
            return failed

    def release(self, claim: Stage1Claim) -> bool:
        """Hand the claim back unused, because the work was stopped: it can be claimed again at once, and no retry is
        spent. False: it is not ours any more."""
        with self._database.write() as db:
            released = leases.release(db, STAGE1, to_sql(claim.thread_id), token=claim.ownership_token)
            if released:
                contents.reopen_resting(db, claim.thread_id)
            return released

    def job(self, thread_id: str) -> Job | None:
        """How the extraction of this thread stands."""
        with self._database.read() as db:
            return leases.read_job(db, STAGE1, to_sql(thread_id))

    def empty_answers(self, *, limit: int) -> tuple[int, list[str]]:
        """In how many threads a model found nothing, and the newest of them."""
        with self._database.read() as db:
            rows = execute(db, "list_empty_answers", engine=OFFLINE).fetchall()
        return len(rows), [from_sql(row["thread_id"]) for row in rows[:limit]]

    def is_running(self) -> bool:
        """Whether anybody holds a thread, or was killed with it and its lease has not run out."""
        with self._database.read() as db:
            return leases.count_leased(db, STAGE1, now=self._clock.now()) > 0

    def reopen_expired(self, thread_ids: Iterable[str]) -> int:
        """Have again what was extracted of these and left unused. Returns of how many."""
        with self._database.write() as db:
            return sum(execute(db, "reopen_expired", thread_id=to_sql(thread_id)).rowcount for thread_id in thread_ids)

    def reopen_offline(self, engine: str = OFFLINE) -> int:
        """Make threads that this engine did last claimable again, with all their retries, until the next success. The
        output stays until then. Returns how many."""
        with self._database.write() as db:
            return execute(db, "reopen_jobs", engine=engine, retries=StageOne().retries).rowcount

    def reopen(self, *, engine: str, prompt: str | None, sessions: frozenset[str] = frozenset()) -> int:
        """Make threads claimable again, with all their retries: `sessions`; without any those that gave nothing, and
        those whose memory was not made by this engine with these words. What there is stays until the next success.
        Returns how many."""
        retries = StageOne().retries
        with self._database.write() as db:
            return execute(
                db,
                "reopen_for_again",
                engine=engine,
                prompt=prompt,
                release=VERSION,
                sessions=claims.as_json(sessions),
                retries=retries,
            ).rowcount


def _save(
    db: sqlite3.Connection, claim: Stage1Claim, draft: Stage1Draft, *, engine: str, prompt: str | None, now: int
) -> None:
    draft = tombstones.kept_out(db, draft, thread_id=claim.thread_id)
    execute(
        db,
        "save_output",
        thread_id=to_sql(claim.thread_id),
        source_updated_at=claim.source_updated_at,
        raw_memory=to_sql(draft.raw_memory),
        rollout_summary=to_sql(draft.rollout_summary),
        rollout_slug=draft.rollout_slug and to_sql(draft.rollout_slug),
        engine=engine,
        prompt=prompt,
        release=VERSION,
        now=now,
    )
    memory_lines.save(db, claim.thread_id, draft)
