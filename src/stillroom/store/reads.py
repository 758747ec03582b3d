"""What sessions' files held when they were read as a whole.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3

from stillroom.store.records import ReadTotal, ThreadRead, UnknownField, UnknownTotal
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import to_sql, values


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
    execute(db, "clear_unknown_fields", thread_id=key)
    rows = [{"thread_id": key, "field": name, "records": records} for name, records in read.unknown_fields.items()]
    db.executemany(QUERIES["save_unknown_field"], rows)


def totals(db: sqlite3.Connection) -> list[ReadTotal]:
    return [ReadTotal(**values(row)) for row in execute(db, "total_reads")]


def unknown(db: sqlite3.Connection) -> list[UnknownTotal]:
    return [UnknownTotal(**values(row)) for row in execute(db, "total_unknown")]


def unknown_fields(db: sqlite3.Connection) -> list[UnknownField]:
    return [UnknownField(**values(row)) for row in execute(db, "total_unknown_fields")]
