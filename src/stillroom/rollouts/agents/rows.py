"""Look at the databases of programs: each row, or group of rows, is a session with a stamp of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from stillroom.errors import RolloutError
from stillroom.rollouts.agents.names import MAX_NAME_CHARS, rollout_path
from stillroom.rollouts.found import Broken, Discovery, Found, Unchanged
from stillroom.thread import FileStamp, Thread

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
