"""The lines of a session file, many at once: split by the interpreter's own loops, not one call a line."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO

from stillroom.config import READING, Reading
from stillroom.rollouts.lines import BOM, next_part, squeeze_line
from stillroom.rollouts.stats import ReadStats


def read_batches(
    file: BinaryIO,
    stats: ReadStats,
    *,
    max_line_bytes: int,
    stop_after_bytes: int = sys.maxsize,
    wanted: Callable[[bytes], bool] = lambda _: True,
    reading: Reading = READING,
    all_of_it: bool = False,
) -> Iterator[list[bytes]]:
    """Yield what `read_lines` yields of a buffered file, in lists that are never empty, but blank lines too.

    When a list is yielded, `stats` counts its lines and bytes already. The line that passes `stop_after_bytes` is the
    last one. A torn last line comes alone, with `stats.torn` set. With `all_of_it` the first list is as long as others.
    """
    # Whoever looks for the beginning of a session needs no more than a few lines.
    size = reading.batch_bytes if all_of_it else reading.batch_bytes // 8
    begun = b""  # a line of which the rest is still to come
    try:
        while stats.bytes <= stop_after_bytes and not stats.torn:
            # So no line that ends in a piece is over the limit.
            room = min(size, max_line_bytes - len(begun), stop_after_bytes + 1 - stats.bytes - len(begun))
            # `read1`, as `read` would lose what stands before the damage in an archive.
            piece = file.read1(room) if room else b""  # type: ignore[attr-defined]
            if b"\n" in piece:
                size = min(2 * size, reading.batch_bytes)
                lines = io.BytesIO(piece).readlines()
                stats.bytes += len(begun) + len(piece)
                lines[0] = begun + lines[0]
                begun = lines.pop() if piece[-1] != 10 else b""
                stats.bytes -= len(begun)
                stats.lines += len(lines)
                yield _without_mark(lines) if stats.lines == len(lines) else lines
            elif begun or piece:
                line = _completed(file, begun + piece, stats, max_line_bytes, wanted, reading)
                begun = b""
                if line is not None:
                    yield _without_mark([line]) if stats.lines == 1 else [line]
            else:
                return
    except EOFError as error:
        stats.broken = str(error)
        stats.bad_lines += 1  # what was lost is more than nothing


def _completed(
    file: BinaryIO,
    part: bytes,
    stats: ReadStats,
    max_line_bytes: int,
    wanted: Callable[[bytes], bool],
    reading: Reading,
) -> bytes | None:
    """The line that begins with `part`; None where it is too long and can't be had."""
    stats.lines += 1
    gathered = io.BytesIO()  # grows where it is: joining pieces would take the line's room twice more
    gathered.write(part)
    while (room := max_line_bytes - gathered.tell()) and (piece := next_part(file, min(room, reading.chunk_bytes))):
        gathered.write(piece)
        if piece[-1] == 10:
            break
    line = gathered.getvalue()
    stats.bytes += len(line)
    if line[-1] != 10:
        if len(line) == max_line_bytes:
            return squeeze_line(file, line, stats, wanted=wanted(line[:4096]), reading=reading)
        stats.torn = True
    return line


def _without_mark(lines: list[bytes]) -> list[bytes]:
    return [lines[0].removeprefix(BOM), *lines[1:]]
