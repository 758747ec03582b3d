"""Later wins: which of a person's sentences a later one replaced, and what was taken back."""

from __future__ import annotations

from collections.abc import Sequence

from stillroom.offline import cues
from stillroom.offline.features import Sentence
from stillroom.offline.text import conflict

_MOST = 80
"""Sentences that are compared with each other: their number goes in as a square."""


def replaced(found: Sequence[Sentence]) -> dict[int, Sentence]:
    """The place in `found` of each sentence that no longer holds, with the later one that says otherwise."""
    claims = {at: conflict.claim(one.text) for at, one in enumerate(found)}
    order = sorted(sorted(claims, key=lambda at: -found[at].score)[:_MOST])
    gone: dict[int, Sentence] = {}
    for number, at in enumerate(order):
        for other in order[number + 1 :]:
            apart = found[other].turn > found[at].turn
            if apart and conflict.supersedes(claims[other], claims[at]):
                gone[at] = found[other]
                break
    return gone


def taken_back(one: Sentence) -> bool:
    """Whether what was asked for was undone in the files, or what it names went out of them."""
    x = one.features
    return x.get("gone", 0.0) > 0.5 or (x.get("undone", 0.0) > 0 and x.get("next_undo", 0.0) > 0)


def is_yes(text: str) -> bool:
    """Whether a short answer agrees: a yes, and nothing against it."""
    agrees = cues.has("yes", text) or cues.has("nod", text)
    return agrees and not any(cues.has(kind, text) for kind in ("negative", "undo", "opinion"))
