"""A session that is no file of lines, read as if it were one: what follows then knows nothing of its store."""

from __future__ import annotations

import io
import sys
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar, cast

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.stream import Decoder, ItemStream

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

D = TypeVar("D", bound=Decoder)


def open_chunks(chunks: Generator[bytes, None, None], *, reading: Reading = READING) -> BinaryIO:
    """A file with the text that `chunks` yields. They are asked for one by one, and closed with the file."""
    return io.BufferedReader(cast("io.RawIOBase", _Chunks(chunks)), reading.batch_bytes)


def stream_chunks(
    chunks: Generator[bytes, None, None],
    path: Path,
    decoder: D,
    *,
    max_line_bytes: int,
    stop_after_bytes: int | None,
    reading: Reading,
) -> ItemStream[D]:
    """The items of such a session, whose rollout is at `path`; `stop_after_bytes` None: all of them."""
    return ItemStream(
        open_chunks(chunks, reading=reading),
        path,
        decoder,
        max_line_bytes=max_line_bytes,
        stop_after_bytes=sys.maxsize if stop_after_bytes is None else stop_after_bytes,
        reading=reading,
    )


def enclosed(name: str, data: Iterable[bytes], message: msgspec.Struct) -> Generator[bytes, None, None]:
    """The line `{NAME: data, "message": message}` in pieces, for `data` that is JSON of the store's.

    It is passed on as it is. What the reader knows comes last, so that nothing in `data` can take its place. `data` is
    closed with the line: it may hold what its store must be without to be closed.
    """
    yield b'{"%s":' % name.encode()
    try:
        for piece in data:
            # In JSON a newline can only stand between two tokens.
            yield piece.replace(b"\n", b" ")
    finally:
        if isinstance(data, Generator):
            data.close()
    yield b',"message":%s}\n' % msgspec.json.encode(message)


class _Chunks(io.RawIOBase):
    def __init__(self, chunks: Generator[bytes, None, None]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill the buffer, with as many pieces as that takes."""
        room = memoryview(buffer)
        filled = 0
        while filled < len(room):
            if not self._rest:
                chunk = next(self._chunks, None)
                if chunk is None:
                    break
                self._rest = memoryview(chunk)
            taken = self._rest[: len(room) - filled]
            room[filled : filled + len(taken)] = taken
            self._rest = self._rest[len(taken) :]
            filled += len(taken)
        return filled

    def close(self) -> None:
        try:
            self._chunks.close()
        finally:
            super().close()
