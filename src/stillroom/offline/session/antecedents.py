"""What a wish that says too little by itself is about."""

from __future__ import annotations

from stillroom.offline import cues
from stillroom.offline.session import agreements, kinds, referents, stance, unmeant
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import BARE, WishKind
from stillroom.offline.text import words


def of(turn: Turn, before: Turn, kind: WishKind, *, leans: bool) -> str:
    """Words that say what a short wish is about: a question, an instruction or an action; "" when nothing does."""
    if stance.rejects(turn):
        # What was turned down is not repeated: the user's own words are enough, or nothing is kept.
        return f"after {done}" if (done := referents.action(before)) else ""
    asked = referents.question(before)
    if asked and kind != "correction":
        return f"asked “{words.shorten(asked, 200)}”"
    if kind == "decision" and any(cues.has("deliberation", q, before.spoken) for q in agreements.asked_by_user(before)):
        return f"asked “{words.shorten(agreements.asked_by_user(before)[0], 200)}”"
    said = _said_before(turn, before) if leans else ""
    if words.weight(words.content(said)) >= BARE and len(said) <= 160 and _is_plain(said, before.spoken):
        done = referents.action(before)
        return f"after “{words.shorten(said, 160)}”" + (f" ({done})" if done else "")
    done = referents.action(before)
    return f"after {done}" if done else ""


def _said_before(turn: Turn, before: Turn) -> str:
    """The instruction before: of several sentences the one with a number when this one has a number, else the last."""
    if not before.sentences:
        return ""
    with_number = [s for s in before.sentences if kinds.numbers(s)]
    return with_number[-1] if with_number and kinds.numbers(turn.text) else before.sentences[-1]


def _is_plain(sentence: str, spoken: tuple[str, ...]) -> bool:
    """An instruction that a later fragment can refer to."""
    if (
        kinds.is_question(sentence, spoken)
        or kinds.is_passing(sentence, spoken)
        or any(cues.has(kind, sentence, spoken) for kind in ("takeback", "perishable"))
        or unmeant.is_idle(sentence, spoken)
    ):
        return False
    return cues.opens("approval", sentence, spoken) == 0
