"""Find Continue's threads: a document each, which the client writes anew with every message."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import cache
from pathlib import Path

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.chunks import stream_chunks
from stillroom.rollouts.agents.continue_dev.records import Records
from stillroom.rollouts.agents.continue_dev.sessions import (
    HISTORY,
    INDEX,
    Session,
    inherited,
    read_index,
    read_session,
)
from stillroom.rollouts.agents.decoder import text_of
from stillroom.rollouts.agents.documents import cut, lines
from stillroom.rollouts.agents.ends import preview_of
from stillroom.rollouts.agents.scan import File, scan
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.found import Discovery, Found
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.speech import preview_text
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream
from stillroom.thread import FileStamp, Thread

AGENT = "continue"
COPIES = True
_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
_PLACES = ("sessions/*.json", "*.json")
_UNTITLED = frozenset({"Untitled Session", "New Session"})


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session under the client's home, oldest first; `root` may also be a folder of sessions, or one."""
    began = cache(read_index)
    yield from scan(_files(root.absolute()), known, lambda file: _look(file, began, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session. Raises `RolloutError` if it can't be opened.

    What the session that it was forked from holds too is left out; with `stop_after_bytes` that is not looked for.
    """
    try:
        session = read_session(path, reading=reading)
        taken: frozenset[int] = frozenset()
        if stop_after_bytes is None:
            taken = inherited(path, max_line_bytes=max_line_bytes, reading=reading)
        return _open(path, session, taken, max_line_bytes, stop_after_bytes, reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error


def _open(
    path: Path,
    session: Session,
    taken: frozenset[int],
    max_line_bytes: int,
    stop_after_bytes: int | None,
    reading: Reading,
) -> ItemStream[Records]:
    return stream_chunks(
        _lines(path, reading),
        path,
        Records(ReadStats(), cwd=session.cwd or None, inherited=taken, reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _lines(path: Path, reading: Reading) -> Generator[bytes, None, None]:
    with open_stored(path, reading=reading) as file:
        yield from lines(file, HISTORY, reading=reading)


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
    # In the client's home there are other documents beside the folder of sessions.
    places = _PLACES[:1] if (root / "sessions").is_dir() else _PLACES
    yield from (path for place in places for path in root.glob(place) if path.name != INDEX)


def _look(file: File, began: Callable[[Path], dict[str, int]], max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    session = read_session(path, reading=reading)
    session_id = text_of(session.session_id)
    if _ID.fullmatch(session_id) is None:
        whole = cut(path, reading=reading)
        raise RolloutError(f"`{path}` can't be used: it does not say which session it is{whole}")
    with _open(path, session, frozenset(), max_line_bytes, reading.long_head_bytes, reading) as items:
        preview = preview_of(items, reading=reading)
    modified = file.mtime_ns // 1_000_000
    created = began(path.parent).get(session_id, modified)
    title = text_of(session.title)
    thread = Thread(
        thread_id=session_id,
        agent=AGENT,
        rollout_path=str(path),
        source="vscode" if session.is_of_editor else "cli",
        cwd=session.cwd,
        created_at_ms=created,
        updated_at_ms=max(modified, created),
        title="" if title in _UNTITLED else preview_text(title, max_chars=reading.preview_chars),
        preview=preview,
    )
    return Found(thread, file.stamp(0))
