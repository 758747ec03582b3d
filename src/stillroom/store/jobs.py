"""The jobs of both phases together: who works on them, and what is left of those who do no more.

Each method of `Jobs` is one transaction.
"""

from __future__ import annotations

from typing import NamedTuple

from stillroom.clock import Clock
from stillroom.config import StageOne, StageTwo
from stillroom.store import leases
from stillroom.store.database import Database
from stillroom.store.leases import CONSOLIDATION, STAGE1, cut_reason, to_job
from stillroom.store.records import Job
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql, to_sql


class HeldJob(NamedTuple):
    """A job that somebody works on, or was killed over."""

    kind: str
    job_key: str
    job: Job


class Jobs:
    """Of either phase."""

    def __init__(self, database: Database, *, clock: Clock, max_reason_chars: int) -> None:
        self._database = database
        self._clock = clock
        self._max_reason_chars = max_reason_chars

    def running(self) -> list[HeldJob]:
        """Those that somebody works on, or was killed over."""
        with self._database.read() as db:
            rows = execute(db, "list_running_jobs").fetchall()
        return [HeldJob(row["kind"], from_sql(row["job_key"]), to_job(row)) for row in rows]

    def end(self, held: HeldJob, *, reason: str) -> bool:
        """Take a job from an owner who is known to be gone: it costs the retry that taking it over would cost, and it
        may be claimed at once. False: somebody else has it by now."""
        with self._database.write() as db:
            return leases.fail(
                db,
                held.kind,
                to_sql(held.job_key),
                token=held.job.ownership_token,
                reason=cut_reason(reason, self._max_reason_chars),
                retry_delay_seconds=None,
                or_unowned=held.job.ownership_token is None,
                now=self._clock.now(),
            )

    def retry_failed(self) -> int:
        """What failed may be tried again at once, with all its retries. Returns how many jobs that are."""
        now = self._clock.now()
        retries = {STAGE1: StageOne().retries, CONSOLIDATION: StageTwo().retries}
        with self._database.write() as db:
            return sum(
                execute(db, "retry_failed_jobs", kind=kind, retries=count, now=now).rowcount
                for kind, count in retries.items()
            )
