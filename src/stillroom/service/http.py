"""The part of HTTP/1.1 that a gateway on loopback needs, strictly: heads, and how long a body is."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from typing import Literal

#: How a body ends: after so many bytes, by its chunks, or with the connection.
Framing = int | Literal["chunked", "close"]

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_MAX_SIZE_LINE = 1024


class Malformed(Exception):
    """These bytes are no HTTP/1.1."""


class CutShort(Exception):
    """The connection ended in the middle of a message."""


@dataclass(frozen=True, slots=True)
class Head:
    """A first line's three words, and the headers in their order."""

    words: tuple[str, str, str]
    headers: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        """The values of a header, joined; empty without one. `name` is in lower case."""
        return ", ".join(value for key, value in self.headers if key.lower() == name)

    def passed_on(self, *without: str) -> list[tuple[str, str]]:
        """The headers that are meant for the other end."""
        hops = {word.strip().lower() for word in self.get("connection").split(",")}
        left_out = _HOP_BY_HOP | hops | frozenset(without)
        return [(name, value) for name, value in self.headers if name.lower() not in left_out]


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next head; None when the connection ended before it. Raises `Malformed` or `CutShort`."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial.strip():
            return None
        raise CutShort("the connection ended within a head") from error
    except asyncio.LimitOverrunError as error:
        raise Malformed("the head is too long") from error
    first, *lines = raw[:-4].decode("latin-1").lstrip("\r\n").split("\r\n")
    words = first.split(" ", 2)
    if len(words) == 2:  # an answer without a reason
        words.append("")
    if len(words) != 3 or _CONTROL.search(first):
        raise Malformed("the first line can't be read")
    headers = []
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not _TOKEN.fullmatch(name) or _CONTROL.search(value):
            raise Malformed("a header can't be read")
        headers.append((name, value.strip(" \t")))
    return Head((words[0], words[1], words[2]), tuple(headers))


def write_head(first: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """A head as bytes."""
    lines = [first, *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1")


def framing_of(head: Head, *, without: Framing) -> Framing:
    """How the body ends; `without`: where no header says it. Two that disagree are an attack, not a body."""
    encodings, lengths = head.get("transfer-encoding"), head.get("content-length")
    if encodings:
        if lengths or encodings.strip().lower() != "chunked":
            raise Malformed("the length of the body is not clear")
        return "chunked"
    if not lengths:
        return without
    values = {value.strip() for value in lengths.split(",")}
    length = values.pop()
    if values or not (length.isascii() and length.isdigit()) or len(length) > 15:
        raise Malformed("the length of the body is not clear")
    return int(length)


async def read_pieces(
    reader: asyncio.StreamReader, framing: Framing, *, read_bytes: int, timeout_seconds: float
) -> AsyncGenerator[bytes, None]:
    """The body as it comes, without chunk sizes. Raises `CutShort`, `Malformed` or `TimeoutError`."""
    chunks = Dechunker() if framing == "chunked" else None
    left = framing if isinstance(framing, int) else None
    while left is None or left > 0:
        async with asyncio.timeout(timeout_seconds):
            data = await reader.read(read_bytes if left is None else min(left, read_bytes))
        if not data:
            if framing == "close":
                return
            raise CutShort("the connection ended within a body")
        if chunks is not None:
            data = chunks.feed(data)
        elif left is not None:
            left -= len(data)
        if data:
            yield data
        if chunks is not None and chunks.ended:
            return


class Dechunker:
    """Takes the sizes out of a chunked body."""

    def __init__(self) -> None:
        self.ended = False
        self._rest = b""
        self._left = 0  # of the present chunk
        self._after = False  # the line break that ends a chunk is due
        self._trailer = False

    def feed(self, data: bytes) -> bytes:
        """What of the body these bytes hold. Raises `Malformed`."""
        data, at, out = self._rest + data, 0, []
        self._rest = b""
        while at < len(data) and not self.ended:
            if self._left:
                piece = data[at : at + self._left]
                out.append(piece)
                at += len(piece)
                self._left -= len(piece)
                self._after = not self._left
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                if len(data) - at > _MAX_SIZE_LINE:
                    raise Malformed("a chunk without a size")
                self._rest = data[at:]
                break
            line, at = data[at:end], end + 2
            if self._after:
                if line:
                    raise Malformed("a chunk is longer than its size")
                self._after = False
            elif self._trailer:
                self.ended = not line
            else:
                self._begin(line)
        if self.ended and at < len(data):
            raise Malformed("bytes after the end of the body")
        return b"".join(out)

    def _begin(self, line: bytes) -> None:
        size = line.partition(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,12}", size):
            raise Malformed("a chunk's size can't be read")
        self._left = int(size, 16)
        self._trailer = not self._left
