"""The tables of the OpenAI Agents SDK's sessions, whatever they are called: one row a Responses item."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Set
from pathlib import Path

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.chunks import enclosed
from stillroom.rollouts.agents.rows import Row
from stillroom.rollouts.agents.sqlite import as_os_error, columns, opened, pieces, quoted
from stillroom.rollouts.timestamps import parse_timestamp
from stillroom.thread import FileStamp

# What `SQLiteSession` and `SQLAlchemySession` call the columns; only the tables can be renamed.
_TABLES = """
    SELECT own.name FROM sqlite_master AS own, pragma_table_info(own.name) AS field
    WHERE own.type = 'table' AND field.name IN ('id', 'session_id', 'message_data', 'created_at')
    GROUP BY own.name HAVING count(*) = 4 ORDER BY own.name
"""
# What `AdvancedSQLiteSession` has beside them.
_STRUCTURE = "message_structure"
_BRANCHES = {"session_id", "message_id", "branch_id"}
# The first two by the index that the SDK makes; times of two rows a session.
_SESSIONS = """
    SELECT own.session_id, own.count, own.last, first.created_at, last.created_at
    FROM (
        SELECT session_id, count(*) AS count, min(rowid) AS first, max(rowid) AS last FROM {table}
        GROUP BY session_id
    ) AS own
    JOIN {table} AS first ON first.rowid = own.first
    JOIN {table} AS last ON last.rowid = own.last
"""
_ROWS = """
    SELECT rowid, created_at FROM {table}
    WHERE session_id = ? AND typeof(message_data) IN ('text', 'blob') ORDER BY rowid
"""
# A branch takes over the messages ahead of its beginning, by their ids. The one that was written to last is alive.
_LEFT = """
    SELECT message_id FROM message_structure WHERE session_id = :id
    EXCEPT SELECT message_id FROM message_structure WHERE session_id = :id AND branch_id = (
        SELECT branch_id FROM message_structure WHERE session_id = :id ORDER BY message_id DESC, rowid DESC LIMIT 1
    )
"""


class Stored(msgspec.Struct):
    """What the database knows of an item beside what stands in it."""

    at: int | None = None
    #: It stands on a branch that the program left.
    left: bool = False


def sessions(path: Path) -> list[Row] | None:
    """Every session as it looks now; None if there is no table of them. Raises `sqlite3.Error` or `OSError`."""
    found: dict[str, Row] = {}
    with opened(path) as db:
        tables = _tables(db)
        for table in tables:
            for name, count, last, first_at, last_at in db.execute(_SESSIONS.format(table=quoted(table))):
                row = _row(_text(name), count, last, _time(first_at), _time(last_at))
                found[row.session] = _joined(found[row.session], row) if row.session in found else row
    return list(found.values()) if tables else None


def lines(path: Path, session: str, *, reading: Reading = READING) -> Generator[bytes, None, None]:
    """The lines of a session, in pieces. Raises `OSError` where the database can't be read."""
    try:
        with opened(path) as db:
            left = _left(db, session)
            for table in _tables(db):
                for rowid, at in db.execute(_ROWS.format(table=quoted(table)), (session,)):
                    data = pieces(db, table, "message_data", rowid, reading.chunk_bytes)
                    yield from enclosed("item", data, Stored(at=_time(at), left=rowid in left))
    except sqlite3.Error as error:
        raise as_os_error(error) from error


def _tables(db: sqlite3.Connection) -> list[str]:
    return [_text(name) for (name,) in db.execute(_TABLES)]


def _left(db: sqlite3.Connection, session: str) -> Set[int]:
    """Rows of branches that the program went back from."""
    if not columns(db, _STRUCTURE) >= _BRANCHES:
        return frozenset()
    return {row for (row,) in db.execute(_LEFT, {"id": session})}


def _row(name: str, count: int, last: int, first_at: int | None, last_at: int | None) -> Row:
    # Numbers of rows are never used twice: a row that was taken away and written anew shows, too.
    stamp = FileStamp(size=-count, mtime_ns=(last_at or 0) * 1_000_000, offset=last)
    return Row(name, stamp, first_at, last_at)


def _joined(one: Row, other: Row) -> Row:
    """Of a session with rows in two tables."""
    created = [at for at in (one.created_ms, other.created_ms) if at is not None]
    updated = [at for at in (one.updated_ms, other.updated_ms) if at is not None]
    stamp = FileStamp(
        size=one.stamp.size + other.stamp.size,
        mtime_ns=max(one.stamp.mtime_ns, other.stamp.mtime_ns),
        offset=one.stamp.offset + other.stamp.offset,
    )
    return Row(one.session, stamp, min(created, default=None), max(updated, default=None))


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _time(value: object) -> int | None:
    return parse_timestamp(value) if isinstance(value, bytes) else None
