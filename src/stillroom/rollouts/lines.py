"""Lines of a session file, plain or zstd, at constant memory however long a line is."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.squeeze import Squeezer
from stillroom.rollouts.stats import ReadStats
from stillroom.system import READ

BOM = b"\xef\xbb\xbf"


def stored_path(path: Path) -> Path:
    """The file that holds the rollout `path`: the plain one, else its compressed form. Neither: `path`."""
    if path.suffix == ".zst" or path.exists():
        return path
    compressed = path.with_name(path.name + ".zst")
    return compressed if compressed.exists() else path


def open_stored(path: Path, *, reading: Reading = READING) -> BinaryIO:
    """Open a rollout for reading; the text of a `.zst` file. Raises `OSError`, and `RolloutError` for what is no file.

    A link to a rollout is followed.
    """
    try:
        descriptor = os.open(path, READ)
    except FileNotFoundError:
        path = stored_path(path)
        descriptor = os.open(path, READ)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise RolloutError(f"`{path}` is no ordinary file")
        file = os.fdopen(descriptor, "rb", reading.chunk_bytes)
    except BaseException:
        os.close(descriptor)
        raise
    if path.suffix != ".zst":
        return file
    from stillroom.rollouts.archive import Archive

    return io.BufferedReader(cast("io.RawIOBase", Archive(file)), reading.chunk_bytes)


def read_lines(
    file: BinaryIO,
    stats: ReadStats,
    *,
    max_line_bytes: int,
    wanted: Callable[[bytes], bool] = lambda _: True,
    reading: Reading = READING,
) -> Iterator[bytes]:
    """Yield the lines that are not blank, counting into `stats`; `stats.lines` is the number of the line at hand.

    A line over `max_line_bytes` is squeezed while it is read, or, when `wanted` says no to its beginning, passed over.
    One that can't be squeezed below the limit counts as bad. When the last line has no newline, `stats.torn` is set
    before it is yielded.
    """
    readline = file.readline
    try:
        while line := readline(max_line_bytes):
            stats.lines += 1
            stats.bytes += len(line)
            if line[-1] != 10:
                if len(line) == max_line_bytes:
                    squeezed = squeeze_line(file, line, stats, wanted=wanted(line[:4096]), reading=reading)
                    if squeezed is None:
                        continue
                    line = squeezed
                else:
                    stats.torn = True
            if stats.lines == 1 and line.startswith(BOM):
                line = line[len(BOM) :]
            if not line or (line[0] <= 32 and line.isspace()):
                continue
            yield line
    except EOFError as error:
        stats.broken = str(error)
        stats.bad_lines += 1  # what was lost is more than nothing


def next_part(file: BinaryIO, size: int) -> bytes:
    """The rest of a line, or what the buffer has of it, `size` bytes at most; b"" only at the end of the file.

    For long lines: `readline` looks for their end byte by byte.
    """
    seen = file.peek()[:size]  # type: ignore[attr-defined]
    return file.read(seen.find(b"\n") + 1 or len(seen))


def squeeze_line(file: BinaryIO, first: bytes, stats: ReadStats, *, wanted: bool, reading: Reading) -> bytes | None:
    """The squeezed line, or None where it is not wanted or can't be had. The file stands after the line."""
    stats.long_lines += 1
    squeezer = Squeezer(limit=len(first), reading=reading) if wanted else None
    total = 0
    chunk = first
    while chunk:
        total += len(chunk)
        if squeezer is not None and not squeezer.overflowed:
            squeezer.feed(chunk)
        if chunk[-1] == 10:
            break
        chunk = next_part(file, reading.chunk_bytes)
    else:
        stats.torn = True
    stats.bytes += total - len(first)
    squeezed = squeezer.finish() if squeezer is not None else None
    stats.cut_bytes += total - len(squeezed or b"")
    if wanted and squeezed is None and not stats.torn:
        stats.bad_lines += 1
    return squeezed
