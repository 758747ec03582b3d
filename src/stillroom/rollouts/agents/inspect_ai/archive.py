"""Members of a ZIP archive as streams, also those that Python before 3.14 can't read: packed with Zstandard."""

from __future__ import annotations

import io
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.lines import open_stored

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_ZSTANDARD = 93
# The archive's directory is held while it is read: this has room for 100,000 members.
_MAX_DIRECTORY_BYTES = 16 * 1024 * 1024
# The end of an archive: a record, and a comment of up to 64 KiB behind it. Large archives have another one ahead of it.
_END = b"PK\x05\x06"
_END_BYTES = 22 + 65535
_LARGE_END = b"PK\x06\x06"
_LOCAL_BYTES = 30


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive. Raises `RolloutError` for what is none, or none that can be used, and `OSError`."""
    with open_stored(path) as file:
        if _directory_bytes(file) > _MAX_DIRECTORY_BYTES:
            raise RolloutError(f"`{path}` can't be used: it has too many members")
        try:
            archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise RolloutError(f"`{path}` can't be used: it is no archive, or not all of it is there") from error
        with archive:
            yield archive


@contextmanager
def member(archive: zipfile.ZipFile, name: str, *, reading: Reading = READING) -> Iterator[BinaryIO]:
    """The text of a member, unpacked piece by piece.

    Raises `RolloutError` if there is no such member, or it can't be unpacked, and `EOFError` where it is
    damaged.
    """
    refusal = RolloutError(f"`{name}` can't be read from the archive")
    try:
        info = archive.getinfo(name)
        plain = archive.open(info) if info.compress_type != _ZSTANDARD or sys.version_info >= (3, 14) else None
    except (KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile) as error:
        raise refusal from error
    if plain is not None:
        try:
            with plain:
                yield cast("BinaryIO", plain)
        except (zipfile.BadZipFile, zlib.error) as error:
            raise refusal from error
        return
    file = archive.fp
    assert file is not None
    file.seek(info.header_offset)
    header = file.read(_LOCAL_BYTES)
    if len(header) < _LOCAL_BYTES or info.flag_bits & 1:
        raise refusal
    # Behind the header stand the name and extra fields, whose lengths it tells.
    start = info.header_offset + _LOCAL_BYTES + int.from_bytes(header[26:28], "little")
    start += int.from_bytes(header[28:30], "little")
    packed = io.BufferedReader(_Window(cast("BinaryIO", file), start, info.compress_size), reading.batch_bytes)
    from stillroom.rollouts.archive import Archive

    with io.BufferedReader(cast("io.RawIOBase", Archive(packed)), reading.batch_bytes) as text:
        yield text


class _Window(io.RawIOBase):
    """A part of a file."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file = file
        self._at = start
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """The next piece. Members may be read in turn: each looks for its own place."""
        room = memoryview(buffer)
        self._file.seek(self._at)
        piece = self._file.read(min(len(room), self._left))
        room[: len(piece)] = piece
        self._at += len(piece)
        self._left -= len(piece)
        return len(piece)


def _directory_bytes(file: BinaryIO) -> int:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - _END_BYTES, 0))
    end = file.read(_END_BYTES)
    at = end.rfind(_END)
    large = end.rfind(_LARGE_END, 0, max(at, 0))
    if large >= 0:
        return int.from_bytes(end[large + 40 : large + 48], "little")
    return int.from_bytes(end[at + 12 : at + 16], "little") if at >= 0 else 0
