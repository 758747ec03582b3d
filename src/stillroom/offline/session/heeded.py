"""Which bare words of the user anything came of: work was done after them, or the session speaks of the same thing."""

from __future__ import annotations

from collections.abc import Sequence

from stillroom.offline import cues
from stillroom.offline.session import kinds, stance
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import Wish
from stillroom.offline.text import words
from stillroom.rollouts.events import Said

_BY_CHANCE = 1.0
"""Words that a sentence may share with a session's work without having to do with it."""
_BRIEF = 4.0
"""A rule that says less than this (in words) can be a remark that only sounds like one ("I have to feed the hens")."""
_OPENING_CHARS = 40
_CHARS = 4000
"""Of one output, edit or reply that are looked at: what it is about stands at its beginning."""


def only(wishes: list[Wish], turns: Sequence[Turn]) -> list[Wish]:
    """`wishes` without the bare statements and remarks that nobody acted on and nothing in the session speaks of."""
    spoken_of: list[frozenset[str]] = []  # costs a look at the whole session: most need none

    def shared(text: str) -> float:
        if not spoken_of:
            spoken_of.append(_spoken_of(turns))
        return words.weight((words.content(text) | words.pieces(text)) & spoken_of[0])

    wishes = [wish for wish in wishes if not _is_the_task(wish, turns[wish.turn])]
    return [wish for wish in wishes if _stands_alone(wish, turns[wish.turn]) or shared(wish.quote) > _BY_CHANCE]


def _is_the_task(wish: Wish, turn: Turn) -> bool:
    """Whether a wish is what a turn was for: its first sentence, after which was worked or looked, and no lasting word.

    Of a later turn that edited something, the first sentence may be what was settled.
    """
    if not turn.runs or (turn.number and turn.edited) or not wish.quote.startswith(turn.sentences[0][:_OPENING_CHARS]):
        return False
    if wish.kind not in ("rule", "preference", "decision") or wish.seen or wish.about or _binds(wish, turn):
        return False
    if not turn.number:
        return wish.kind != "decision"
    return not (cues.has("standing", wish.quote, turn.spoken) or stance.rejects(turn))


def _binds(wish: Wish, turn: Turn) -> bool:
    """Whether a word says that `wish` is meant to hold: then no work has to bear it out."""
    if wish.kind == "fact":
        return cues.has("constraint", wish.quote, turn.spoken) or kinds.begins_condition(wish.quote, turn.spoken)
    # Of sentences that were joined, each by itself may bind.
    told = [s for s in turn.sentences if s in wish.quote] or [wish.quote]
    return any(kinds.binds(sentence, turn.spoken, opening=not turn.number) for sentence in told)


def _stands_alone(wish: Wish, turn: Turn) -> bool:
    """Whether `wish` is worth a line whatever the rest of the session was about."""
    if turn.runs or wish.seen or (wish.about and wish.kind != "decision") or wish.about.startswith("agreed to "):
        return True
    if wish.kind == "correction" or _binds(wish, turn):
        return True
    return wish.kind != "fact" and kinds.own_weight(wish.quote, turn.spoken) >= _BRIEF


def _spoken_of(turns: Sequence[Turn]) -> frozenset[str]:
    """The words of everything in a session that the user didn't write."""
    found: set[str] = set()
    for step in (step for turn in turns for step in turn.steps):
        if isinstance(step, Said):
            found |= words.content(step.text[:_CHARS])
            continue
        for edit in step.edits:
            found |= words.pieces(f"{edit.path} {edit.diff[:_CHARS]}")
        shown = f"{step.command or ''} {step.output[:_CHARS]}"
        found |= words.content(shown) | words.pieces(shown)
    return frozenset(found)
