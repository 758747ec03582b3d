"""Which of the states that a user tells of will still be true: one that binds, or that the work bears out."""

from __future__ import annotations

import re

from stillroom.offline import cues
from stillroom.offline.session import kinds, referents
from stillroom.offline.session.turns import Turn
from stillroom.offline.text import words
from stillroom.rollouts.events import Ran, Said

_BORNE_OUT = 2.0
"""A state shares this much with an edit that has to do with it (in words)."""
_UNPARTED = ("zh", "ja", "ko")
"""Languages in which a word in Latin letters is a name."""


def lasts(quote: str, turn: Turn) -> bool:
    """Whether a state is worth a line: nobody mended it since, and it is more than what the user saw that day."""
    return not _is_mended(quote, turn) and _is_borne_out(quote, turn)


def _is_borne_out(quote: str, turn: Turn) -> bool:
    """Whether a state that the user tells of binds, names a thing, or has to do with the work that followed."""
    if cues.has("constraint", quote, turn.spoken):
        return True
    if any(not name[0].isdigit() for name in words.identifiers(quote)) or referents.evidence(turn, quote):
        return True
    if turn.spoken[0] in _UNPARTED and re.search(r"[A-Za-z]{3,}", quote):
        return True
    return _shared_with_edits(quote, turn) >= _BORNE_OUT


def is_unchanged_yet(quote: str, turn: Turn) -> bool:
    """Whether `quote` says that something is still as it was: it will not be for long, unless the work was on it."""
    return cues.has("still", kinds.CLAUSES.split(quote)[0], turn.spoken) and not is_worked_on(quote, turn)


def is_worked_on(quote: str, turn: Turn) -> bool:
    """Whether the work that followed has to do with what `quote` says."""
    return bool(referents.evidence(turn, quote)) or _shared_with_edits(quote, turn) > 0


def _shared_with_edits(quote: str, turn: Turn) -> float:
    own = words.content(quote)
    done = (words.pieces(edit.path + " " + edit.diff[:4000]) for run in turn.runs for edit in run.edits)
    return max((words.weight(own & held) for held in done), default=0.0)


def _is_mended(quote: str, turn: Turn) -> bool:
    """Whether a state that the user told of was looked into and changed in the same turn: a complaint, then."""
    edit = next((i for i, step in enumerate(turn.steps) if isinstance(step, Ran) and step.edits), None)
    if edit is None or quote not in turn.sentences[:1] or referents.evidence(turn, quote):
        return False
    return any(isinstance(step, Said) and cues.has("cause", step.text, turn.spoken) for step in turn.steps[:edit])
