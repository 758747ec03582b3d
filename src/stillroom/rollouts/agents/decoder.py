"""What the decoders of line by line formats share: counting, ids seen before, and what never feeds memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.made import Made
from stillroom.rollouts.fragments import clean, is_marked
from stillroom.rollouts.item import MESSAGES, Item
from stillroom.rollouts.item import UNREADABLE as UNREADABLE
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.timestamps import parse_timestamp

# Calls whose result may still come; a client has a handful at a time.
_PENDING_CALLS = 1000


class LineDecoder(ABC):
    """Decodes the lines of one session, in their order, and counts into `stats`. Nothing that a line holds raises.

    A reader says in `made` what one line is in Codex's words, and when it was written.
    """

    def __init__(self, stats: ReadStats, *, reading: Reading = READING) -> None:
        self.stats = stats
        self._max_seen = reading.remembered_records
        self._seen: set[int] = set()
        self._calls: dict[str, Made] = {}

    @abstractmethod
    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The time in milliseconds, and the items. Raises one of `UNREADABLE` for a line that can't be read."""

    def may_matter(self, beginning: bytes) -> bool:
        """False only if the first bytes of a line say that it holds nothing for memory."""
        del beginning
        return True

    def items(self, lines: list[bytes], line_no: int) -> Iterator[Item]:
        """The items of `lines`, of which the first has the number `line_no`."""
        for number, line in enumerate(lines, line_no):
            at, made = self._read(line)
            self._count(made)
            for item in made:
                yield Item(item.type, item.role, item.raw, at, number)

    def joined(self, lines: list[bytes]) -> bytes:
        """The same items, but only their `raw`, with commas between."""
        made = [item for line in lines for item in self._read(line)[1]]
        self._count(made)
        return b",".join([item.raw for item in made])

    def is_new(self, key: str) -> bool:
        """Whether the key was not asked for before."""
        number = hash(key)
        if number in self._seen:
            self.stats.drop("seen before")
            return False
        if len(self._seen) < self._max_seen:
            self._seen.add(number)
        return True

    def called(self, call_id: str, call: Made) -> Made:
        """Remember a call until its result comes."""
        self._calls[call_id] = call
        if len(self._calls) > _PENDING_CALLS:
            del self._calls[next(iter(self._calls))]
        return call

    def call_of(self, call_id: str) -> Made | None:
        """The call that a result belongs to, once."""
        return self._calls.pop(call_id, None)

    def _count(self, made: list[Made]) -> None:
        self.stats.kept += len(made)
        self.stats.messages += sum(item.type in MESSAGES for item in made)

    def _read(self, line: bytes) -> tuple[int | None, list[Made]]:
        if not line or line.isspace():
            return None, []
        try:
            at, made = self.made(line)
            return at, self._cleaned(made)
        except (*UNREADABLE, TypeError):  # also a list where a name should be: it has no hash
            if not self.stats.torn:
                self.stats.bad_lines += 1
            return None, []

    def _cleaned(self, made: Iterable[Made]) -> list[Made]:
        """Without the memory that was shown to the session, instruction files, and inline images."""
        cleaned: list[Made] = []
        for item in made:
            user = item.role == "user"
            if user or is_marked(item.raw):
                raw, images = clean(item.raw, user=user)
                self.stats.images += images
                if raw is None:
                    self.stats.drop("nothing said")
                    continue
                item = Made(item.type, item.role, raw)
            cleaned.append(item)
        return cleaned


def text_of(value: Any) -> str:
    """A value of a file that should be a text; "" if it is something else."""
    return value if isinstance(value, str) else ""


def number_of(value: Any) -> int | None:
    """A value of a file that should be a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def time_of(value: Any) -> int | None:
    """A value of a file that should be a time, in milliseconds."""
    return parse_timestamp(value.encode("utf-8", "replace")) if isinstance(value, str) else None
