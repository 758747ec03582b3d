"""What decoders of talks share: whose prompts they are, which were left behind, and what another session holds too."""

from __future__ import annotations

from collections.abc import Iterator, Set
from pathlib import Path
from typing import NamedTuple, Protocol

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.decoder import LineDecoder
from stillroom.rollouts.agents.made import Made, said_by_agent, said_by_user, taken_back
from stillroom.rollouts.batches import read_batches
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.stats import ReadStats


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


class TalkDecoder(LineDecoder):
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

    def prompt(self, key: str, *texts: str) -> Iterator[Made]:
        """What was said in the user's place, in the record of this key."""
        if self.of_agent:
            yield said_by_agent("\n".join(texts))
        elif hash(key) in self._superseded:
            self.stats.superseded += 1
            yield taken_back(*texts)
        else:
            yield said_by_user(*texts)
