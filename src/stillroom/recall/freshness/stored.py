"""What was found of facts, in `freshness.json`: a session start and `status` read it, a pass writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from stillroom.private_file import write_private
from stillroom.recall.freshness.anchors import Anchor, Kind

FILE = "freshness.json"
_FORMAT = 1
#: A larger file is none of ours.
_MOST_BYTES = 16 * 1024 * 1024

State = Literal["fresh", "moved", "broken", "unknown"]
"""There; under another name; was there and is no more; nobody can tell."""


class Fact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that memory names, and what became of it."""

    kind: Kind
    text: str
    state: State
    #: Where it moved to.
    now: str | None = None

    @property
    def anchor(self) -> Anchor:
        return Anchor(self.kind, self.text)


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of one repository."""

    folder: str
    place: str
    #: How the repository looked then; an equal one is not asked again.
    look: list[list[int] | None]
    at: int  #: seconds
    facts: tuple[Fact, ...]
    #: Facts that were left for the next pass, for want of time.
    left: int = 0


class Freshness(msgspec.Struct, frozen=True, kw_only=True):
    """All that was looked at."""

    format: int = _FORMAT
    repositories: tuple[Checked, ...] = ()

    def states(self, place: str) -> dict[Anchor, Fact]:
        """Of one repository, by what is named."""
        return {fact.anchor: fact for each in self.repositories if each.place == place for fact in each.facts}


_decoder = msgspec.json.Decoder(Freshness)


def load_freshness(home: Path) -> Freshness:
    """What is stored; nothing when there is nothing, or it can't be read."""
    try:
        with (home / FILE).open("rb") as file:
            found = _decoder.decode(file.read(_MOST_BYTES))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return Freshness()
    return found if found.format == _FORMAT else Freshness()


def save_freshness(home: Path, found: Freshness) -> None:
    """Keep it. Raises `OSError`."""
    write_private(home / FILE, msgspec.json.encode(found))
