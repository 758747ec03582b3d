"""What sessions' files held when they were read as a whole.

Each method of `Reads` is one transaction; `save` runs inside one of the caller.
"""

from __future__ import annotations

import sqlite3

from stillroom.store.database import Database
from stillroom.store.records import ReadTotal, ThreadRead, UnknownTotal
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import to_sql, values


class Reads:
    """What was read of every thread, summed up by agent."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, thread_id: str, read: ThreadRead) -> None:
        """Keep what the thread's file held when it was read as a whole."""
        with self._database.write() as db:
            save(db, thread_id, read)

    def totals(self) -> list[ReadTotal]:
        """What was read, by agent: also what could not be understood, and what was cut."""
        with self._database.read() as db:
            return [ReadTotal(**values(row)) for row in execute(db, "total_reads")]

    def unknown(self) -> list[UnknownTotal]:
        """What no reader knows, by agent, kind and the client's version."""
        with self._database.read() as db:
            return [UnknownTotal(**values(row)) for row in execute(db, "total_unknown")]


def save(db: sqlite3.Connection, thread_id: str, read: ThreadRead) -> None:
    """Keep it in place of what an earlier reading found."""
    key = to_sql(thread_id)
    execute(
        db,
        "save_read",
        thread_id=key,
        messages=read.messages,
        tokens=read.tokens,
        bad_lines=read.bad_lines,
        long_lines=read.long_lines,
        cut_bytes=read.cut_bytes,
    )
    execute(db, "clear_unknown", thread_id=key)
    rows = [{"thread_id": key, "kind": to_sql(kind), "records": records} for kind, records in read.unknown.items()]
    db.executemany(QUERIES["save_unknown"], rows)
