"""Faults that the user told of and no command showed, and what came of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from stillroom.offline import cues
from stillroom.offline.session import explanations, kinds, measured, referents, runs, stance, unmeant
from stillroom.offline.session.checkout import Line, lines_of
from stillroom.offline.session.failure import Failure
from stillroom.offline.session.findings import Found, Statement
from stillroom.offline.session.hearing import Heard
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import BARE, Wish
from stillroom.offline.text import mentions, words
from stillroom.pattern import late
from stillroom.rollouts.events import Ran

_ASKS = ("?", "？", "か。")
"""Ends a question that is typed as one."""
_TURNS_APART = 3
"""A fix that comes later than this after its explanation is not tied to it."""
_READING = late(r"(?<![\w./-])\d+(?:[.,]\d+)?")
"""A number by itself: what was measured on the day."""
_SAYS_SOMETHING = 1.0
"""A clause of a symptom tells something from this on (in words)."""
_TELLS_WITHOUT = 3.0
"""Of a clause the words for its day are left out when the rest says this much (in words)."""
_OPENING_SENTENCES = 6
"""Of a message that are looked at for what it is about: people come to it after a greeting and who they are."""
_TELLING = 2
"""What is said without a fault having been reported explains something from this score on."""


def find(turns: Sequence[Turn], known: Sequence[Failure], found: Found, heard: Heard) -> list[Failure]:
    """Faults that the user told of and no command showed: explained right before an edit that stayed."""
    used = {cause.text for failure in known for cause in failure.causes}
    said: dict[int, list[Statement]] = {}
    for statement in found.said:
        said.setdefault(statement.turn, []).append(statement)
    out: list[Failure] = []
    symptom = opening = first = ""
    carried: list[Statement] = []  # said in a turn whose fix came with a later one
    for turn in turns:
        wanted = [w.quote for w in heard.wishes if w.turn == turn.number and _is_wanted(w)]
        told = _symptom(turn, wanted)
        opening = opening or _opening(turn)
        if turn.number in heard.undone:
            # What they had wanted done about it was taken back.
            symptom = _complaint(told, turn.spoken) or symptom or opening
            continue
        symptom = symptom if symptom and _only_says_still(told, turn) else told or symptom
        first = first or opening or (symptom if _tells_enough(symptom, turn.spoken) else "")
        here = [s for s in said.get(turn.number, ()) if s.text not in used]
        edits = [i for i, s in enumerate(turn.steps) if isinstance(s, Ran) and s.ok is not False and s.edits]
        if edits and (_only_puts_back(turn, turns, heard) or _ends_failing(turn, edits[-1])):
            continue
        if not edits:
            # The fix may come a message or two later, when the user has said go.
            explaining = _explaining(turn, here, symptom) if turn.number not in heard.contradicted else []
            symptom = symptom or (_fullest(turn, wanted) if explaining and not _only_asks_what(turn) else "")
            helped = _helped(turn, explaining, turns) if explaining and symptom else ""
            if helped:
                causes = explanations.explanation(explaining, frozenset(), ())
                out.append(replace(_failure(turns, turn, symptom, causes, -1), passed="", remedy=helped))
                symptom, carried = "", []
            elif explaining and symptom:
                carried = explaining
            continue
        believed = [s for s in here if s.step < edits[-1] and s.tone != "hypothesis"]
        carried = [s for s in carried if turn.number - s.turn <= _TURNS_APART and s.tone != "hypothesis"]
        causes = explanations.explanation(believed or carried, frozenset(), ())
        # What is found only after an edit explains the one that comes next.
        carried = [s for s in here if s.step > edits[-1] and s.causal and s.tone == "plain"]
        if not causes and any(turn.number in (f.turn, f.passed_turn) and f.causes for f in known):
            # What was complained of is what the command showed.
            symptom = ""
        shown = bool(turn.sentences) and all(s.endswith((":", "：")) for s in turn.sentences)
        if causes and (
            symptom or opening or shown or (_first(turn) and (_is_seen(turn, causes) or _is_praised(turn, turns)))
        ):
            told = symptom or opening or _first(turn)
            worded = bool(symptom or not turn.number) or (told not in wanted and _is_on(told, causes))
            worded = worded and _beyond_asking(_lasting_part(told, turn.spoken) or told, turn.spoken) >= BARE
            asked = told.endswith(_ASKS) and not any(cues.has(kind, told, turn.spoken) for kind in ("why", "problem"))
            failure = replace(_failure(turns, turn, told, causes, edits[-1]), worded=worded, asked=asked)
            if not _is_elsewhere(turn, causes):
                out.append(failure)
            elif symptom or any(s.causal for s in causes):
                out.append(replace(failure, files=(), change="", passed=""))
            symptom = ""
        elif first and turn.number not in heard.contradicted and measured.across(turns, turn, edits[0], edits[-1]):
            after = _on_the_edits(turn, [s for s in here if s.step > edits[-1]])
            out.append(replace(_failure(turns, turn, first, after, edits[-1]), measured=True))
            symptom = ""
        opening = first = ""
    return out


def _is_wanted(wish: Wish) -> bool:
    """Whether the words of a wish say what is wanted, and not only what came of them."""
    return wish.kind in ("rule", "preference") or (wish.kind == "decision" and not wish.seen)


def _symptom(turn: Turn, wanted: Sequence[str]) -> str:
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
    return (_fullest(turn, wanted) if asked and not turn.number else "") or asked


def _tells(sentence: str, spoken: tuple[str, ...]) -> float:
    """How much a sentence says of a fault that will be true tomorrow (in words)."""
    return _beyond_asking(_lasting_part(sentence, spoken), spoken)


def _beyond_asking(told: str, spoken: tuple[str, ...]) -> float:
    """How much `told` says besides that something is to be looked into (in words)."""
    for kind in ("repair", "polite"):
        told = cues.without(kind, told, spoken)
    return words.weight(words.content(told))


def _opening(turn: Turn) -> str:
    """What a session begins with, when that asks for nothing to be made or left: a fault, by whatever words."""
    told = _fullest(turn, ()) if not turn.number else ""
    asks = kinds.asks_for_work(told, turn.spoken) or kinds.is_question(told, turn.spoken)
    if asks or any(cues.has(kind, told, turn.spoken) for kind in ("prohibition", "personal", "oneoff")):
        return ""
    return told if _tells_enough(_lasting_part(told, turn.spoken), turn.spoken) else ""


def _tells_enough(told: str, spoken: tuple[str, ...]) -> bool:
    return words.weight(words.content(told)) >= kinds.LEANING


def _is_elsewhere(turn: Turn, causes: Sequence[Statement]) -> bool:
    """Whether what was explained earlier than in the turn before has nothing to do with what was edited now."""
    if not causes or turn.number - causes[-1].turn <= 1:
        return False
    touched = _touched(turn)
    return not any(words.pieces(s.text) & touched for s in causes)


def _touched(turn: Turn) -> frozenset[str]:
    """The words of what the edits of `turn` changed, and where."""
    edits = [e for run in turn.runs if run.ok is not False for e in run.edits]
    return frozenset().union(*(words.pieces(f"{e.path} {e.diff}") for e in edits))


def _on_the_edits(turn: Turn, said: Sequence[Statement]) -> list[Statement]:
    """Of what is said after an edit, the first that has a word of what it changed."""
    return [s for s in said if s.tone == "plain" and words.pieces(s.text) & _touched(turn)][:1]


def _only_says_still(told: str, turn: Turn) -> bool:
    """Whether a complaint is on the fault that was told of before ("same step!!"), and tells nothing new of it."""
    return words.weight(words.content(told)) < kinds.LEANING and cues.has("broken", told, turn.spoken)


def _complaint(symptom: str, spoken: tuple[str, ...]) -> str:
    """Of a symptom, the clauses that say what is wrong; all of it when none does by itself."""
    wrong = [c for c in kinds.CLAUSES.split(symptom) if cues.has("problem", c, spoken)]
    return " ".join(wrong).rstrip(" ,;，；、") or symptom


def _explaining(turn: Turn, here: list[Statement], symptom: str) -> list[Statement]:
    """What the assistant found before it asked whether to go on."""
    asks = bool(referents.offers(turn) or referents.question(turn) or referents.lays_out(turn))
    if asks:
        asked = next((i for i, s in enumerate(here) if s.step == here[-1].step and s.tone == "proposal"), len(here))
        plain = [s for s in here[:asked] if s.tone == "plain" and (s.causal or s.step < here[-1].step)]
        here = plain if any(s.causal for s in plain) else [s for s in here if s.step < here[-1].step]
    explains = symptom or any(s.causal or (not asks and s.score >= _TELLING) for s in here)
    return here if turn.runs and explains else []


def _helped(turn: Turn, explaining: Sequence[Statement], turns: Sequence[Turn]) -> str:
    """The command after an explanation that mended the fault without an edit: the user says next that it is well."""
    after = turns[turn.number + 1] if turn.number + 1 < len(turns) else None
    if after is None or not after.sentences or not cues.has("works", after.sentences[0], after.spoken):
        return ""
    if cues.has("broken", after.text, after.spoken):
        return ""
    ran = [s for s in runs.steps(turn, after=explaining[-1].step) if not (s.failed or s.core & measured.CHECKS)]
    return ran[0].part if ran else ""


def _is_praised(turn: Turn, turns: Sequence[Turn]) -> bool:
    """Whether the user, who had asked for nothing to be made, says next that it is well now."""
    after = turns[turn.number + 1] if turn.number + 1 < len(turns) else None
    if after is None or not after.sentences or any(kinds.asks_for_work(s, turn.spoken) for s in turn.sentences):
        return False
    said = any(cues.has("works", s, after.spoken) for s in after.messages[0][:2])
    return said and not cues.has("broken", after.text, after.spoken)


def _is_on(told: str, causes: Sequence[Statement]) -> bool:
    """Whether what the user said has a word of what explains it."""
    return any(words.content(told) & cause.content for cause in causes)


def _only_puts_back(turn: Turn, turns: Sequence[Turn], heard: Heard) -> bool:
    """Whether the edits of `turn` only put files back as they had been before an attempt, undone in it."""
    attempts = [_lines(turns[number]) for number, by in heard.undone.items() if by == turn.number]
    put_in, took_out = _lines(turn)
    return bool(put_in) and any(put_in <= removed and took_out <= added for added, removed in attempts)


def _ends_failing(turn: Turn, last: int) -> bool:
    """Whether the last check after the last edit of `turn` failed: what was believed then had not mended it."""
    checked = runs.steps(turn, after=last)
    return bool(checked) and checked[-1].failed


def _lines(turn: Turn) -> tuple[set[Line], set[Line]]:
    """The lines that the edits of `turn` put in, and those that they took out."""
    pairs = [lines_of(edit) for run in turn.runs if run.ok is not False for edit in run.edits]
    return set().union(*(added for added, _ in pairs)), set().union(*(removed for _, removed in pairs))


def _is_seen(turn: Turn, causes: Sequence[Statement]) -> bool:
    """Whether something bears out what is said, when nobody had complained."""
    looked = any(isinstance(step, Ran) and not step.edits for step in turn.steps[: causes[0].step])
    return any(
        (s.discovery or s.confirmed or s.score >= 1 or (looked and explanations.says_more(s))) and not s.reading
        for s in causes
    )


def _failure(turns: Sequence[Turn], turn: Turn, symptom: str, causes: Sequence[Statement], last: int) -> Failure:
    passed = [s for s in runs.steps(turn, after=last) if not s.failed]
    changed = runs.edits(turns, (turn.number, -1), (turn.number, len(turn.steps)))
    return Failure(
        turn=turn.number,
        step=causes[0].step if causes else last,
        reported=words.shorten(_lasting_part(symptom, turn.spoken) or symptom, 200),
        causes=tuple(causes),
        files=tuple(dict.fromkeys(path for path, _ in changed)),
        passed=passed[-1].part if passed else "",
        change=runs.added(changed[-1][1]) if changed else "",
    )


def _own(turn: Turn) -> list[str]:
    """What the user says, quotations cut down to their marks, and nothing that only announces."""
    said = map(mentions.without, turn.sentences)
    return [s for s in said if words.weight(words.content(s)) > 0 and not s.endswith((":", "："))]


def _first(turn: Turn) -> str:
    if not turn.number and (told := _fullest(turn, ())):
        return told
    said = [s for s in (*_own(turn), *turn.sentences) if not kinds.is_passing(s, turn.spoken)]
    announced = (s for s in turn.sentences if s.endswith((":", "：")))
    return said[0] if said else next(announced, "")


def _only_asks_what(turn: Turn) -> bool:
    """Whether the user only asks something and not why: the answer explains no fault."""
    return all(kinds.is_question(s, turn.spoken) for s in _own(turn)) and not cues.has("why", turn.text, turn.spoken)


def _fullest(turn: Turn, wanted: Sequence[str]) -> str:
    """Of the first sentences, the one that says most of what is the case."""
    told = [s for s in _own(turn)[:_OPENING_SENTENCES] if not any(s in quote for quote in wanted)]
    told = [s for s in told if not cues.has("bygone", s, turn.spoken)]
    if not turn.number:
        told = [s for s in told if not (unmeant.is_idle(s, turn.spoken) or _only_asks_for_work(s, turn.spoken))]
    return max(told, key=lambda s: _beyond_asking(s, turn.spoken), default="")


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


def _lasting_part(symptom: str, spoken: tuple[str, ...]) -> str:
    """A symptom without the clauses that are true only now; of one that is all of today, what is wrong."""
    clauses = re.split(r"(?<=[,;，；、])\s*", symptom)
    lasting = [c for clause in clauses if (c := _without_its_day(clause, spoken))]
    if not any(_says_something(c, spoken) for c in lasting):
        lasting = [c for c in clauses if cues.has("problem", c, spoken) and not _READING.search(c)][:1]
    return "".join(c if c.endswith(("，", "；", "、")) else c + " " for c in lasting).strip(" ,;，；、")


def _says_something(clause: str, spoken: tuple[str, ...]) -> bool:
    told = clause[cues.opens("greeting", clause, spoken) :]
    return words.weight(words.content(told)) >= _SAYS_SOMETHING
