"""Base classes of the decoders that turn a session's lines into items.

`LineDecoder` counts, remembers ids and pending calls, and removes what never feeds memory. `ConversationDecoder` also
knows whose a prompt is, which prompts were taken back, and what another session holds too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Set
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.fragments import clean, is_marked
from stillroom.sessions.item import MESSAGES, Item
from stillroom.sessions.item import UNREADABLE as UNREADABLE
from stillroom.sessions.jsonl import open_stored, read_batches
from stillroom.sessions.normalize import NormalizedItem, said_by_agent, said_by_user, taken_back
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.timestamps import parse_timestamp

# --- Lines

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
        self._calls: dict[str, NormalizedItem] = {}

    @abstractmethod
    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
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

    def called(self, call_id: str, call: NormalizedItem) -> NormalizedItem:
        """Remember a call until its result comes."""
        self._calls[call_id] = call
        if len(self._calls) > _PENDING_CALLS:
            del self._calls[next(iter(self._calls))]
        return call

    def call_of(self, call_id: str) -> NormalizedItem | None:
        """The call that a result belongs to, once."""
        return self._calls.pop(call_id, None)

    def _count(self, made: list[NormalizedItem]) -> None:
        self.stats.kept += len(made)
        self.stats.messages += sum(item.type in MESSAGES for item in made)

    def _read(self, line: bytes) -> tuple[int | None, list[NormalizedItem]]:
        if not line or line.isspace():
            return None, []
        try:
            at, made = self.made(line)
            return at, self._cleaned(made)
        except (*UNREADABLE, TypeError):  # also a list where a name should be: it has no hash
            if not self.stats.torn:
                self.stats.bad_lines += 1
            return None, []

    def _cleaned(self, made: Iterable[NormalizedItem]) -> list[NormalizedItem]:
        """Without the memory that was shown to the session, instruction files, and inline images."""
        cleaned: list[NormalizedItem] = []
        for item in made:
            user = item.role == "user"
            if user or is_marked(item.raw):
                raw, images = clean(item.raw, user=user)
                self.stats.images += images
                if raw is None:
                    self.stats.drop("nothing said")
                    continue
                item = NormalizedItem(item.type, item.role, raw)
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


class Past(NamedTuple):
    """What only the whole of a session tells, and other sessions beside it."""

    #: The ids of the prompts that the user went back behind, as hashes.
    superseded: Set[int] = frozenset()
    #: The keys of the records that another session holds too, as hashes.
    inherited: Set[int] = frozenset()


NOTHING = Past()
"""Of a session that is looked at for its beginning, or that nobody can go back in."""


class Search(Protocol):
    """Reads a session for one of these sets. Raises `OSError` or `RolloutError`."""

    def __call__(self, path: Path, /, *, max_line_bytes: int, reading: Reading) -> frozenset[int]: ...


def past_of(path: Path, superseded: Search, inherited: Search, *, max_line_bytes: int, reading: Reading) -> Past:
    """Read the session twice for its past, ahead of reading its items. Raises `RolloutError`."""
    try:
        return Past(
            superseded(path, max_line_bytes=max_line_bytes, reading=reading),
            inherited(path, max_line_bytes=max_line_bytes, reading=reading),
        )
    except OSError as error:
        raise RolloutError(f"`{path}` can't be read: {error.strerror}") from error


def lines_of(path: Path, *, max_line_bytes: int, reading: Reading) -> Iterator[bytes]:
    """Every line of a session's file, for such a search. Raises `OSError` or `RolloutError`."""
    with open_stored(path, reading=reading) as file:
        for lines in read_batches(file, ReadStats(), max_line_bytes=max_line_bytes, reading=reading):
            yield from lines


class ConversationDecoder(LineDecoder):
    """Decodes the records of a session, or, `of_agent`, of one in which another agent has the user's place."""

    def __init__(
        self,
        stats: ReadStats,
        *,
        of_agent: bool = False,
        cwd: str | None = None,
        past: Past = NOTHING,
        reading: Reading = READING,
    ) -> None:
        super().__init__(stats, reading=reading)
        #: Where the session works, once that is known.
        self.cwd = cwd
        self.of_agent = of_agent
        self._superseded = past.superseded
        self._seen |= past.inherited

    def prompt(self, key: str, *texts: str) -> Iterator[NormalizedItem]:
        """What was said in the user's place, in the record of this key."""
        if self.of_agent:
            yield said_by_agent("\n".join(texts))
        elif hash(key) in self._superseded:
            self.stats.superseded += 1
            yield taken_back(*texts)
        else:
            yield said_by_user(*texts)
