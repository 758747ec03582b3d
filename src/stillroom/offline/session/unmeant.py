"""What a sentence says without meaning it: sighs, memories, wonderings, trials and the words of others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stillroom.offline import cues
from stillroom.offline.session import kinds
from stillroom.offline.text import mentions, words
from stillroom.pattern import late

_IDLE = ("idle", "hearsay", "hedge", "bygone")
_SAYS_SOMETHING = 3.0
"""Of a sentence with an idle clause, the rest says something from this on (in words)."""
_BESIDE = 1
"""A word that something was a joke is on the sentence before it or after it."""
_POINTERS = ("first", "second", "third", "last", "retract", "anaphora", "pointing", "correction")
"""Cues that name no thing: a place in a row, or that another one is meant."""
_HEARSAY = late(
    r"\b(?:someone|somebody|people|reddit|stack ?overflow|twitter|a blog|the internet|chatgpt|copilot|hacker news)\b"
    r".{0,30}\b(?:says?|said|wrote|claims?|thinks?|recommends?)\b",
    re.IGNORECASE,
)
_HANDED_ON = late(
    r"(?:wrote|writes|says|said|told me|schrieb|schreibt|sagte?|meint|écrit|dit|escribió|dice|dijo|escreveu|disse|diz"
    r"|написал\w*|пишет|сказал\w*|写道|说|言って|書いて|썼|라고)\s*[:：,]?\s*[\"“«「„'][^\"”»」]{15,}",
    re.IGNORECASE,
)


def quotes_another(quote: str) -> bool:
    """Whether a sentence hands on what somebody else said."""
    return _HANDED_ON.search(quote) is not None or _HEARSAY.search(quote) is not None


def is_idle(quote: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence only sighs, wonders, remembers or hands on hearsay; another clause may say something."""
    if cues.has("supposed", quote, spoken):
        return True
    if not any(cues.has(kind, quote, spoken) for kind in _IDLE):
        return False
    clauses = kinds.CLAUSES.split(quote)
    rest = " ".join(c for c in clauses if not any(cues.has(kind, c, spoken) for kind in _IDLE))
    if len(rest) >= len(" ".join(clauses)):
        return True  # the cue reaches over a mark ("no idea, whether …")
    if kinds.own_weight(rest, spoken) < _SAYS_SOMETHING:
        return True
    # What is told beside a memory is part of the story, unless it says how things are now.
    return cues.has("bygone", quote, spoken) and not (kinds.has_own_rule(rest, spoken) or kinds.states(rest, spoken))


def is_kept_at_distance(quote: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence hands on what others want and says that it doesn't hold here, or only the latter."""
    if not cues.has("distance", quote, spoken):
        return False
    rest = cues.without("distance", quote, spoken)
    return cues.has("reported", rest, spoken) or kinds.own_weight(rest, spoken) < _SAYS_SOMETHING


def is_opinion(quote: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence opens with who says or thinks it, and asks nobody to keep it in mind."""
    return cues.opens("opined", cues.without_opener(quote, spoken), spoken) > 0 and not cues.has(
        "remember", quote, spoken
    )


def is_joke(message: Sequence[str], number: int, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence, or one of those beside it, says that it was not meant ("rewrite it in zig! (joking)")."""
    beside = message[max(0, number - _BESIDE) : number + _BESIDE + 1]
    return any(cues.has("joke", s, spoken) and kinds.own_weight(s, spoken) <= _SAYS_SOMETHING for s in beside)


def is_trial(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence only wants something tried: it holds as long as the attempt does."""
    return cues.opens("trial", cues.without_opener(sentence, spoken), spoken) > 0


def only_points(quote: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence names nothing but places in a row ("the other one. no, the first")."""
    if words.identifiers(quote) or kinds.numbers(quote):
        return False
    for kind in _POINTERS:
        quote = cues.without(kind, quote, spoken)
    return kinds.own_weight(quote, spoken) == 0


def only_asks(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence is a question that says nothing itself ("true?")."""
    return (
        sentence.endswith(("?", "？")) and kinds.own_weight(sentence, spoken) <= 1 and not words.identifiers(sentence)
    )


def only_announces(sentence: str, rest: Sequence[str]) -> bool:
    """Whether a sentence ends with a colon, and what it announces was handed on or is a quotation."""
    return sentence.endswith((":", "：")) and not (rest and words.content(mentions.without(rest[0])))
