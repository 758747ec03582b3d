"""What a fork took over: older clients copy the lines of the thread that it was made from to its beginning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from stillroom.config import READING, Reading
from stillroom.errors import EmptyRollout, RolloutError
from stillroom.rollouts.contents import told_by
from stillroom.rollouts.item import MESSAGES, Item
from stillroom.rollouts.records import Records
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import open_items

_PLACES = ("sessions/*/*/*", "archived_sessions")


class Fork(Records):
    """Leaves out the items with which a fork begins, as long as they are those of its origin, one after the other."""

    def __init__(self, stats: ReadStats, *, copied: Sequence[int]) -> None:
        super().__init__(stats)
        self._copied = copied
        self._at = 0

    def items(self, lines: list[bytes], line_no: int) -> Iterator[Item]:
        """The items of `lines`, of which the first has the number `line_no`."""
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
        if self._at == len(self._copied):
            return super().joined(lines)
        return b",".join([item.raw for item in self.items(lines, 0)])


def origin_of(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> Path | None:
    """The rollout whose lines this one begins with, if it is still there. Raises `RolloutError`."""
    with open_items(path, max_line_bytes=max_line_bytes, stop_after_bytes=0, reading=reading) as items:
        try:
            next(iter(items), None)
        except EmptyRollout:
            return None
    origin = items.stats.copied_from
    home = next((parent.parent for parent in path.parents if parent.name in ("sessions", "archived_sessions")), None)
    if origin is None or home is None or not origin.replace("-", "").isalnum():
        return None
    found = (file for place in _PLACES for file in home.glob(f"{place}/rollout-*-{origin}.jsonl*"))
    return next((Path(str(file).removesuffix(".zst")) for file in found if not file.name.startswith(path.name)), None)


def copied_from(origin: Path, *, max_line_bytes: int, reading: Reading = READING) -> list[int]:
    """The keys of the origin's items, in their order; none if it can't be read."""
    try:
        with open_items(origin, max_line_bytes=max_line_bytes, reading=reading) as items:
            return [_key(item) for item in islice(items, reading.remembered_records)]
    except RolloutError:
        return []


def _key(item: Item) -> int:
    return hash(told_by(item))
