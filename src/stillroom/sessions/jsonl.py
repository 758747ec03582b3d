"""Read the lines of a session file, plain or zstd, at constant memory however long a line is.

A line over the limit is squeezed: base64 becomes its size, huge strings lose their middle.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.pattern import late
from stillroom.sessions.prefilter import holder
from stillroom.sessions.stats import ReadStats
from stillroom.system import READ

# --- Long lines

_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=_-"
_TO_MASK = bytes(97 if byte in _LETTERS else 32 for byte in range(256))
# Where a JSON string may be cut: at the start of a run of backslashes, or where no escape can reach. Not between the
# two halves of a surrogate pair, nor inside a UTF-8 character.
_SAFE = late(rb"(?<=[^\\])\\(?!u[dD][c-fC-F])|(?<=[^\\]{6})[^\\\x80-\xbf]")
_SEARCHED_BYTES = 4096
_holds_escaped_quote = holder(b'\\"')
# The longest escape, `\uXXXX`, without its backslash.
_ESCAPE_BYTES = 5


class Squeezer:
    """Takes one line in pieces; memory stays at a few times `limit` whatever the line holds."""

    def __init__(self, *, limit: int, reading: Reading = READING) -> None:
        self._limit = limit
        self._chunk = reading.chunk_bytes
        self._run = reading.blob_run_bytes
        self._needle = b"a" * reading.blob_run_bytes
        # Of a blob every 64th byte is a letter, too: where a look at these finds none, there is none.
        self._stride = max(reading.blob_run_bytes // 64, 1)
        self._sampled = self._needle[: reading.blob_run_bytes // self._stride]
        self._end = reading.string_end_bytes
        self._out = bytearray()
        self._held = b""  # the end of the last piece: what may become a blob, or half an escape
        self._blob = 0  # bytes of the blob that is passing
        self._inside = False  # a string
        self._head = bytearray()  # of the string that is passing
        self._tail = bytearray()
        self._length = 0
        self.overflowed = False

    def feed(self, piece: bytes) -> None:
        """Take the next piece, of any size."""
        for start in range(0, len(piece), self._chunk):
            if not self.overflowed:
                self._shrink_blobs(self._held + piece[start : start + self._chunk], last=False)

    def finish(self) -> bytes | None:
        """The line; None if it stays over the limit or ends inside a string."""
        if not self.overflowed:
            self._shrink_blobs(self._held, last=True)
        return None if self.overflowed or self._inside else bytes(self._out)

    def _shrink_blobs(self, data: bytes, *, last: bool) -> None:
        """Pass `data` on with its blobs replaced, and hold back what the next piece decides about."""
        self._held = b""
        # Of a blob that goes on most pieces are letters throughout, which is told at half the cost of a mask.
        if self._blob and not last and not data.translate(None, _LETTERS):
            self._blob += len(data)
            return
        mask = self._mask(data)
        at = 0
        if self._blob:
            at = _run_end(mask, 0)
            self._blob += at
            if at == len(data) and not last:
                return
            self._close_blob()
        while (start := mask.find(self._needle, at)) >= 0:
            # The letters of an escape belong to it, not to the blob.
            kept = start + _ESCAPE_BYTES if data[start - 1 : start] == b"\\" else start
            self._shrink_strings(data[at:kept])
            at = _run_end(mask, start)
            self._blob = at - kept
            if at == len(data) and not last:
                return
            self._close_blob()
        end = len(data)
        if not last:
            end = max(mask.rfind(b" ") + 1, at)
            # A backslash goes with what it escapes.
            while end > at and data[end - 1] == 0x5C:
                end -= 1
        self._held = data[end:]
        if len(self._held) > 2 * self._run:  # nothing but backslashes: no text is lost with them
            self.overflowed = True
        self._shrink_strings(data[at:end])

    def _mask(self, data: bytes) -> bytes:
        """`a` for a letter and a space for all else; a space for a letter, too, far from the end and in no blob."""
        if self._blob or self._sampled in data[:: self._stride].translate(_TO_MASK):
            return data.translate(_TO_MASK)
        clear = max(len(data) - self._run, 0)
        return b" " * clear + data[clear:].translate(_TO_MASK)

    def _close_blob(self) -> None:
        self._shrink_strings(b"[blob: %d bytes]" % self._blob)
        self._blob = 0

    def _shrink_strings(self, data: bytes) -> None:
        """Write `data`, which never ends inside an escape, keeping only both ends of huge strings."""
        # Where no quote has a backslash ahead of it, none is escaped; most data is like that, and looking is cheap.
        quotes = data.replace(b"\\\\", b"  ").replace(b'\\"', b"  ") if _holds_escaped_quote(data) else data
        at = 0
        while at < len(data) and not self.overflowed:
            quote = quotes.find(b'"', at)
            end = quote if quote >= 0 else len(data)
            if self._inside:
                self._keep(data[at:end])
                if quote >= 0:
                    self._close_string()
            else:
                self._out += data[at:end]
            if quote >= 0:
                self._out += b'"'
                self._inside = not self._inside
            at = end + 1
            self.overflowed = len(self._out) > self._limit

    def _keep(self, text: bytes) -> None:
        self._length += len(text)
        room = self._end - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        self._tail += text
        if len(self._tail) > 2 * self._end:
            del self._tail[: -self._end]

    def _close_string(self) -> None:
        if self._length == len(self._head) + len(self._tail):
            self._out += self._head
            self._out += self._tail
        else:
            head = bytes(self._head)
            searched = max(len(head) - _SEARCHED_BYTES, 0)
            # Nearer to the end it can't be seen whether the second half of a pair follows.
            safe = [at for match in _SAFE.finditer(head, searched) if (at := match.start()) <= len(head) - 4]
            head = head[: safe[-1] if safe else 0]
            tail = bytes(self._tail[-self._end :])
            first = _SAFE.search(tail, 0, _SEARCHED_BYTES)
            tail = tail[first.start() :] if first else b""
            self._out += head
            self._out += "[… %d bytes cut …]".encode() % (self._length - len(head) - len(tail))
            self._out += tail
        self._head.clear()
        self._tail.clear()
        self._length = 0


def _run_end(mask: bytes, start: int) -> int:
    end = mask.find(b" ", start)
    return end if end >= 0 else len(mask)


# --- Lines

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
    from stillroom.sessions.archive import Archive

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
