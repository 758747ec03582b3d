"""One thing that the user wants, and how later words change or replace it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from stillroom.offline.session import kinds
from stillroom.offline.session.kinds import LEANING
from stillroom.offline.text import words

__all__ = ["BARE", "LEANING", "Wish", "WishKind", "amended", "amends", "distinct", "without_replaced"]

WishKind = Literal["rule", "correction", "preference", "decision", "fact"]

BARE = 2.0
"""A sentence that says less than this (in words) says nothing without what it refers to."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One thing the user said that outlives the session."""

    turn: int
    kind: WishKind
    quote: str
    #: What it refers to, when it doesn't stand alone: "after …", "asked …", "agreed to …".
    about: str = ""
    #: What came of it in the files, when the words alone don't tell.
    seen: str = ""
    #: Later words that change it.
    amended: tuple[str, ...] = ()
    changes: bool = False
    negative: bool = False
    replaced: str = ""  #: what it supersedes, in the user's earlier words
    subject: frozenset[str] = field(default=frozenset(), compare=False)


def amends(later: Wish, earlier: Wish) -> bool:
    """Whether a fragment changes the decision just before it ("and make that 10")."""
    if not later.changes or later.kind == "rule" or later.turn - earlier.turn > 2:
        return False
    own = words.content(later.quote)
    told = earlier.quote + (earlier.about if earlier.about.startswith("agreed to ") else "")
    close = later.turn > earlier.turn and earlier.kind in ("decision", "correction")
    if close and words.weight(own) < LEANING:
        return True
    if close and words.weight(own) < 2 * LEANING and kinds.numbers(later.quote) and kinds.numbers(told):
        return True
    # A part of it changes, the rest stays.
    common = own & words.content(earlier.quote)
    rest = words.weight(earlier.subject - own)
    return words.weight(common) >= 2 and words.overlap(own, earlier.subject) >= 0.4 and rest >= 3


def amended(earlier: Wish, later: Wish) -> Wish:
    said = f"“{later.quote}”" + (f" ({later.seen})" if later.seen else "")
    return replace(
        earlier,
        amended=(*earlier.amended, said),
        subject=earlier.subject | later.subject,
        turn=later.turn,
        changes=True,
    )


def without_replaced(wishes: list[Wish]) -> tuple[list[Wish], list[tuple[int, frozenset[str]]]]:
    """Drop what a later wish on the same subject replaces; the later one says so."""
    kept: list[Wish] = []
    outdated: list[tuple[int, frozenset[str]]] = []
    for wish in wishes:
        for index in range(len(kept) - 1, -1, -1):
            earlier = kept[index]
            if earlier.turn < wish.turn and _replaces(wish, earlier):
                wish = replace(wish, replaced=earlier.quote)
                outdated.append((wish.turn, frozenset(earlier.subject - wish.subject)))
                del kept[index]
        kept.append(wish)
    return kept, outdated


def _replaces(later: Wish, earlier: Wish) -> bool:
    common = later.subject & earlier.subject
    near = words.overlap(later.subject, earlier.subject)
    if not common:
        return False
    different = bool(later.subject - earlier.subject)
    if later.changes and later.kind != "rule":
        return different and near >= 0.5 and words.weight(common) >= 1.5
    if later.negative != earlier.negative:
        return words.weight(common) >= 2 and near >= 0.6
    numbers = (kinds.numbers(later.quote), kinds.numbers(earlier.quote))
    return bool(numbers[0] and numbers[1] and numbers[0] != numbers[1]) and near >= 0.6 and words.weight(common) >= 2


def distinct(wishes: list[Wish]) -> list[Wish]:
    kept: list[Wish] = []
    for wish in wishes:
        same = next(
            (
                i
                for i, k in enumerate(kept)
                if words.jaccard(k.subject, wish.subject) >= 0.8 and k.negative == wish.negative
            ),
            None,
        )
        if same is None:
            kept.append(wish)
        elif len(wish.quote) > len(kept[same].quote) and wish.kind == "rule":
            kept[same] = wish
    return kept
