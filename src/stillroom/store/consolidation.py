"""The one job of phase 2, and what it works on (spec §4.8-4.10).

Where this differs from Codex: a lease can be renewed but not revived; a success fills the retries up again, so that a
consolidation which always fails is not tried at every pass.

Each method of `Consolidation` is one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from stillroom.clock import Clock
from stillroom.config import StageTwo
from stillroom.store import leases, quarantine, selection, tombstones, undoing
from stillroom.store.database import Database
from stillroom.store.leases import CONSOLIDATION, CONSOLIDATION_KEY, cut_reason
from stillroom.store.records import (
    ConsolidationClaim,
    ConsolidationClaimOutcome,
    Cooldown,
    Job,
    RetryBackoff,
    Running,
    Selection,
    Stage1Output,
    Stage1Restored,
)
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import to_sql


class Consolidation:
    """The global lock, the inputs of the next run, and what a person decided about them."""

    def __init__(
        self, database: Database, *, clock: Clock, new_token: Callable[[], str], max_reason_chars: int
    ) -> None:
        self._database = database
        self._clock = clock
        self._new_token = new_token
        self._max_reason_chars = max_reason_chars

    def enqueue(self, watermark: int) -> None:
        """Say that there is something to consolidate."""
        with self._database.write() as db:
            selection.enqueue(db, watermark)

    def claim(self, *, worker_id: str, stage: StageTwo) -> ConsolidationClaimOutcome:
        """Take the global lock. Nobody asks here whether there is anything to do: the diff of the folder tells."""
        now = self._clock.now()
        with self._database.write() as db:
            job = leases.read_job(db, CONSOLIDATION, CONSOLIDATION_KEY)
            if job and (refused := _refusal(job, stage=stage, now=now)):
                return refused
            token = self._new_token()
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

    def heartbeat(self, token: str, *, lease_seconds: int) -> bool:
        """Renew the lease. False: it has run out or was taken over, so stop."""
        now = self._clock.now()
        with self._database.write() as db:
            return leases.renew(db, CONSOLIDATION, CONSOLIDATION_KEY, token=token, lease_seconds=lease_seconds, now=now)

    def succeed(self, token: str, *, watermark: int, selected: Iterable[Stage1Output]) -> bool:
        """The folder holds exactly these versions up to the watermark. False: the lock is somebody else's by now.

        Pass `Selection.selected`, not `on_disk`: what only the previous selection holds leaves the disk next time.
        """
        now, retries = self._clock.now(), StageTwo().retries
        with self._database.write() as db:
            done = execute(db, "finish_consolidation_job", token=token, watermark=watermark, retries=retries, now=now)
            if done.rowcount != 1:
                return False
            execute(db, "clear_selection")
            versions = [
                {"thread_id": to_sql(output.thread_id), "source_updated_at": output.source_updated_at}
                for output in selected
            ]
            db.executemany(QUERIES["mark_selected"], versions)
            return True

    def fail(self, token: str, *, reason: str, retry_delay_seconds: int, or_unowned: bool = False) -> bool:
        """Give the lock up, with the reason. `or_unowned` also fails a running job that has no owner."""
        with self._database.write() as db:
            return leases.fail(
                db,
                CONSOLIDATION,
                CONSOLIDATION_KEY,
                token=token,
                reason=cut_reason(reason, self._max_reason_chars),
                retry_delay_seconds=retry_delay_seconds,
                or_unowned=or_unowned,
                now=self._clock.now(),
            )

    def release(self, token: str) -> bool:
        """Give the lock back unused: it can be taken again at once, and no retry is spent. False: it is not ours."""
        with self._database.write() as db:
            return leases.release(db, CONSOLIDATION, CONSOLIDATION_KEY, token=token)

    def job(self) -> Job | None:
        """How the job of phase 2 stands."""
        with self._database.read() as db:
            return leases.read_job(db, CONSOLIDATION, CONSOLIDATION_KEY)

    def select(self, *, limit: int, max_unused_days: int) -> Selection:
        """What the next consolidation works on."""
        with self._database.read() as db:
            chosen = selection.select(db, limit=limit, max_unused_days=max_unused_days, now=self._clock.now())
            return tombstones.without_buried(db, quarantine.without_quarantined(db, chosen))

    def trust_line(self, line_id: str) -> None:
        """Let a line in that `Selection.withheld` names, in whatever session it stands, from the next time on."""
        with self._database.write() as db:
            execute(db, "trust_line", line_id=line_id, now=self._clock.now())

    def undo(self, restored: Sequence[Stage1Restored]) -> int:
        """These outputs are selected again as they were; returns how many that came later stay out from now on, until
        their threads change or `redo`."""
        with self._database.write() as db:
            return undoing.undo(db, tombstones.restored_without(db, restored))

    def redo(self) -> int:
        """Let the next consolidation decide again about what was undone; returns how many outputs that are."""
        with self._database.write() as db:
            execute(db, "reopen_undone")
            changed = execute(db, "let_go").rowcount
            if changed:
                selection.enqueue(db, self._clock.now())
            return changed


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
