"""OpenCode's database, 1.2 and later: `session`, `message` and `part`, or `session_message` in newer versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from errno import ENOENT
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.sessions.agents.opencode.records import (
    Message,
    Session,
    Stored,
    decoded,
    is_undone,
    message_of,
)
from stillroom.sessions.conversation import text_of
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.sqlite_source import as_os_error, columns, opened, pieces
from stillroom.sessions.stream import enclosed
from stillroom.thread import FileStamp

_SESSION = {
    "id": "id",
    "project_id": "projectID",
    "parent_id": "parentID",
    "directory": "directory",
    "title": "title",
    "version": "version",
    "agent": "agent",
}
_TIMES = ("time_created", "time_updated", "time_archived")
_JSON = ("permission", "revert")
# Both are counted by their indexes, and the last message is the one that may still grow.
_COUNTS = """
    SELECT (SELECT count(*) FROM message WHERE session_id = :id),
        (SELECT count(*) FROM part WHERE session_id = :id),
        (SELECT max(part.time_updated) FROM part WHERE message_id = (
            SELECT id FROM message WHERE session_id = :id ORDER BY time_created DESC, id DESC LIMIT 1
        ))
"""
_ROW_COUNTS = """
    SELECT count(*), 0, max(time_updated) FROM session_message WHERE session_id = :id
"""
# What they hold is read in pieces: a value that is selected is in memory as a whole.
_MESSAGES = "SELECT rowid, id FROM message WHERE session_id = ? ORDER BY time_created, id"
_PARTS = "SELECT rowid FROM part WHERE message_id = ? ORDER BY id"
_ROWS = "SELECT rowid, id, type, time_created FROM session_message WHERE session_id = ? ORDER BY seq"
# A fork keeps the times of the messages that it takes over, so that they are earlier than itself.
_FIRST = "SELECT min(time_created) FROM message WHERE session_id = ?"
_ORIGIN = """
    SELECT 1 FROM session AS other JOIN message ON message.session_id = other.id
    WHERE other.id != :id AND other.project_id = :project AND other.time_created < :created
        AND message.time_created = :first
    LIMIT 1
"""
# A message without its parts.
_MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_stored = msgspec.json.Decoder(Stored)


def sessions(path: Path) -> Iterator[tuple[Session, FileStamp]]:
    """Every session with how it looks now. Raises `sqlite3.Error` or `OSError`."""
    with opened(path) as db:
        has_messages, has_rows = bool(columns(db, "message")), bool(columns(db, "session_message"))
        for session in _sessions(db):
            seen = [session.created_ms, _number(session.time.updated)]
            size = 0
            for there, query in ((has_messages, _COUNTS), (has_rows, _ROW_COUNTS)):
                if there:
                    messages, parts, last = db.execute(query, {"id": session.id}).fetchone()
                    size += messages + parts
                    seen.append(_number(last))
            yield session, FileStamp(size=-size, mtime_ns=max(seen) * 1_000_000)


def session(path: Path, session_id: str) -> Session:
    """Raises `OSError` if it can't be read, or is gone."""
    try:
        with opened(path) as db:
            found = next(_sessions(db, session_id), None)
    except sqlite3.Error as error:
        raise as_os_error(error) from error
    if found is None:
        raise OSError(ENOENT, "the session is gone")
    return found


def lines(path: Path, session: Session, *, reading: Reading = READING) -> Generator[bytes, None, None]:
    """The lines of a session, in pieces. Raises `OSError` where the database can't be read."""
    try:
        with opened(path) as db:
            if columns(db, "message"):
                yield from _v1(db, session, reading.chunk_bytes)
            if columns(db, "session_message"):
                yield from _v2(db, session, reading.chunk_bytes)
    except sqlite3.Error as error:
        raise as_os_error(error) from error


def _sessions(db: sqlite3.Connection, session_id: str | None = None) -> Iterator[Session]:
    there = columns(db, "session")
    names = [name for name in (*_SESSION, *_TIMES, *_JSON) if name in there]
    if "id" not in names:
        raise sqlite3.DatabaseError("it has no table of sessions")
    query = f"SELECT {', '.join(names)} FROM session"
    rows = db.execute(f"{query} WHERE id = ?", (session_id,)) if session_id is not None else db.execute(query)
    for values in rows:
        if (session := _session(names, values)) is not None:
            yield session


def _session(names: Sequence[str], values: Sequence[Any]) -> Session | None:
    row = dict(zip(names, values, strict=True))
    texts = {ours: _text(row.get(name)) for name, ours in _SESSION.items()}
    time = {name.removeprefix("time_"): row.get(name) for name in _TIMES}
    try:
        return msgspec.convert({**texts, "time": time, **{name: decoded(row.get(name)) for name in _JSON}}, Session)
    except msgspec.ValidationError:
        return None


def _v1(db: sqlite3.Connection, session: Session, size: int) -> Generator[bytes, None, None]:
    origin = _has_origin(db, session)
    for rowid, message_id in db.execute(_MESSAGES, (session.id,)):
        try:
            stored = _stored.decode(next(pieces(db, "message", "data", rowid, _MAX_MESSAGE_BYTES), b""))
        except UNREADABLE:
            stored = Stored()  # whoever spoke: its parts are counted, and nothing is made of them
        name = _text(message_id) or ""
        message = message_of(stored, session, message_id=name, origin=origin)
        for (part,) in db.execute(_PARTS, (name,)):
            yield from enclosed("part", pieces(db, "part", "data", part, size), message)


def _has_origin(db: sqlite3.Connection, session: Session) -> bool:
    """Whether the session that this one was forked from is still there."""
    (first,) = db.execute(_FIRST, (session.id,)).fetchone()
    if not isinstance(first, int) or first >= session.created_ms:
        return False
    asked = {"id": session.id, "project": session.project_id, "created": session.created_ms, "first": first}
    return db.execute(_ORIGIN, asked).fetchone() is not None


def _v2(db: sqlite3.Connection, session: Session, size: int) -> Generator[bytes, None, None]:
    for rowid, row_id, kind, created in db.execute(_ROWS, (session.id,)):
        name = _text(row_id) or ""
        message = Message(
            id=name,
            role=_text(kind) or "",
            at=_number(created) or None,
            cwd=text_of(session.directory) or None,
            undone=is_undone(session, name),
        )
        yield from enclosed("row", pieces(db, "session_message", "data", rowid, size), message)


def _text(value: object) -> str | None:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else None


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
