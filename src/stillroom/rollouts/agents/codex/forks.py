"""What a fork took over: older clients copy the lines of the thread that it was made from to its beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.contents import told_by
from stillroom.rollouts.item import MESSAGES, Item
from stillroom.rollouts.records import Records
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import open_items

_PLACES = ("sessions/*/*/*", "archived_sessions")


class Fork(Records):
    """Leaves out the items with which a fork begins, as long as they are those of its origin, one after the other.

    `copied_from` is asked for the keys of these, if the first line says that the thread is a fork.
    """

    def __init__(self, stats: ReadStats, *, copied_from: Callable[[str], Sequence[int]]) -> None:
        super().__init__(stats)
        self._copied_from = copied_from
        self._copied: Sequence[int] | None = None  # until the first line is read
        self._at = 0

    def items(self, lines: list[bytes], line_no: int) -> Iterator[Item]:
        """The items of `lines`, of which the first has the number `line_no`."""
        if self._copied is None:
            yield from super().items(lines[:1], line_no)
            self._copied = self._of_origin()
            lines, line_no = lines[1:], line_no + 1
        for item in super().items(lines, line_no):
            if self._at < len(self._copied) and _key(item) == self._copied[self._at]:
                self._at += 1
                self.stats.kept -= 1
                self.stats.messages -= item.type in MESSAGES
                self.stats.drop("seen before")
            else:
                self._at = len(self._copied)
                yield item

    def joined(self, lines: list[bytes]) -> bytes:
        """The same items, but only their `raw`, with commas between."""
        if self._copied is not None and self._at == len(self._copied):
            return super().joined(lines)
        if self._copied is None and len(lines) > 1:  # most sessions are no fork, and are told by their first line
            return b",".join(filter(None, (self.joined(lines[:1]), self.joined(lines[1:]))))
        return b",".join([item.raw for item in self.items(lines, 0)])

    def _of_origin(self) -> Sequence[int]:
        return () if self.stats.copied_from is None else self._copied_from(self.stats.copied_from)


def origin_of(path: Path, copied_from: str) -> Path | None:
    """The rollout of the thread that the one at `path` was made from, if it is still there."""
    home = next((parent.parent for parent in path.parents if parent.name in ("sessions", "archived_sessions")), None)
    if home is None or not copied_from.replace("-", "").isalnum():
        return None
    found = (file for place in _PLACES for file in home.glob(f"{place}/rollout-*-{copied_from}.jsonl*"))
    return next((Path(str(file).removesuffix(".zst")) for file in found if not file.name.startswith(path.name)), None)


def keys_of(origin: Path, *, max_line_bytes: int, reading: Reading = READING) -> list[int]:
    """The keys of a rollout's items, in their order; none if it can't be read."""
    try:
        with open_items(origin, max_line_bytes=max_line_bytes, reading=reading) as items:
            return [_key(item) for item in islice(items, reading.remembered_records)]
    except RolloutError:
        return []


def _key(item: Item) -> int:
    return hash(told_by(item))
