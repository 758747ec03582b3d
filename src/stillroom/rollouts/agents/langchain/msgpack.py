"""Look into msgpack of any size without decoding it: only heads of values are read, and what is asked for."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Literal, NamedTuple

# Heads that are read of one value. A conversation has tens of thousands; more was made to be slow.
_MAX_HEADS = 1_000_000
# A longer key is none that anybody asks for.
_MAX_KEY_BYTES = 256

Kind = Literal["map", "list", "text", "extension", "other"]


class MalformedError(Exception):
    """It is no msgpack, ends too early, or has too many values."""


class Head(NamedTuple):
    """The beginning of a value."""

    kind: Kind
    #: Entries of a map or list, bytes of anything else.
    size: int
    #: The type of an extension.
    code: int = 0


# By first byte: the kind, how many bytes tell the size, and how many bytes follow that the size does not count.
_SIZED: dict[int, tuple[Kind, int]] = {
    **{0xC4 + number: ("other", 1 << number) for number in range(3)},
    **{0xC7 + number: ("extension", 1 << number) for number in range(3)},
    **{0xD9 + number: ("text", 1 << number) for number in range(3)},
    **{0xDC + number: ("list", 2 << number) for number in range(2)},
    **{0xDE + number: ("map", 2 << number) for number in range(2)},
}
_FIXED = {0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8} | {
    first + number: 1 << number for first in (0xCC, 0xD0) for number in range(4)
}


class Walker:
    """Stands at the beginning of a value in a blob, and goes on. Everything raises `MalformedError`."""

    def __init__(self, blob: sqlite3.Blob) -> None:
        self._blob = blob
        self._left = _MAX_HEADS

    @property
    def at(self) -> int:
        return self._blob.tell()

    def go(self, place: int) -> None:
        try:
            self._blob.seek(place)
        except ValueError as error:
            raise MalformedError from error

    def read(self, size: int) -> bytes:
        data = self._blob.read(size)
        if len(data) < size:
            raise MalformedError
        return data

    def head(self) -> Head:
        """Read the head of the value that begins here."""
        self._left -= 1
        if self._left < 0:
            raise MalformedError
        (first,) = self.read(1)
        if first < 0x80 or first >= 0xE0:
            return Head("other", 0)
        if first < 0x90:
            return Head("map", first & 0x0F)
        if first < 0xA0:
            return Head("list", first & 0x0F)
        if first < 0xC0:
            return Head("text", first & 0x1F)
        if first in _FIXED:
            return Head("other", _FIXED[first])
        if 0xD4 <= first <= 0xD8:
            return Head("extension", 1 << (first - 0xD4), self._code())
        if first not in _SIZED:
            raise MalformedError
        kind, width = _SIZED[first]
        size = int.from_bytes(self.read(width))
        return Head(kind, size, self._code() if kind == "extension" else 0)

    def skip(self) -> None:
        """Go over a value with all that is in it."""
        values = 1
        while values:
            head = self.head()
            values -= 1
            if head.kind == "map":
                values += 2 * head.size
            elif head.kind == "list":
                values += head.size
            else:
                self.go(self.at + head.size)

    def value(self, max_bytes: int) -> bytes:
        """Go over a value, and return it; b"" if it is longer."""
        start = self.at
        self.skip()
        end = self.at
        if end - start > max_bytes:
            return b""
        self.go(start)
        return self.read(end - start)

    def names(self) -> Iterator[str]:
        """The keys of the map that begins here, "" for what is none; at each stands its value, which must be passed."""
        head = self.head()
        if head.kind != "map":
            raise MalformedError
        for _ in range(head.size):
            start = self.at
            key = self.head()
            if key.kind == "text" and key.size <= _MAX_KEY_BYTES:
                yield self.read(key.size).decode("utf-8", "replace")
            else:
                self.go(start)
                self.skip()
                yield ""

    def _code(self) -> int:
        return int.from_bytes(self.read(1), signed=True)
