"""A JSON document of any size, taken apart at constant memory: the elements of one of its lists, as lines.

Only what stands on the way to the list is understood; of all else brackets and strings are followed, however deep they
are, and whoever decodes an element finds out whether it is JSON. A name that stands twice counts where it stands first.
"""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from itertools import repeat
from typing import BinaryIO

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.jsonl import BOM, open_stored, read_lines
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import open_chunks

Path = tuple[str | int, ...]
"""Where a list or an object stands: names, and numbers of elements from 0; `()` is the document itself."""

#: What follows the last whole line of a document that breaks off: a line without an end is read as torn.
TORN = b" "
#: What stands for an element that can't be held, so that the numbers of the others are right.
LEFT_OUT = b"null\n"
_BLANK = re.compile(rb"[ \t\r\n]*+")
# Ahead of a bracket that opens or closes the value at hand, past lists and objects in it that are two levels deep: few
# values are deeper, and a match costs more than what it passes over. It may also end at the quote of a string that is
# not whole, where the data ends, or after so many repetitions: each costs memory until the match is made. A possessive
# group would not, but up to Python 3.11.4 a repetition that fails half-way leaves it in the wrong place.
_FLAT = rb'[^"{}\[\]]*+(?:"[^"]*+"[^"{}\[\]]*+){0,1000}'
_ONE_LEVEL = rb"%s(?:[{\[]%s[}\]]%s){0,1000}" % ((_FLAT,) * 3)
_TO_BRACKET = re.compile(rb"%s(?:[{\[]%s[}\]]%s){0,1000}" % (_FLAT, _ONE_LEVEL, _FLAT))
_SCALAR = re.compile(rb'[^"{}\[\],: \t\r\n]*+')
_DEPTH = {0x7B: 1, 0x5B: 1, 0x7D: -1, 0x5D: -1}
_QUOTE, _COMMA, _COLON, _OPEN_LIST, _CLOSE_LIST, _OPEN, _CLOSE = b'",:[]{}'
_END = -1
# A longer name is none that anybody asks for.
_MAX_NAME_BYTES = 1024


class _BrokenOffError(Exception):
    """The document ends too early, or goes on as no JSON does."""


def lines(
    file: BinaryIO, path: Path, *, stop_after_bytes: int = sys.maxsize, reading: Reading = READING
) -> Generator[bytes, None, None]:
    """Yield the text in which each element of the list at `path` is one line, in pieces that are no lines.

    It is what `chunks.open_chunks` and an `ItemStream` take, which squeezes what is too long and counts it. `TORN` ends
    a document that breaks off, and one of which `stop_after_bytes` were read. Nothing comes of a document without such
    a list. Raises `OSError`, and `RolloutError` for what is no document.
    """
    text = _Text(file, reading.chunk_bytes, stop_after_bytes=stop_after_bytes)
    held = bytearray()  # a call costs more than a small element
    try:
        if _enter(text, path) and text.token() == _OPEN_LIST:
            for _ in _elements(text):
                for piece in text.value():
                    # In JSON a newline can only stand between two tokens.
                    held += piece.replace(b"\n", b" ")
                    if len(held) >= reading.batch_bytes:
                        yield bytes(held)
                        held.clear()
                held += b"\n"
    except _BrokenOffError:
        del held[held.rfind(b"\n") + 1 :]  # what was begun and can't be finished
        held += TORN
    yield bytes(held)


def followed_by(text: Iterable[bytes], line: Callable[[], bytes]) -> Generator[bytes, None, None]:
    """The text of `lines`, and one more line, or b"", behind it: not where the document breaks off."""
    last = b""
    for piece in text:
        yield piece
        last = piece or last
    if not last.endswith(TORN) and (added := line()):
        yield added + b"\n"


