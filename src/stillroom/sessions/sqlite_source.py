"""Read sessions from other programs' SQLite databases without leaving a trace: one row a session.

Nothing is written, and no file is left beside a database.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from errno import EBUSY, EIO
from pathlib import Path
from typing import NamedTuple

from stillroom.errors import RolloutError
from stillroom.sessions.discovery import Broken, Discovery, Found, Unchanged
from stillroom.sessions.names import MAX_NAME_CHARS, rollout_path
from stillroom.thread import FileStamp, Thread

# --- Other programs' SQLite databases, read without a trace: nothing is written, and no file is left beside them.

# A client that writes holds the lock for milliseconds.
_TIMEOUT_SECONDS = 2.0


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that can only read; texts come as bytes. Raises `sqlite3.Error`.

    While a client has the database open its `-wal` is there, or, in the older way, its `-journal` while it writes.
    The connection then is an ordinary one of `mode=ro`, in one transaction. Without either nobody writes: an ordinary
    reader would leave `-wal` and `-shm` files in a folder that is not ours, or keep a client waiting, so the file is
    read as it lies, and that it stayed as it was is checked at the end.
    """
    alone = not _is_in_use(path)
    before = _looks(path)
    uri = f"{path.absolute().as_uri()}?{'immutable=1' if alone else 'mode=ro'}"
    with closing(sqlite3.connect(uri, uri=True, timeout=_TIMEOUT_SECONDS, isolation_level=None)) as db:
        db.text_factory = bytes
        db.execute("BEGIN")
        try:
            yield db
        except UnicodeDecodeError as error:  # of a message of SQLite's about a damaged schema
            raise sqlite3.DatabaseError("it is damaged") from error
    if alone and (_is_in_use(path) or _looks(path) != before):
        changed = sqlite3.OperationalError("it was written to while it was read")
        changed.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise changed


def as_os_error(error: sqlite3.Error) -> OSError:
    """The same for who reads files: `EBUSY` where a client writes just now, and a later look finds it at rest."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without what it says beyond the kind
    return OSError(EBUSY if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) else EIO, str(error))


def columns(db: sqlite3.Connection, table: str) -> frozenset[str]:
    """The names of a table's columns; none if there is no such table."""
    return frozenset(
        row[0].decode("utf-8", "replace") for row in db.execute("SELECT name FROM pragma_table_info(?)", (table,))
    )


def quoted(name: str) -> str:
    """A name of a table or column, of whatever letters, as it stands in a statement."""
    return '"' + name.replace('"', '""') + '"'


def pieces(db: sqlite3.Connection, table: str, column: str, rowid: int, size: int) -> Iterator[bytes]:
    """A text or blob of any length, at constant memory."""
    with db.blobopen(table, column, rowid, readonly=True) as blob:
        while piece := blob.read(size):
            yield piece


def _is_in_use(path: Path) -> bool:
    return any(path.with_name(path.name + end).exists() for end in ("-wal", "-journal"))


def _looks(path: Path) -> tuple[int, int]:
    status = os.stat(path)  # noqa: PTH116
    return status.st_size, status.st_mtime_ns


_SUFFIXES = frozenset({".db", ".db3", ".sqlite", ".sqlite3"})
_HEADER = b"SQLite format 3\0"


class Row(NamedTuple):
    """A session of a database, as it looks now."""

    session: str
    stamp: FileStamp
    created_ms: int | None = None
    updated_ms: int | None = None


def databases(root: Path) -> Iterator[Path]:
    """`root` itself, or the databases anywhere under it."""
    if root.is_file():
        yield root
    elif root.is_dir():
        yield from (path for path in sorted(_named(root)) if is_database(path))


def _named(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.suffix.lower() in _SUFFIXES)


def is_database(path: Path) -> bool:
    """Whether the first bytes of a file are SQLite's."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER
    except OSError:
        return False


def scan_rows(
    path: Path,
    known: Mapping[str, FileStamp],
    rows: Callable[[Path], list[Row] | None],
    look: Callable[[Path, Row], Thread],
) -> Iterator[Discovery]:
    """What stands in one database; nothing if `rows` says that it has no table for sessions.

    One that is locked or damaged is reported, and what was known of its sessions stays; the next look tries again.
    """
    try:
        found = rows(path)
    except (sqlite3.Error, OSError) as error:
        yield Broken(str(path), f"`{path}` can't be read now: {error}")
        yield from (Unchanged(name) for name in known if name.startswith(f"{path}#"))
        return
    for row in found or ():
        rollout = rollout_path(path, row.session)
        name = str(rollout)
        if len(row.session) > MAX_NAME_CHARS:
            yield Broken(
                name[:MAX_NAME_CHARS], f"`{path}` can't be used: {row.session[:80]!r}… is no name of a session"
            )
        elif known.get(name) == row.stamp:
            yield Unchanged(name)
        else:
            try:
                yield Found(look(rollout, row), row.stamp)
            except RolloutError as error:
                yield Broken(name, str(error))
