"""The words in which a user tells of a fault, without their day, and without what they want done about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stillroom.offline import cues
from stillroom.offline.session import kinds, stance, unmeant
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import BARE, Wish
from stillroom.offline.text import mentions, words
from stillroom.pattern import late

_READING = late(r"(?<![\w./-])\d+(?:[.,]\d+)?")
"""A number by itself: what was measured on the day."""
_SAYS_SOMETHING = 1.0
"""A clause of a symptom tells something from this on (in words)."""
_TELLS_WITHOUT = 3.0
"""Of a clause the words for its day are left out when the rest says this much (in words)."""
_OPENING_SENTENCES = 6
"""Of a message that are looked at for what it is about: people come to it after a greeting and who they are."""


def is_wanted(wish: Wish) -> bool:
    """Whether the words of a wish say what is wanted, and not only what came of them."""
    return wish.kind in ("rule", "preference") or (wish.kind == "decision" and not wish.seen)


def symptom(turn: Turn, wanted: Sequence[str]) -> str:
    """The sentence that tells of a fault or asks to find one; what it quotes, and one of `wanted`, tells of none."""
    own = _own(turn) if not stance.takes_back(turn) else []
    own = [s for s in own if not any(s in quote for quote in wanted)]
    if turn.number:
        # "Then change the timeout first": what is to be done, after the fault was spoken of.
        own = [s for s in own if not cues.opens("order", cues.without_opener(s, turn.spoken), turn.spoken)]
    own = [s for s in own if any(cues.has(kind, s, turn.spoken) for kind in ("problem", "repair"))]
    telling = [s for s in own if _tells(s, turn.spoken) >= BARE]
    lasting = [s for s in telling if not cues.has("perishable", s, turn.spoken)]
    for said in (lasting, telling):
        for kind in ("problem", "repair"):
            if told := next((s for s in said if cues.has(kind, s, turn.spoken)), ""):
                return told
    asked = next(iter(own), "")
    # "The feed shows old posts. Find out why": of what opens a session, the fault is what was told before that.
    return (fullest(turn, wanted) if asked and not turn.number else "") or asked


def _tells(sentence: str, spoken: tuple[str, ...]) -> float:
    """How much a sentence says of a fault that will be true tomorrow (in words)."""
    return beyond_asking(lasting_part(sentence, spoken), spoken)


def beyond_asking(told: str, spoken: tuple[str, ...]) -> float:
    """How much `told` says besides that something is to be looked into (in words)."""
    for kind in ("repair", "polite"):
        told = cues.without(kind, told, spoken)
    return words.weight(words.content(told))


def opening(turn: Turn) -> str:
    """What a session begins with, when that asks for nothing to be made or left: a fault, by whatever words."""
    told = fullest(turn, ()) if not turn.number else ""
    asks = kinds.asks_for_work(told, turn.spoken) or kinds.is_question(told, turn.spoken)
    if asks or any(cues.has(kind, told, turn.spoken) for kind in ("prohibition", "personal", "oneoff")):
        return ""
    return told if tells_enough(lasting_part(told, turn.spoken), turn.spoken) else ""


def tells_enough(told: str, spoken: tuple[str, ...]) -> bool:
    return words.weight(words.content(told)) >= kinds.LEANING


def only_says_still(told: str, turn: Turn) -> bool:
    """Whether a complaint is on the fault that was told of before ("same step!!"), and tells nothing new of it."""
    return words.weight(words.content(told)) < kinds.LEANING and cues.has("broken", told, turn.spoken)


def complaint(told: str, spoken: tuple[str, ...]) -> str:
    """Of a symptom, the clauses that say what is wrong; all of it when none does by itself."""
    wrong = [c for c in kinds.CLAUSES.split(told) if cues.has("problem", c, spoken)]
    return " ".join(wrong).rstrip(" ,;，；、") or told


def _own(turn: Turn) -> list[str]:
    """What the user says, quotations cut down to their marks, and nothing that only announces."""
    said = map(mentions.without, turn.sentences)
    return [s for s in said if words.weight(words.content(s)) > 0 and not s.endswith((":", "："))]


def first(turn: Turn) -> str:
    if not turn.number and (told := fullest(turn, ())):
        return told
    said = [s for s in (*_own(turn), *turn.sentences) if not kinds.is_passing(s, turn.spoken)]
    announced = (s for s in turn.sentences if s.endswith((":", "：")))
    return said[0] if said else next(announced, "")


def only_asks_what(turn: Turn) -> bool:
    """Whether the user only asks something and not why: the answer explains no fault."""
    return all(kinds.is_question(s, turn.spoken) for s in _own(turn)) and not cues.has("why", turn.text, turn.spoken)


def fullest(turn: Turn, wanted: Sequence[str]) -> str:
    """Of the first sentences, the one that says most of what is the case."""
    told = [s for s in _own(turn)[:_OPENING_SENTENCES] if not any(s in quote for quote in wanted)]
    told = [s for s in told if not cues.has("bygone", s, turn.spoken)]
    if not turn.number:
        told = [s for s in told if not (unmeant.is_idle(s, turn.spoken) or _only_asks_for_work(s, turn.spoken))]
    return max(told, key=lambda s: beyond_asking(s, turn.spoken), default="")


def _only_asks_for_work(sentence: str, spoken: tuple[str, ...]) -> bool:
    """Whether a sentence only says what is to be done ("let's just delete it")."""
    clauses = (c for c in kinds.CLAUSES.split(sentence) if kinds.own_weight(c, spoken) >= _SAYS_SOMETHING)
    point = cues.without_opener(next(clauses, ""), spoken)
    return cues.opens("request", point, spoken) > 0 and not cues.has("problem", sentence, spoken)


def _without_its_day(clause: str, spoken: tuple[str, ...]) -> str:
    """A clause without the words for its day, when it tells enough without them and no reading; else nothing of it."""
    if not cues.has("perishable", clause, spoken):
        return clause
    rest = " ".join(cues.without("perishable", clause, spoken).split()).strip(" ,;，；、")
    tells = words.weight(words.content(rest)) >= _TELLS_WITHOUT and not _READING.search(clause)
    return rest if tells and rest in " ".join(clause.split()) else ""


def lasting_part(told: str, spoken: tuple[str, ...]) -> str:
    """A symptom without the clauses that are true only now; of one that is all of today, what is wrong."""
    clauses = re.split(r"(?<=[,;，；、])\s*", told)
    lasting = [c for clause in clauses if (c := _without_its_day(clause, spoken))]
    if not any(_says_something(c, spoken) for c in lasting):
        lasting = [c for c in clauses if cues.has("problem", c, spoken) and not _READING.search(c)][:1]
    return "".join(c if c.endswith(("，", "；", "、")) else c + " " for c in lasting).strip(" ,;，；、")


def _says_something(clause: str, spoken: tuple[str, ...]) -> bool:
    told = clause[cues.opens("greeting", clause, spoken) :]
    return words.weight(words.content(told)) >= _SAYS_SOMETHING
