"""What is read of a session to register it: its first words, and the lines at both ends of its file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import EmptyRollout, RolloutError
from stillroom.sessions.conversation import UNREADABLE, LineDecoder
from stillroom.sessions.discovery import File
from stillroom.sessions.jsonl import open_stored, read_batches
from stillroom.sessions.speech import first_words
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream

T = TypeVar("T")


class Span(NamedTuple):
    """When a session began and went on, in milliseconds."""

    began: int
    went_on: int


@dataclass(slots=True)
class Times:
    """What the lines at both ends tell of a session's times, and, of one client or another, of more."""

    first_ms: int | None = None
    last_ms: int | None = None

    def saw(self, time_ms: int | None) -> None:
        """The time of the next line, if it has one."""
        if time_ms is not None:
            self.first_ms = self.first_ms or time_ms
            self.last_ms = max(self.last_ms or time_ms, time_ms)

    def span(self, file: File, *, began_ms: int | None = None) -> Span:
        """The session's times, as far as none are told those of its file. `began_ms`: it is known from elsewhere."""
        changed = file.mtime_ns // 1_000_000
        began = began_ms or self.first_ms or changed
        return Span(began, max(self.last_ms or changed, began))


def read_small(path: Path, *, max_bytes: int = 64 * 1024) -> bytes:
    """The beginning of a file that lies beside a session; nothing if there is none."""
    try:
        with open_stored(path) as file:
            return file.read(max_bytes)
    except (OSError, RolloutError):
        return b""


def read_description(path: Path, kind: type[T], *, max_bytes: int = 64 * 1024) -> T:
    """What a JSON file beside a session tells; `kind()` if it can't be read."""
    try:
        return msgspec.json.decode(read_small(path, max_bytes=max_bytes), type=kind)
    except UNREADABLE:
        return kind()


def preview_of(items: ItemStream[LineDecoder], *, reading: Reading = READING) -> str:
    """The first words of the user among the items; "" if there are none."""
    words = (first_words(item, max_chars=reading.preview_chars) for item in items)
    try:
        return next(filter(None, words), "")
    except EmptyRollout:
        return ""


class Asked(NamedTuple):
    """What a session is about."""

    words: str
    #: When its first item was recorded, in milliseconds.
    at_ms: int | None


def asked_of(items: ItemStream[LineDecoder], *, reading: Reading = READING) -> Asked:
    """The first words of the user or, where nobody is at the other end, of the task; "" if there are none."""
    at_ms: int | None = None
    try:
        for item in items:
            at_ms = item.timestamp_ms if at_ms is None else at_ms
            if words := first_words(item, max_chars=reading.preview_chars, of_agents=True):
                return Asked(words, at_ms)
    except EmptyRollout:
        pass
    return Asked("", at_ms)


def read_head(
    path: Path,
    decoder: LineDecoder,
    learn: Callable[[bytes], None],
    *,
    max_line_bytes: int,
    reading: Reading = READING,
) -> str:
    """Hand the first lines to `learn`, down to the first words of the user, which are returned.

    The words are looked for farther than the lines are learned from. Raises `OSError` or `RolloutError`.
    """
    stats = ReadStats()
    with open_stored(path, reading=reading) as file:
        for lines in read_batches(
            file,
            stats,
            max_line_bytes=max_line_bytes,
            stop_after_bytes=reading.long_head_bytes,
            wanted=decoder.may_matter,
            reading=reading,
        ):
            for line in lines:
                if stats.bytes <= reading.head_bytes:
                    learn(line)
                for item in decoder.items([line], 0):
                    if words := first_words(item, max_chars=reading.preview_chars):
                        return words
    return ""


def read_tail(
    path: Path,
    learn: Callable[[bytes], None],
    *,
    size: int,
    telling: tuple[bytes, ...] | None = None,
    timed: bytes = b'"timestamp"',
    reading: Reading = READING,
) -> int:
    """Hand the last whole lines to `learn`; returns where the last one ends. Raises `OSError` or `RolloutError`.

    With `telling` only those that hold one of these words, and from the last line on that holds `timed`: decoding them
    all would take longer than all else that registering a session takes.
    """
    start = max(size - reading.tail_window_bytes, 0)
    with open_stored(path, reading=reading) as file:
        file.seek(start)
        window = file.read(size - start)
    end = window.rfind(b"\n") + 1
    # Of a line that begins ahead of the window there is only a part.
    first = window.find(b"\n") + 1 if start else 0
    last = first if telling is None else window.rfind(b"\n", first, max(window.rfind(timed, first, end), first)) + 1
    last = max(last, first)
    for line in lines_with(telling or (), window[first:last]):
        learn(line)
    for line in window[last:end].splitlines():
        learn(line)
    return start + end


def lines_with(words: tuple[bytes, ...], text: bytes) -> Iterator[bytes]:
    """The lines of `text` that hold one of the words, in their order; the others are not looked at one by one."""
    starts: set[int] = set()
    for word in words:
        found = text.find(word)
        while found >= 0:
            starts.add(text.rfind(b"\n", 0, found) + 1)
            end = text.find(b"\n", found)
            found = text.find(word, end) if end >= 0 else -1
    for start in sorted(starts):
        end = text.find(b"\n", start)
        yield text[start : end if end >= 0 else len(text)]
