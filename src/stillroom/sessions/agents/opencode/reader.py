"""Find OpenCode's threads: rows of its database, or, of older versions, files in folders.

The `rollout_path` of a row is the database's path with the session's id as a fragment: `…/opencode.db#ses_…`; of an
older session it is the session's own file. Where both stores have a session, as after an update of the client, the
database's is taken. The stamp counts messages and parts, and its time is that of the last change to a session or to
its last message: an equal stamp means that nothing was said since. A database that is locked or damaged is reported,
and what was known of its sessions stays; the next pass tries again.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.agents.opencode import database, folders
from stillroom.sessions.agents.opencode.records import Records, Session
from stillroom.sessions.conversation import number_of, text_of
from stillroom.sessions.discovery import Broken, Discovery, Found, Unchanged
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.metadata import preview_of
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, stream_chunks
from stillroom.thread import FileStamp, Thread

AGENT = "opencode"
COPIES = False
_ID = re.compile(r"ses_\w{1,100}", re.ASCII)
# What the client calls a session until a model has named it.
_UNTITLED = re.compile(r"(?:New|Child) session - \d{4}-\d\d-\d\dT", re.ASCII)
_DATABASE = re.compile(rf"(.+)#({_ID.pattern})", re.ASCII)


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session under the client's data folder; `root` may also be a database, or a session's file."""
    root = root.absolute()
    there: set[str] = set()
    is_database = root.is_file() and root.suffix != folders.SUFFIX
    for path in [root] if is_database else sorted(root.glob("opencode*.db")):
        yield from _rows(path, known, there, max_line_bytes, reading)
    for path in folders.session_files(root):
        if path.stem not in there:
            yield _file(path, known, max_line_bytes, reading)


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session. Raises `RolloutError` if it can't be opened.

    What a fork took over is left out if the session that it came from is still there.
    """
    row = _DATABASE.fullmatch(path.name)
    try:
        session = database.session(path.with_name(row[1]), row[2]) if row else folders.read_session(path)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error
    stop = sys.maxsize if stop_after_bytes is None else stop_after_bytes
    return _stream(path, session, max_line_bytes=max_line_bytes, stop_after_bytes=stop, reading=reading)


def _stream(
    path: Path, session: Session, *, max_line_bytes: int, stop_after_bytes: int, reading: Reading
) -> ItemStream[Records]:
    if (row := _DATABASE.fullmatch(path.name)) is not None:
        chunks = database.lines(path.with_name(row[1]), session, reading=reading)
    else:
        chunks = folders.lines(path, session, reading=reading)
    return stream_chunks(
        chunks,
        path,
        Records(ReadStats(), of_agent=bool(session.parent_id), quoted=session.is_headless, reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _rows(
    path: Path, known: Mapping[str, FileStamp], there: set[str], max_line_bytes: int, reading: Reading
) -> Iterator[Discovery]:
    try:
        rows = list(database.sessions(path))
    except (sqlite3.Error, OSError) as error:
        yield Broken(str(path), f"`{path}` can't be read now: {error}")
        for name in known:
            if name.startswith(f"{path}#"):
                there.add(name.rpartition("#")[2])
                yield Unchanged(name)
        return
    for session, stamp in rows:
        there.add(session.id)
        rollout = f"{path}#{session.id}"
        if _ID.fullmatch(session.id) is None:
            yield Broken(rollout, f"`{path}` can't be used: {session.id[:80]!r} is no id of a session")
        else:
            yield _look(Path(rollout), session, stamp, known, max_line_bytes, reading)


def _file(path: Path, known: Mapping[str, FileStamp], max_line_bytes: int, reading: Reading) -> Discovery:
    try:
        stamp = folders.stamp_of(path)
        if known.get(str(path)) == stamp:
            return Unchanged(str(path))
        session = folders.read_session(path)
        if session.id != path.stem:
            return Broken(str(path), f"`{path}` can't be used: it names another session")
        return _look(path, session, stamp, known, max_line_bytes, reading)
    except RolloutError as error:
        return Broken(str(path), str(error))
    except OSError as error:
        return Broken(str(path), f"`{path}` can't be read: {error.strerror}")


def _look(
    path: Path,
    session: Session,
    stamp: FileStamp,
    known: Mapping[str, FileStamp],
    max_line_bytes: int,
    reading: Reading,
) -> Discovery:
    if known.get(str(path)) == stamp:
        return Unchanged(str(path))
    try:
        with _stream(
            path,
            session,
            max_line_bytes=max_line_bytes,
            stop_after_bytes=reading.long_head_bytes,
            reading=reading,
        ) as items:
            preview = "" if session.parent_id else preview_of(items, reading=reading)
    except RolloutError as error:
        return Broken(str(path), str(error))
    in_database = _DATABASE.fullmatch(path.name) is not None  # the newer rows don't change the session's own time
    created = session.created_ms or stamp.mtime_ns // 1_000_000
    parent = text_of(session.parent_id) or None
    title = text_of(session.title)
    agent = {"subagent": text_of(session.agent) or "other"}
    thread = Thread(
        thread_id=session.id,
        agent=AGENT,
        rollout_path=str(path),
        source=msgspec.json.encode(agent).decode() if parent else "exec" if session.is_headless else "cli",
        cwd=text_of(session.directory),
        created_at_ms=created,
        updated_at_ms=max(
            number_of(session.time.updated) or 0, stamp.mtime_ns // 1_000_000 if in_database else 0, created
        ),
        title="" if _UNTITLED.match(title) else preview_text(title, max_chars=reading.preview_chars),
        preview=preview,
        archived=bool(session.time.archived),
        parent_thread_id=parent,
        cli_version=text_of(session.version) or None,
    )
    return Found(thread, stamp)
