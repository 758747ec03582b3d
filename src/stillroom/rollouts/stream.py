"""The items of a Codex rollout that memory keeps, one after the other, at constant memory (spec §5.3 to §5.5, §7)."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from stillroom.config import READING, Reading
from stillroom.errors import EmptyRollout, RolloutError
from stillroom.rollouts.batches import read_batches
from stillroom.rollouts.item import Item
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.meta import Git, SessionMeta
from stillroom.rollouts.records import Records, may_matter
from stillroom.rollouts.stats import ReadStats


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream:
    """Open a rollout, `.jsonl` or `.jsonl.zst`. Raises `RolloutError` if it can't be opened, or is no file.

    With `stop_after_bytes` the iteration ends after the line that passes that mark.
    """
    try:
        file = open_stored(path, reading=reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error
    return ItemStream(file, path, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


class ItemStream:
    """Iterate over it once, inside `with`. `stats` is complete when the iteration has ended.

    Raises `EmptyRollout` at the end of a file without any line, and `RolloutError` where the disk fails. Nothing that
    stands in the file raises.
    """

    def __init__(
        self, file: BinaryIO, path: Path, *, max_line_bytes: int, stop_after_bytes: int | None, reading: Reading
    ) -> None:
        self.stats = ReadStats()
        self._records = Records(self.stats)
        self._file = file
        self._path = path
        stop = stop_after_bytes if stop_after_bytes is not None else sys.maxsize
        self._batches = self._lists(max_line_bytes, stop, reading)
        self._items = self._read()

    @property
    def meta(self) -> SessionMeta | None:
        """The first `session_meta` line: who the thread is."""
        return self._records.meta

    @property
    def git(self) -> Git | None:
        """The newest that a `session_meta` line of this thread tells."""
        return self._records.git

    @property
    def first_ms(self) -> int | None:
        """When the first `session_meta` line was written."""
        return self._records.first_ms

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

    def __iter__(self) -> Iterator[Item]:
        return self._items

    def texts(self) -> Iterator[bytes]:
        """The same items, instead of iterating, as `raw` only: joined by commas, some at a time.

        At a third of the cost, as no object is made of an item.
        """
        for lines in self._batches:
            if text := self._records.joined(lines):
                yield text

    def _read(self) -> Generator[Item, None, None]:
        for lines in self._batches:
            yield from self._records.items(lines, self.stats.lines - len(lines) + 1)

    def _lists(self, max_line_bytes: int, stop: int, reading: Reading) -> Generator[list[bytes], None, None]:
        """The lines, with what may go wrong with the file."""
        some = False
        lists = read_batches(
            self._file,
            self.stats,
            max_line_bytes=max_line_bytes,
            stop_after_bytes=stop,
            wanted=may_matter,
            reading=reading,
        )
        try:
            for lines in lists:
                some = some or not all(not line or line.isspace() for line in lines)
                yield lines
        except OSError as error:
            raise RolloutError(f"`{self._path}` can't be read: {error.strerror}") from error
        if not some:
            raise EmptyRollout(f"`{self._path}` holds no line")
