"""How a sentence hangs on those beside it: it goes on with the one before, limits it, or takes it back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stillroom.offline import cues
from stillroom.offline.session import kinds, unmeant
from stillroom.offline.session.wish import BARE, Wish
from stillroom.offline.text import words
from stillroom.pattern import late

_TRAILING = 7.0
"""A sentence up to this (in words) that follows a wish, and is nothing of its own, goes on with it."""
_BARE_WORD = 1.0
"""A word by itself (in words) is the rest of what was said: "15", "certification"."""
_TIES = (
    "anaphora",
    "artefact",
    "cause",
    "contrast",
    "decision",
    "negation",
    "order",
    "preference",
    "prohibition",
    "standing",
    "takeback",
)
"""What ties a sentence to the wish before it, when the two share no word."""
_PRONOUN = late(
    r"\W*(?:it|they|that|those|these|das|die|es muss|eso|esto|ça|cela|isso|isto|это|они|它们?|这些?|那些?|それ|これ)"
    r"(?:'s| )?(?:has|have|must|should|needs?|goes|go|stays?|muss|müssen|soll\w*|tiene que|debe\w*|doit|doivent|tem que"
    r"|deve\w*|должн\w+|必须|都要|一定)"
    r"|\W*(?:(?:that|this|it)(?:'s| is| goes| holds| applies)|(?:these|those|they) (?:are|go|hold|apply)"
    r"|das (?:ist|gilt)|eso (?:es|vale)"
    r"|(?:ça|cela) (?:vaut|est)|isso (?:é|vale)|это (?:касается|относится)|这(?:是|条|个规矩)|これは)\b"
    r"|\W*(?:これ|それ|あれ|그게|이게|이건)[^。.]{0,12}(?:決まり|ルール|規約|方針|규칙|방침|원칙)",
    re.IGNORECASE,
)
"""Begins a rule on what the sentence before it names."""


def leans_on(sentence: str, before: str, spoken: tuple[str, ...]) -> bool:
    """Whether a short rule is on what the sentence before it names ("a binding.irb is left. never leave it")."""
    if _PRONOUN.match(sentence) or _points_back(sentence, spoken):
        leans = kinds.own_weight(before, spoken) >= 1 and not unmeant.is_idle(before, spoken)
        leans = leans and not any(cues.has(kind, before, spoken) for kind in ("verdict", "works", "thanks"))
    else:
        leans = any(not name[0].isdigit() for name in words.identifiers(before)) and not words.identifiers(sentence)
        leans = leans and kinds.own_weight(sentence, spoken) < kinds.LEANING
    return (
        leans
        and kinds.has_own_rule(sentence, spoken)
        and not kinds.is_question(before, spoken)
        and not unmeant.is_idle(sentence, spoken)
    )


def _points_back(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether a short sentence says "it" or "that" of what it doesn't name ("don't run anything on it")."""
    rest = cues.without("standing", sentence, spoken)  # "in this repo" points at nothing that was said
    if words.identifiers(sentence) or not cues.has("anaphora", rest, spoken):
        return False
    return kinds.own_weight(sentence, spoken) < kinds.LEANING


def answers_itself(sentence: str, following: Sequence[str], spoken: tuple[str, ...]) -> int:
    """How many of the sentences that follow a question say never to it ("push it yourself? no. never."); 0 for none."""
    if not sentence.endswith(("?", "？")) or kinds.own_weight(sentence, spoken) < BARE:
        return 0
    for count, answer in enumerate(following[:2], 1):
        if kinds.own_weight(answer, spoken) > 0:
            return 0
        if cues.opens("frequency", answer, spoken) and cues.opens("prohibition", answer, spoken):
            return count
    return 0


def goes_on(sentence: str, wish: Wish, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence that is no wish itself belongs to the one before: its reason, or the rest of a list."""
    if (
        kinds.is_question(sentence, spoken)
        or kinds.is_passing(sentence, spoken)
        or cues.has("perishable", sentence, spoken)
    ):
        return False
    follows = cues.opens("conclusion", sentence, spoken) > 0
    if any(cues.opens(kind, sentence, spoken) for kind in ("thanks", "transition", "request", "polite")):
        return False
    if cues.opens("greeting", sentence, spoken) and not follows:
        return False
    if unmeant.is_idle(sentence, spoken) or any(cues.has(kind, sentence, spoken) for kind in ("musing", "dismiss")):
        return False
    own = words.content(sentence)
    if words.weight(own) > _TRAILING or (cues.opens("pointing", sentence, spoken) and words.weight(own) <= BARE):
        return False
    if cues.has("reading", sentence, spoken) or cues.opens("approval", sentence, spoken):
        return False
    if own & wish.subject or follows:
        return True
    if cues.has("personal", sentence, spoken):
        return False
    if words.identifiers(sentence) or kinds.numbers(sentence):
        return True
    return words.weight(own) <= _BARE_WORD or any(cues.has(kind, sentence, spoken) for kind in _TIES)


def is_short(text: str) -> bool:
    return len(text) <= (30 if any(ord(c) > 0x2E80 for c in text) else 60)


def revises(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence takes back the one before it in the same breath ("grams. no wait, kilograms")."""
    return cues.opens("retract", sentence, spoken) > 0 and kinds.own_weight(sentence, spoken) >= 1


def limits(wish: Wish, sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence says how far the agreement before it goes ("the second. but at 20")."""
    return wish.about.startswith("agreed to ") and cues.opens("contrast", sentence, spoken) > 0


def disowns(sentence: str, before: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence says that what the one before hands on from others doesn't hold here, or only mocks it."""
    distant = cues.has("distance", sentence, spoken) or cues.has("idle", sentence, spoken)
    return distant and cues.has("reported", before, spoken)
