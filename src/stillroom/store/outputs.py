"""What was extracted of threads: the outputs of phase 1.

Each method of `Outputs` is one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from stillroom.clock import DAY_SECONDS, Clock
from stillroom.store.database import Database
from stillroom.store.records import Learnt, Leaving, OutputStamp, RawMemory, Rested, Stage1Output
from stillroom.store.selection import leaving, name_of, to_output
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import from_sql, to_sql, values


class Outputs:
    """At most one of each thread. One may be remembered if neither its mode nor a switch of its project forbids it."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def latest(self, *, limit: int = 100) -> list[Stage1Output]:
        """Those that may be remembered, newest first."""
        with self._database.read() as db:
            return [to_output(row) for row in execute(db, "list_outputs", limit=limit)]

    def get(self, thread_id: str) -> Stage1Output | None:
        """The output of this thread, if it may be remembered."""
        with self._database.read() as db:
            row = execute(db, "get_output", thread_id=to_sql(thread_id)).fetchone()
        return to_output(row) if row else None

    def stamps(self) -> list[OutputStamp]:
        """Which version there is of every output that may be remembered: what an index of them has to follow."""
        with self._database.read() as db:
            return [OutputStamp(**values(row)) for row in execute(db, "list_output_stamps")]

    def learnt(self) -> list[Learnt]:
        """Where, when and at which commit something was extracted, oldest first."""
        with self._database.read() as db:
            return [
                Learnt(from_sql(row["cwd"]), row["at"], row["commit_id"] and from_sql(row["commit_id"]))
                for row in execute(db, "list_learnt")
            ]

    def raw_memories(self, *, one_in: int = 1) -> list[RawMemory]:
        """The raw memory of every thread, whether it may be remembered or not; or of one in so many, as a sample."""
        with self._database.read() as db:
            return [_raw_memory(row) for row in execute(db, "list_raw_memories", one_in=one_in)]

    def raw_memory(self, thread_id: str) -> RawMemory | None:
        """That of one thread, whether it may be remembered or not."""
        with self._database.read() as db:
            row = execute(db, "get_raw_memory", thread_id=to_sql(thread_id)).fetchone()
        return _raw_memory(row) if row else None

    def count(self) -> int:
        """How many threads something was extracted of, whether they may be remembered or not."""
        with self._database.read() as db:
            return int(execute(db, "count_outputs").fetchone()["outputs"])

    def prune(self, *, max_unused_days: int, limit: int) -> tuple[Leaving, ...]:
        """Remove outputs that are not selected and were not used for longer than this, oldest first; returns which.
        Those with preferences stay. Their jobs stay done, and say that the output expired."""
        now = self._clock.now()
        cutoff = now - max(max_unused_days, 0) * DAY_SECONDS
        with self._database.write() as db:
            gone = execute(db, "prune_outputs", cutoff=cutoff, limit=max(limit, 0)).fetchall()
            for row in gone:
                execute(db, "mark_expired", thread_id=row["thread_id"], now=now)
            return tuple(_left(db, row) for row in gone)

    def leaving(self, *, max_unused_days: int, before: int) -> list[Leaving]:
        """What the memory rests on and will lose before that second, unless somebody uses it; first at first."""
        with self._database.read() as db:
            return leaving(db, max_unused_days=max_unused_days, before=before)

    def rested_on(self) -> list[Rested]:
        """What the memory rests on."""
        with self._database.read() as db:
            return [Rested(**values(row)) for row in execute(db, "list_rested_on")]

    def give(self, given: Mapping[str, int]) -> int:
        """Sessions were given these outputs, each at that second: a use in time, not in rank. Returns how many are
        younger for it."""
        if not given:
            return 0
        with self._database.write() as db:
            rows = [{"thread_id": to_sql(thread_id), "at": at} for thread_id, at in sorted(given.items())]
            return db.executemany(QUERIES["give_output"], rows).rowcount


def _left(db: sqlite3.Connection, row: sqlite3.Row) -> Leaving:
    thread_id, slug = from_sql(row["thread_id"]), row["rollout_slug"]
    name, cwd = name_of(db, thread_id, slug=slug and from_sql(slug))
    return Leaving(thread_id=thread_id, name=name, cwd=cwd)


def _raw_memory(row: sqlite3.Row) -> RawMemory:
    return RawMemory(from_sql(row["thread_id"]), row["source_updated_at"], from_sql(row["raw_memory"]))
