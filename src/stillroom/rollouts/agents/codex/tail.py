"""The end of a rollout: when it was last written to, and what later `session_meta` lines changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.batches import read_batches
from stillroom.rollouts.lines import open_stored, stored_path
from stillroom.rollouts.meta import Git, SessionMeta, parse_meta
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.timestamps import parse_timestamp
from stillroom.thread import FileStamp, MemoryMode

_TIMESTAMP = b'{"timestamp":"'
_META = b'"session_meta"'
# The type of a line stands in its first bytes.
_START_BYTES = 200


class _Meta(msgspec.Struct):
    type: str
    payload: msgspec.Raw


class _Timed(msgspec.Struct):
    timestamp: str = ""


class Tail(msgspec.Struct):
    """What the end of the file says; None where it says nothing."""

    last_ms: int | None = None
    memory_mode: MemoryMode | None = None
    git: Git | None = None
    #: From here the file is read when it has grown: the end of its last whole line, or the last line that changed
    #: mode or branch, so that its news are never lost.
    offset: int = 0


def read_tail(
    path: Path,
    *,
    thread_id: str,
    size: int,
    stamp: FileStamp | None,
    max_line_bytes: int,
    reading: Reading = READING,
) -> Tail:
    """Read what was appended since `stamp`, or, of a new file, a window at its end. An archive is read whole.

    `session_meta` lines of another thread (a fork carries its parent's) change nothing.
    """
    tail = Tail()
    stats = ReadStats()
    news: int | None = None
    timed = b""
    with open_stored(path, reading=reading) as file:
        end = 0
        if stored_path(path).suffix != ".zst":
            end = _start(size, stamp, reading)
            if end and (stamp is None or end != stamp.offset):
                file.seek(end - 1)
                end += len(file.readline(reading.tail_window_bytes)) - 1
            else:
                file.seek(end)
            if (quick := _quick(file.read(reading.tail_window_bytes + 1), end, reading)) is not None:
                return quick
            file.seek(end)
        start = end
        for lines in read_batches(file, stats, max_line_bytes=max_line_bytes, wanted=_is_meta, reading=reading):
            begin = end
            if not stats.torn:
                end = start + stats.bytes
            if len(lines) > 1:
                begin = end - sum(map(len, lines))  # a mark at the start of the file is in none of them
            timed = _last_timed(lines) or timed or next((line for line in lines if line.strip()), b"")
            for at, meta in _metas(lines, begin):
                if at and meta.id == thread_id:
                    news = at
                    tail.memory_mode = meta.memory_mode or tail.memory_mode
                    tail.git = meta.git or tail.git
    tail.last_ms = _time(timed)
    tail.offset = end if news is None else news
    return tail


def _quick(window: bytes, start: int, reading: Reading) -> Tail | None:
    """The tail, where the rest of the file is one window in which no `session_meta` line stands, as in most."""
    last = window.rfind(b"\n" + _TIMESTAMP)
    if last < 0 or len(window) > reading.tail_window_bytes or _META in window:
        return None
    return Tail(last_ms=_time(window[last + 1 : last + _START_BYTES]), offset=start + window.rfind(b"\n") + 1)


def _start(size: int, stamp: FileStamp | None, reading: Reading) -> int:
    if stamp is not None and 0 < stamp.offset <= size:
        return stamp.offset
    return max(size - reading.tail_window_bytes, 0)


def _last_timed(lines: list[bytes]) -> bytes:
    return next((line[:_START_BYTES] for line in reversed(lines) if line.startswith(_TIMESTAMP)), b"")


def _metas(lines: list[bytes], begin: int) -> Iterator[tuple[int, SessionMeta]]:
    """The `session_meta` lines with their places in the file; the first line stands at `begin`."""
    # They are hardly ever there: one look for all lines is cheaper than one at each.
    for line in lines if _META in b"".join(lines) else ():
        if _is_meta(line) and (meta := _meta(line)) is not None:
            yield begin, meta
        begin += len(line)


def _is_meta(line: bytes) -> bool:
    return _META in line[:_START_BYTES]


def _meta(line: bytes) -> SessionMeta | None:
    try:
        record = msgspec.json.decode(line, type=_Meta)
        return parse_meta(bytes(record.payload)) if record.type == "session_meta" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _time(line: bytes) -> int | None:
    if line.startswith(_TIMESTAMP):
        return parse_timestamp(line[len(_TIMESTAMP) :].partition(b'"')[0])
    try:
        return parse_timestamp(msgspec.json.decode(line, type=_Timed).timestamp.encode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
