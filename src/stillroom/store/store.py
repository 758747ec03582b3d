"""The door to the state database: every method is one transaction, at the time that the clock shows.

Any thread may call it, and any number of processes may have the same file open.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import msgspec

from stillroom.clock import Clock
from stillroom.config import OFFLINE, DatabaseLimits, Memories, StageOne, StageTwo
from stillroom.store import (
    consolidation,
    contents,
    copies,
    forgetting,
    leases,
    quarantine,
    reads,
    stage1,
    standings,
    threads,
    undoing,
)
from stillroom.store.database import Database, copy_database
from stillroom.store.folders import Folders
from stillroom.store.forgetting import KeptOutput
from stillroom.store.leases import HeldJob
from stillroom.store.ledger import Ledger
from stillroom.store.reads import Reads
from stillroom.store.records import (
    ConsolidationClaimOutcome,
    Job,
    Learnt,
    OutputStamp,
    Place,
    RawMemory,
    Selection,
    Stage1Claim,
    Stage1ClaimOutcome,
    Stage1Draft,
    Stage1Output,
    Stage1Restored,
    ThreadRead,
    ThreadsLeft,
    Told,
)
from stillroom.store.rules import Question
from stillroom.store.sql import execute
from stillroom.store.standings import Explanation, Standing, Survey
from stillroom.store.texts import to_sql
from stillroom.store.uses import Uses
from stillroom.thread import FileStamp, MemoryMode, Thread


def _random_token() -> str:
    return str(uuid.uuid4())


class Store:
    """The state database. Open it with `Store.open`.

    Its parts are named by what they keep: `store.ledger.calls()`, `store.folders.newest(limit=9)`.
    """

    def __init__(
        self, database: Database, *, clock: Clock, new_token: Callable[[], str], limits: DatabaseLimits
    ) -> None:
        self._database = database
        self._clock = clock
        self._new_token = new_token
        self._limits = limits
        self.folders = Folders(database, clock=clock)
        self.reads = Reads(database)
        self.uses = Uses(database)
        self.ledger = Ledger(database, clock=clock, passes_kept=limits.passes_kept)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        new_token: Callable[[], str] = _random_token,
        limits: DatabaseLimits = DatabaseLimits(),  # noqa: B008 - frozen
    ) -> Self:
        """Open the database, creating or migrating it. Raises `StoreUnavailable` or `NewerSchema`."""
        return cls(Database(path, limits), clock=clock, new_token=new_token, limits=limits)

    @classmethod
    @contextmanager
    def trial(
        cls,
        path: Path,
        *,
        clock: Clock,
        limits: DatabaseLimits = DatabaseLimits(),  # noqa: B008 - frozen
    ) -> Iterator[Self]:
        """A copy to try things on: it goes with the block, and the database stays as it is. Raises as `open` does."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="stillroom-") as folder:
            copy = Path(folder) / path.name
            copy_database(path, copy, limits=limits)
            with cls.open(copy, clock=clock, limits=limits) as store:
                yield store

    def close(self) -> None:
        """Close the database; what is committed stays."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Threads

    def file_stamps(self, agent: str) -> dict[str, FileStamp]:
        """How each of the agent's rollouts looked when it was last read, by path."""
        with self._database.read() as db:
            return threads.file_stamps(db, agent)

    def save_threads(self, found: Sequence[tuple[Thread, FileStamp]]) -> int:
        """Insert or refresh threads. A mode that was set here stays. Many are saved in several transactions, so that
        a first scan of years of sessions keeps nobody waiting. Returns how many are passed over, because a person had
        them forgotten."""
        forgotten = 0
        for start in range(0, len(found), self._limits.threads_per_transaction):
            with self._database.write() as db:
                batch = found[start : start + self._limits.threads_per_transaction]
                forgotten += threads.save(db, batch, now=self._clock.now())
        return forgotten

    def places(self, thread_ids: Iterable[str]) -> dict[str, Place]:
        """Where each of these threads is read, of those that are known and were there at the last scan."""
        with self._database.read() as db:
            return copies.places(db, thread_ids)

    def save_copies(self, found: Sequence[tuple[str, Place]]) -> None:
        """Keep how files look that hold threads too, by thread id: they are not opened again while they stay so."""
        with self._database.write() as db:
            copies.save(db, found)

    def forget_missing(self, agent: str, present: Collection[str]) -> int:
        """Mark the agent's rollouts that are not among these paths: they are not claimed until they come back. What
        was extracted of them stays. Returns how many are newly gone."""
        present = frozenset(present)
        with self._database.write() as db:
            return threads.mark_missing(db, agent, present=present)

    def thread(self, thread_id: str) -> Thread | None:
        """The thread with its mode as it counts, or None."""
        with self._database.read() as db:
            return threads.get(db, thread_id)

    def threads_beginning(self, prefix: str, *, limit: int = 10) -> list[Thread]:
        """The threads whose ids begin so; the one of exactly this id is the first."""
        with self._database.read() as db:
            return threads.beginning(db, prefix, limit=limit)

    def threads(self, *, limit: int = 100, agent: str | None = None) -> list[Thread]:
        """The threads that were active last, newest first; of one agent, or of all."""
        with self._database.read() as db:
            return threads.newest(db, limit=limit, agent=agent)

    def set_memory_mode(self, thread_id: str, mode: MemoryMode) -> bool:
        """Say whether a thread may be remembered; a later scan does not undo it. Returns whether the mode changed."""
        with self._database.write() as db:
            return threads.set_mode(db, thread_id, mode, now=self._clock.now())

    # Forgetting

    def each_output(self, visit: Callable[[KeptOutput], None]) -> None:
        """Show everything that is kept of threads, whatever their modes, one by one."""
        with self._database.read() as db:
            for output in forgetting.each_output(db):
                visit(output)

    def forget(
        self, forgotten: Sequence[Thread], change: Callable[[str], str], *, may_change: Callable[[str], bool]
    ) -> None:
        """Remove all that is kept of these threads, put every text of others through `change`, and leave hashes, by
        which they are known and refused if they come again. Of which texts `may_change` is asked for many at once."""
        with self._database.write() as db:
            forgetting.forget(db, forgotten, change, may_change, now=self._clock.now())

    def is_forgotten(self, thread_id: str) -> bool:
        """Whether a person had this thread forgotten."""
        with self._database.read() as db:
            return forgetting.is_forgotten(db, thread_id)

    def keep_forgotten_exchanges(self, digests: Iterable[bytes]) -> None:
        """Know from now on what forgotten threads said (`rollouts.exchanges`), wherever it comes again."""
        with self._database.write() as db:
            forgetting.keep_exchanges(db, digests)

    def is_forgotten_exchange(self) -> Callable[[bytes], bool] | None:
        """What asks whether a forgotten thread said this; None when none is known, as in most homes."""
        with self._database.read() as db:
            if not forgetting.has_exchanges(db):
                return None

        def ask(digest: bytes) -> bool:
            with self._database.read() as db:
                return forgetting.is_forgotten_exchange(db, digest)

        return ask

    def rewrite_texts(self, change: Callable[[str], str]) -> int:
        """Put every text that is kept of sessions through `change`; returns how many rows differ by it."""
        with self._database.write() as db:
            return forgetting.rewrite_texts(db, change)

    def each_text(self, visit: Callable[[str], None]) -> None:
        """Show every text that is kept of sessions."""
        with self._database.read() as db:
            for text in forgetting.each_text(db):
                visit(text)

    def compact(self) -> bool:
        """Write the database anew, so that no free page and no log holds what was deleted. False: another process reads
        an old state right now, and the log stays until it ends."""
        return self._database.compact()

    # Undoing

    def undo(self, restored: Sequence[Stage1Restored]) -> int:
        """These outputs are selected again as they were; returns how many that came later stay out from now on, until
        their threads change or `redo`."""
        with self._database.write() as db:
            return undoing.undo(db, restored)

    def redo(self) -> int:
        """Let the next consolidation decide again about what was undone; returns how many outputs that are."""
        with self._database.write() as db:
            changed = undoing.redo(db)
            if changed:
                consolidation.enqueue(db, self._clock.now())
            return changed

    # Phase 1

    def claim_stage1(
        self,
        *,
        worker_id: str,
        current_thread_id: str | None,
        memories: Memories,
        stage: StageOne,
        max_claims: int,
        backfill: bool = False,
        cwd: str | None = None,
    ) -> list[Stage1Claim]:
        """Claim the newest threads that need extraction, at most `max_claims`, which is also the cap of fresh leases
        of all workers together. With `backfill` a thread may be of any age; with `cwd` it ran there or below."""
        claims: list[Stage1Claim] = []
        seen: set[str] = set()
        while len(claims) < max_claims:
            with self._database.read() as db:  # the long part, while others write
                candidates = stage1.scan(
                    db,
                    current_thread_id=current_thread_id,
                    memories=memories,
                    stage=stage,
                    backfill=backfill,
                    cwd=cwd,
                    limit=max_claims - len(claims),
                    seen=seen,
                    now_ms=self._clock.now_ms(),
                )
            if not candidates:
                break
            with self._database.write() as db:
                outcome = stage1.claim_first(
                    db,
                    candidates,
                    worker_id=worker_id,
                    stage=stage,
                    max_running=max_claims,
                    new_token=self._new_token,
                    now=self._clock.now(),
                )
            claims += outcome.claims
            seen |= {candidate.thread_id for candidate in candidates}
            if outcome.is_full:
                break
        return claims

    def count_left(
        self, *, current_thread_id: str | None, memories: Memories, backfill: bool = False, cwd: str | None = None
    ) -> ThreadsLeft:
        """Why threads are left that `claim_stage1`, asked the same, does not claim."""
        with self._database.read() as db:
            return stage1.count_left(
                db,
                current_thread_id=current_thread_id,
                memories=memories,
                backfill=backfill,
                cwd=cwd,
                now_ms=self._clock.now_ms(),
            )

    def standings(self, question: Question) -> list[Standing]:
        """How every thread stands before such a pass, newest first: the rule that decides about it."""
        with self._database.read() as db:
            return standings.standings(db, question)

    def survey(self, question: Question) -> Survey:
        """How all threads stand, without a list of them."""
        with self._database.read() as db:
            return standings.survey(db, question)

    def explain(self, thread_id: str, question: Question) -> Explanation | None:
        """Every rule about one thread before such a pass, in order. None: it is not known."""
        memories = question.memories
        limit, days = memories.max_raw_memories_for_consolidation, memories.max_unused_days
        with self._database.read() as db:
            explained = standings.explain(db, thread_id, question)
            if explained is None or not explained.selected:
                return explained
            selection = consolidation.select(db, limit=limit, max_unused_days=days, now=question.now)
            withheld = quarantine.without_quarantined(db, selection).withheld
        return msgspec.structs.replace(
            explained, withheld=tuple(line for line in withheld if line.thread_id == thread_id)
        )

    def try_claim_stage1(
        self, thread_id: str, *, worker_id: str, source_updated_at: int, stage: StageOne, max_running: int
    ) -> Stage1ClaimOutcome:
        """Claim this thread, whatever its age and mode. Raises `StoreError` if it is not known."""
        with self._database.write() as db:
            return stage1.try_claim(
                db,
                thread_id,
                worker_id=worker_id,
                source_updated_at=source_updated_at,
                stage=stage,
                max_running=max_running,
                new_token=self._new_token,
                now=self._clock.now(),
            )

    def heartbeat_stage1(self, claim: Stage1Claim, *, lease_seconds: int) -> bool:
        """Renew the lease. False: it has run out or was taken over, so stop. A result that is there already may still
        be handed in: it is accepted as long as nobody else has claimed the thread."""
        with self._database.write() as db:
            return stage1.heartbeat(db, claim, lease_seconds=lease_seconds, now=self._clock.now())

    def is_extracting(self) -> bool:
        """Whether anybody holds a thread, or was killed with it and its lease has not run out."""
        with self._database.read() as db:
            return leases.count_leased(db, leases.STAGE1, now=self._clock.now()) > 0

    def finish_stage1(
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
        durable, or it was not looked for, with the reason. `read` is kept with it, as by `save_read`. False: the thread
        is somebody else's by now."""
        with self._database.write() as db:
            finished = stage1.finish(
                db,
                claim,
                draft,
                engine=engine,
                prompt=prompt,
                reason=reason and self._cut(reason),
                now=self._clock.now(),
            )
            if finished and read is not None:
                reads.save(db, claim.thread_id, read)
            return finished

    def settle_contents(self, thread_id: str, chain: bytes) -> Told | None:
        """Keep what a claimed thread says (`contents.settle`), and tell which other thread has told most of it."""
        with self._database.write() as db:
            return contents.settle(db, thread_id, chain)

    def fail_stage1(self, claim: Stage1Claim, *, reason: str, retry_delay_seconds: int) -> bool:
        """Give the thread up, with the reason (redacted by the caller). False: it is somebody else's by now."""
        with self._database.write() as db:
            return stage1.fail(
                db,
                claim,
                reason=self._cut(reason),
                retry_delay_seconds=retry_delay_seconds,
                now=self._clock.now(),
            )

    def release_stage1(self, claim: Stage1Claim) -> bool:
        """Hand the claim back unused, because the work was stopped: it can be claimed again at once, and no retry is
        spent. False: it is not ours any more."""
        with self._database.write() as db:
            return stage1.release(db, claim)

    def stage1_job(self, thread_id: str) -> Job | None:
        """How the extraction of this thread stands."""
        with self._database.read() as db:
            return leases.read_job(db, leases.STAGE1, to_sql(thread_id))

    def running_jobs(self) -> list[HeldJob]:
        """The jobs of both phases that somebody works on, or was killed over."""
        with self._database.read() as db:
            return leases.running_jobs(db)

    def end_job(self, held: HeldJob, *, reason: str) -> bool:
        """Take a job from an owner who is known to be gone, so that it can be claimed at once. False: somebody else
        has it by now."""
        with self._database.write() as db:
            return leases.end(db, held, reason=self._cut(reason), now=self._clock.now())

    def count_missing(self) -> tuple[int, int]:
        """How many sessions' files are gone, and of how many of these something was extracted."""
        with self._database.read() as db:
            return threads.count_missing(db)

    def reopen_offline(self, engine: str = OFFLINE) -> int:
        """Make threads that this engine did last claimable again, with all their retries, until the next
        success. The output stays until then. Returns how many."""
        with self._database.write() as db:
            return stage1.reopen(db, engine=engine, retries=StageOne().retries)

    def retry_failed(self) -> int:
        """What failed, in either phase, may be tried again at once, with all its retries. Returns how many jobs."""
        with self._database.write() as db:
            now = self._clock.now()
            threads = stage1.retry_failed(db, retries=StageOne().retries, now=now)
            return threads + consolidation.retry_failed(db, now=now)

    def stage1_outputs(self, *, limit: int = 100) -> list[Stage1Output]:
        """The latest outputs of enabled threads, newest first."""
        with self._database.read() as db:
            return stage1.latest_outputs(db, limit=limit)

    def stage1_output(self, thread_id: str) -> Stage1Output | None:
        """The output of this thread, if it may be remembered."""
        with self._database.read() as db:
            return stage1.get_output(db, thread_id)

    def output_stamps(self) -> list[OutputStamp]:
        """Which version there is of every output that may be remembered: what an index of them has to follow."""
        with self._database.read() as db:
            return stage1.output_stamps(db)

    def learnt(self) -> list[Learnt]:
        """Where, when and at which commit something was extracted, oldest first."""
        with self._database.read() as db:
            return stage1.learnt(db)

    def raw_memories(self, *, one_in: int = 1) -> list[RawMemory]:
        """The raw memory of every thread, whether it may be remembered or not; or of one in so many, as a sample."""
        with self._database.read() as db:
            return stage1.raw_memories(db, one_in=one_in)

    def count_outputs(self) -> int:
        """How many threads something was extracted of, whether they may be remembered or not."""
        with self._database.read() as db:
            return stage1.count_outputs(db)

    def raw_memory(self, thread_id: str) -> RawMemory | None:
        """That of one thread, whether it may be remembered or not."""
        with self._database.read() as db:
            return stage1.raw_memory(db, thread_id)

    def change_mark(self) -> tuple[int, int]:
        """Differs from an earlier one of this store if anything was written since, by anybody."""
        with self._database.read() as db:
            return int(db.execute("PRAGMA data_version").fetchone()[0]), db.total_changes

    def prune_stage1(self, *, max_unused_days: int, limit: int) -> int:
        """Remove outputs that are not selected and were not used for longer than this; returns how many."""
        with self._database.write() as db:
            return stage1.prune(db, max_unused_days=max_unused_days, limit=limit, now=self._clock.now())

    # Phase 2

    def enqueue_consolidation(self, watermark: int) -> None:
        """Say that there is something to consolidate."""
        with self._database.write() as db:
            consolidation.enqueue(db, watermark)

    def claim_consolidation(self, *, worker_id: str, stage: StageTwo) -> ConsolidationClaimOutcome:
        """Take the global lock of phase 2."""
        with self._database.write() as db:
            return consolidation.claim(
                db, worker_id=worker_id, stage=stage, new_token=self._new_token, now=self._clock.now()
            )

    def heartbeat_consolidation(self, token: str, *, lease_seconds: int) -> bool:
        """Renew the lease. False: it has run out or was taken over, so stop."""
        with self._database.write() as db:
            return consolidation.heartbeat(db, token, lease_seconds=lease_seconds, now=self._clock.now())

    def succeed_consolidation(self, token: str, *, watermark: int, selected: Sequence[Stage1Output]) -> bool:
        """The folder holds `Selection.selected` up to the watermark. False: the lock is somebody else's by now.

        Pass `selected`, not `on_disk`: what only the previous selection holds leaves the disk at the next run.
        """
        with self._database.write() as db:
            return consolidation.succeed(db, token, watermark=watermark, selected=selected, now=self._clock.now())

    def fail_consolidation(
        self, token: str, *, reason: str, retry_delay_seconds: int, or_unowned: bool = False
    ) -> bool:
        """Give the lock up, with the reason. `or_unowned` also fails a running job that has no owner."""
        with self._database.write() as db:
            return consolidation.fail(
                db,
                token,
                reason=self._cut(reason),
                retry_delay_seconds=retry_delay_seconds,
                or_unowned=or_unowned,
                now=self._clock.now(),
            )

    def release_consolidation(self, token: str) -> bool:
        """Give the lock back unused: it can be taken again at once, and no retry is spent. False: it is not ours."""
        with self._database.write() as db:
            return consolidation.release(db, token)

    def consolidation_job(self) -> Job | None:
        """How the job of phase 2 stands."""
        with self._database.read() as db:
            return leases.read_job(db, leases.CONSOLIDATION, leases.CONSOLIDATION_KEY)

    def select_inputs(self, *, limit: int, max_unused_days: int) -> Selection:
        """What the next consolidation works on."""
        with self._database.read() as db:
            selection = consolidation.select(db, limit=limit, max_unused_days=max_unused_days, now=self._clock.now())
            return quarantine.without_quarantined(db, selection)

    def trust_line(self, line_id: str) -> None:
        """Let a line in that `Selection.withheld` names; the next consolidation has it."""
        with self._database.write() as db:
            quarantine.trust(db, line_id, now=self._clock.now())

    def newest_moment(self) -> int:
        """The latest moment (seconds) that was written down here; one ahead of the clock says that this was set."""
        with self._database.read() as db:
            return int(execute(db, "newest_moment").fetchone()["at"])

    def _cut(self, reason: str) -> str:
        return reason[: self._limits.max_reason_chars].encode("utf-8", "replace").decode()