def elements(
    file: BinaryIO,
    path: Path,
    *,
    max_line_bytes: int,
    stats: ReadStats | None = None,
    stop_after_bytes: int = sys.maxsize,
    reading: Reading = READING,
) -> Generator[bytes, None, None]:
    """Yield each element of the list at `path` as a line of JSON, with its newline.

    One over `max_line_bytes` is squeezed, or `LEFT_OUT` stands for it; `stats` counts both. The rest is as `lines` has
    it.
    """
    stats = stats if stats is not None else ReadStats()
    seen = stats.lines
    found = lines(file, path, stop_after_bytes=stop_after_bytes, reading=reading)
    with open_chunks(found, reading=reading) as text:
        for line in read_lines(text, stats, max_line_bytes=max_line_bytes, reading=reading):
            yield from repeat(LEFT_OUT, stats.lines - seen - 1)
            seen = stats.lines
            if not stats.torn:
                yield line
    if stats.torn:
        yield TORN
    else:
        yield from repeat(LEFT_OUT, stats.lines - seen)


def fields(
    file: BinaryIO,
    names: Collection[str],
    *,
    max_bytes: int,
    path: Path = (),
    stop_after_bytes: int = sys.maxsize,
    reading: Reading = READING,
) -> dict[str, msgspec.Raw]:
    """Those of the fields `names` of the object at `path` that are there and have at most `max_bytes`.

    The document is read until all are found, or `stop_after_bytes` is reached. What is no document has none. Raises
    `OSError`.
    """
    found: dict[str, msgspec.Raw] = {}
    wanted = set(names)
    pairs = _fields(file, path, wanted, max_bytes=max_bytes, stop_after_bytes=stop_after_bytes, reading=reading)
    for name, value in pairs:
        found.setdefault(name, value)
        if len(found) == len(wanted):
            break
    return found


def all_fields(
    file: BinaryIO, *, max_bytes: int, path: Path = (), reading: Reading = READING
) -> Iterator[tuple[str, msgspec.Raw]]:
    """Every field of the object at `path` that has at most `max_bytes`, as far as the document goes."""
    yield from _fields(file, path, None, max_bytes=max_bytes, stop_after_bytes=sys.maxsize, reading=reading)


def _fields(
    file: BinaryIO,
    path: Path,
    wanted: Collection[str] | None,
    *,
    max_bytes: int,
    stop_after_bytes: int,
    reading: Reading,
) -> Iterator[tuple[str, msgspec.Raw]]:
    text = _Text(file, reading.chunk_bytes, stop_after_bytes=stop_after_bytes)
    try:
        if _enter(text, path) and text.token() == _OPEN:
            for name in _names(text):
                is_wanted = wanted is None or name in wanted
                value = _held(text.value(), max_bytes if is_wanted else 0)
                if is_wanted and value:
                    yield name, msgspec.Raw(value)
    except (_BrokenOffError, RolloutError):
        pass


def cut(path: pathlib.Path, *, reading: Reading = READING) -> str:
    """What to say behind the reason why a document can't be used: that it is not whole, if that is soon seen.

    Raises `OSError` or `RolloutError`.
    """
    if path.stat().st_size > reading.head_bytes:  # of the many of a folder each would be read whole in every pass
        return ""
    with open_stored(path, reading=reading) as file:
        text = _Text(file, reading.chunk_bytes)
        try:
            if text.token() in (_OPEN, _OPEN_LIST):
                for _ in text.value():
                    pass
        except _BrokenOffError:
            return ", as far as it goes: it breaks off"
    return ""


