"""What became of what memory names, as the last pass found it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec

from stillroom.recall.freshness.looks import look_of
from stillroom.recall.freshness.stored import State, load_freshness

#: The first few that are gone are named; the rest is counted.
_NAMED = 10


class Gone(msgspec.Struct, frozen=True, kw_only=True):
    """Something that memory names and its repository no longer has."""

    folder: str
    kind: str
    text: str
    #: Where it moved to; None: it is gone.
    now: str | None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Paths, symbols, commands and commits that memory names, of repositories that are at hand."""

    repositories: int = 0
    states: dict[State, int] = {}
    #: Not looked at yet, for want of time.
    left: int = 0
    #: When the repository was looked at that was looked at longest ago, in seconds; None: none was.
    checked_at: int | None = None
    #: Repositories in which git wrote something since: the next pass looks again.
    changed_since: int = 0
    #: Those that are broken first.
    gone: tuple[Gone, ...] = ()


def read_facts(home: Path) -> Facts:
    """As stored: of a repository only its look is compared, and git is not asked."""
    found = load_freshness(home).repositories
    facts = [(each.folder, fact) for each in found for fact in each.facts]
    gone = [(folder, fact) for state in ("broken", "moved") for folder, fact in facts if fact.state == state]
    return Facts(
        repositories=len(found),
        states=dict(Counter(fact.state for _, fact in facts)),
        left=sum(each.left for each in found),
        checked_at=min((each.at for each in found), default=None),
        changed_since=sum(
            not each.left and Path(each.place).is_dir() and look_of(each.folder, each.place) != each.look
            for each in found
        ),
        gone=tuple(Gone(folder=folder, kind=fact.kind, text=fact.text, now=fact.now) for folder, fact in gone[:_NAMED]),
    )
