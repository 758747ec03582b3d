"""A session that is no file of lines, read as if it were one: what follows then knows nothing of its store."""

from __future__ import annotations

import io
from collections.abc import Generator
from typing import TYPE_CHECKING, BinaryIO, cast

from stillroom.config import READING, Reading

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


def open_chunks(chunks: Generator[bytes, None, None], *, reading: Reading = READING) -> BinaryIO:
    """A file with the text that `chunks` yields. They are asked for one by one, and closed with the file."""
    return io.BufferedReader(cast("io.RawIOBase", _Chunks(chunks)), reading.chunk_bytes)


class _Chunks(io.RawIOBase):
    def __init__(self, chunks: Generator[bytes, None, None]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        room = memoryview(buffer)
        taken = self._rest[: len(room)]
        room[: len(taken)] = taken
        self._rest = self._rest[len(taken) :]
        return len(taken)

    def close(self) -> None:
        try:
            self._chunks.close()
        finally:
            super().close()