class _Text:
    """A document of which one piece is held; `at` is how far it was understood."""

    def __init__(self, file: BinaryIO, size: int, *, stop_after_bytes: int = sys.maxsize) -> None:
        self._file = file
        self._size = size
        self._left = stop_after_bytes
        self._held = b""
        self._data = b""
        self._mask = b""  # the same without what is escaped: every quote in it begins or ends a string
        self._at = 0
        if self._more() and self._data.startswith(BOM):
            self._at = len(BOM)

    def token(self) -> int:
        """The byte at which the next token begins; `_END` where there is none."""
        while True:
            match = _BLANK.match(self._data, self._at)
            assert match is not None
            self._at = match.end()
            if self._at < len(self._data):
                return self._data[self._at]
            if not self._more():
                return _END

    def step(self) -> None:
        """Over a token of one byte."""
        self._at += 1

    def value(self) -> Iterator[bytes]:
        """The value that begins here, in pieces; they must all be taken. Raises `_BrokenOffError`."""
        first = self.token()
        if first in (_OPEN, _OPEN_LIST):
            yield from self._nested()
        elif first == _QUOTE:
            yield from self._string()
        else:
            yield from self._scalar()

    def _nested(self) -> Iterator[bytes]:
        start, depth = self._at, 0
        while True:
            match = _TO_BRACKET.match(self._mask, self._at + (not depth))
            assert match is not None
            depth = depth or 1
            end = match.end()
            if end == len(self._data):
                yield self._data[start:]
                if not self._more():
                    raise _BrokenOffError
                start = 0
            elif self._mask[end] == _QUOTE:
                yield self._data[start:end]
                self._at = end
                yield from self._string()
                start = self._at
            else:
                depth += _DEPTH[self._data[end]]
                self._at = end + 1
                if not depth:
                    yield self._data[start : self._at]
                    return

    def _string(self) -> Iterator[bytes]:
        start, at = self._at, self._at + 1
        while (end := self._mask.find(b'"', at)) < 0:
            yield self._data[start:]
            if not self._more():
                raise _BrokenOffError
            start = at = 0
        self._at = end + 1
        yield self._data[start : self._at]

    def _scalar(self) -> Iterator[bytes]:
        some = False
        while True:
            match = _SCALAR.match(self._data, self._at)
            assert match is not None
            some = some or match.end() > self._at
            self._at = match.end()
            yield match[0]
            if self._at < len(self._data):
                break
            if not self._more():
                raise _BrokenOffError
        if not some:
            raise _BrokenOffError

    def _more(self) -> bool:
        """Take the next piece in the place of this one; a backslash goes with what it escapes."""
        piece = self._file.read(min(self._size, self._left))
        self._left -= len(piece)
        data = self._held + piece
        self._held = b""
        if piece and (len(data) - len(data.rstrip(b"\\"))) % 2:
            self._held, data = data[-1:], data[:-1]
        self._data, self._at = data, 0
        self._mask = data.replace(b"\\\\", b"  ").replace(b'\\"', b"  ") if b"\\" in data else data
        return bool(data) or (bool(piece) and self._more())


def _enter(text: _Text, path: Path) -> bool:
    """Go to the value at `path`; False if there is none. Raises `RolloutError` or `_BrokenOffError`."""
    if text.token() not in (_OPEN, _OPEN_LIST):
        raise RolloutError("it is no JSON document of objects or lists")
    for name in path:
        there = text.token()
        if isinstance(name, str):
            inside = there == _OPEN and _goes_to(text, _names(text), name)
        else:
            inside = there == _OPEN_LIST and _goes_to(text, _elements(text), name)
        if not inside:
            return False
    if text.token() == _END:
        raise _BrokenOffError
    return True


def _goes_to(text: _Text, places: Iterator[str] | Iterator[int], name: str | int) -> bool:
    for place in places:
        if place == name:
            return True
        for _ in text.value():
            pass
    return False


def _elements(text: _Text) -> Iterator[int]:
    """The numbers of the elements of a list; at each the element must be read."""
    text.step()
    number = 0
    while (token := text.token()) != _CLOSE_LIST:
        if token == _COMMA:
            text.step()
        elif token in (_END, _CLOSE, _COLON):
            raise _BrokenOffError
        else:
            yield number
            number += 1
    text.step()


def _names(text: _Text) -> Iterator[str]:
    """The names of an object's fields; at each the value must be read."""
    text.step()
    while (token := text.token()) != _CLOSE:
        if token == _COMMA:
            text.step()
        elif token == _QUOTE:
            name = _held(text.value(), _MAX_NAME_BYTES)
            if text.token() != _COLON:
                raise _BrokenOffError
            text.step()
            yield _decoded(name)
        else:
            raise _BrokenOffError
    text.step()


def _held(pieces: Iterator[bytes], limit: int) -> bytes:
    """All pieces as one; b"" if that is over the limit."""
    kept: list[bytes] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size <= limit:
            kept.append(piece)
    return b"".join(kept) if size <= limit else b""


def _decoded(name: bytes) -> str:
    try:
        return msgspec.json.decode(name, type=str)
    except UNREADABLE:
        return ""
