"""The items of a session that memory keeps, one after the other, at constant memory (spec §5.3 to §5.5, §7)."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Generic, Protocol, Self, TypeVar, cast

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import EmptyRollout, RolloutError
from stillroom.sessions.item import MESSAGES, Item
from stillroom.sessions.jsonl import open_stored, read_batches, stored_path
from stillroom.sessions.records import Records
from stillroom.sessions.stats import ReadStats

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Decoder(Protocol):
    """Makes items of the lines of one file, in their order, counting into `stats`. Nothing in a line raises."""

    @property
    def stats(self) -> ReadStats: ...

    def items(self, lines: list[bytes], line_no: int, /) -> Iterator[Item]:
        """The items of `lines`, of which the first has the number `line_no`."""

    def joined(self, lines: list[bytes], /) -> bytes:
        """The same items, but only their `raw`, with commas between; it may be cheaper."""

    def may_matter(self, beginning: bytes, /) -> bool:
        """False only if the first bytes of a line say that it holds nothing for memory."""


D_co = TypeVar("D_co", bound=Decoder, covariant=True)
D = TypeVar("D", bound=Decoder)


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a rollout of Codex, `.jsonl` or `.jsonl.zst`. Raises `RolloutError` if it can't be opened, or is no file.

    With `stop_after_bytes` the iteration ends after the line that passes that mark.
    """
    return open_stream(
        path,
        Records(ReadStats()),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def open_stream(
    path: Path, decoder: D, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[D]:
    """The same of a file of any agent whose sessions are lines."""
    try:
        file = open_stored(path, reading=reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error
    stop = stop_after_bytes if stop_after_bytes is not None else sys.maxsize
    return ItemStream(file, path, decoder, max_line_bytes=max_line_bytes, stop_after_bytes=stop, reading=reading)


class ItemStream(Generic[D_co]):
    """Iterate over it once, inside `with`. `stats` is complete when the iteration has ended.

    Raises `EmptyRollout` at the end of a file without any line, and `RolloutError` where the disk fails. Nothing that
    stands in the file raises.
    """

    def __init__(
        self,
        file: BinaryIO,
        path: Path,
        decoder: D_co,
        *,
        max_line_bytes: int,
        stop_after_bytes: int,
        reading: Reading,
    ) -> None:
        self._decoder = decoder
        self._file = file
        self._path = path
        self._wanted: Callable[[bytes], bool] | None = None
        self._listeners: list[Callable[[list[bytes]], None]] = []
        self._passed_over = 0
        self._wants_all = False
        self._batches = self._lists(max_line_bytes, stop_after_bytes, reading)
        self._items = self._read()

    @property
    def decoder(self) -> D_co:
        """What made the items; it may know more of the session than they say."""
        return self._decoder

    @property
    def stats(self) -> ReadStats:
        """Counts of what was read so far."""
        return self.decoder.stats

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        self._items.close()
        self._batches.close()
        self._file.close()

    def only(self, wanted: Callable[[bytes], bool]) -> Self:
        """Look at no line of which `wanted` says no when its turn comes, but at the first, which tells whose they are.

        It is asked of many lines joined before it is asked of each, so a no must mean that no part is wanted either. To
        be called ahead of the iteration.
        """
        self._wanted = wanted
        return self

    def heard(self, listener: Callable[[list[bytes]], None]) -> Self:
        """Hand all lines, some at a time, to `listener` before their items come, also those that hold nothing for
        memory. To be called ahead of the iteration."""
        self._listeners.append(listener)
        return self

    def after(self, count: int) -> Self:
        """Pass over so many items, because they are known from another session. To be called ahead of the iteration."""
        self._passed_over = count
        return self

    def __iter__(self) -> Iterator[Item]:
        return self._items

    def texts(self) -> Iterator[bytes]:
        """The same items, instead of iterating, as `raw` only: joined by commas, some at a time.

        At a third of the cost, as no object is made of an item.
        """
        self._wants_all = True
        for lines in self._batches:
            if self._passed_over:
                text = b",".join([item.raw for item in self._others(self.decoder.items(lines, 0))])
            else:
                text = self.decoder.joined(lines)
            if text:
                yield text

    def _read(self) -> Generator[Item, None, None]:
        for lines in self._batches:
            first = self.stats.lines - len(lines) + 1
            if (wanted := self._wanted) is None:
                items = self.decoder.items(lines, first)
                yield from self._others(items) if self._passed_over else items
                continue
            if first == 1:
                yield from self.decoder.items(lines[:1], 1)
                first, lines = 2, lines[1:]
            yield from self._of_wanted(lines, first, wanted)

    def _others(self, items: Iterator[Item]) -> Iterator[Item]:
        """Without those that are passed over."""
        for item in items:
            if self._passed_over:
                self._passed_over -= 1
                self.stats.kept -= 1
                self.stats.messages -= item.type in MESSAGES
                self.stats.drop("seen before")
            else:
                yield item

    def _of_wanted(self, lines: list[bytes], first: int, wanted: Callable[[bytes], bool]) -> Iterator[Item]:
        """By halves: few are wanted, and asking of each costs more than the search does."""
        if not wanted(b"".join(lines)):
            return
        if len(lines) == 1:
            yield from self.decoder.items(lines, first)
            return
        half = len(lines) // 2
        yield from self._of_wanted(lines[:half], first, wanted)
        yield from self._of_wanted(lines[half:], first + half, wanted)

    def _lists(self, max_line_bytes: int, stop: int, reading: Reading) -> Generator[list[bytes], None, None]:
        """The lines, with what may go wrong with the file."""
        some = False
        lists = read_batches(
            self._file,
            self.stats,
            max_line_bytes=max_line_bytes,
            stop_after_bytes=stop,
            wanted=self.decoder.may_matter,
            reading=reading,
            all_of_it=self._wants_all,
        )
        try:
            for lines in lists:
                some = some or not all(not line or line.isspace() for line in lines)
                for heard in self._listeners:
                    heard(lines)
                yield lines
        except OSError as error:
            raise RolloutError(f"`{self._path}` can't be read: {error.strerror}") from error
        if not some:
            why = "breaks off before its first record is whole" if self.stats.torn else "holds no line"
            if self.stats.broken:
                why = f"is damaged: {self.stats.broken}"
            raise EmptyRollout(f"`{stored_path(self._path)}` {why}")


# --- A session that is no file of lines, read as if it were one: what follows then knows nothing of its store.


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
