"""Wishes that the user takes back in so many words: "forget what I said about folders"."""

from __future__ import annotations

from collections.abc import Sequence

from stillroom.offline import cues
from stillroom.offline.session.kinds import CLAUSES
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import BARE, Wish
from stillroom.offline.text import words


def without(wishes: Sequence[Wish], turns: Sequence[Turn]) -> list[Wish]:
    """`wishes` without those of earlier turns that were taken back: what the words name, or, if nothing, the last."""
    left = list(wishes)
    for turn in turns:
        for sentence in turn.sentences:
            if cues.has("unsaid", sentence, turn.spoken):
                left = _without(left, turn, sentence)
    return left


def _without(wishes: list[Wish], turn: Turn, sentence: str) -> list[Wish]:
    clauses = [clause for clause in CLAUSES.split(sentence) if cues.has("unsaid", clause, turn.spoken)]
    said = " ".join(clauses) or sentence
    named = words.content(said)
    earlier = [wish for wish in wishes if wish.turn < turn.number]
    gone = [wish for wish in earlier if named & wish.subject]
    if not gone and not words.content(cues.without("unsaid", said, turn.spoken)):
        gone = earlier[-1:]
    what = frozenset().union(*(wish.subject for wish in gone))
    gone += [wish for wish in wishes if wish.turn == turn.number and _only_unsays(wish, what, turn)]
    return [wish for wish in wishes if wish not in gone]


def _only_unsays(wish: Wish, what: frozenset[str], turn: Turn) -> bool:
    """Whether a wish is to take `what` back, and says too little beside it."""
    if not cues.has("unsaid", wish.quote, turn.spoken):
        return False
    return words.weight(words.content(cues.without("unsaid", wish.quote, turn.spoken)) - what) < BARE
