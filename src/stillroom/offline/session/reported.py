"""Faults that the user told of and no command showed, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stillroom.offline import cues
from stillroom.offline.session import explanations, kinds, measured, referents, runs, symptoms
from stillroom.offline.session.checkout import Line, lines_of
from stillroom.offline.session.failure import Failure
from stillroom.offline.session.findings import Found, Statement
from stillroom.offline.session.hearing import Heard
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wish import BARE
from stillroom.offline.text import words
from stillroom.rollouts.events import Ran

_ASKS = ("?", "？", "か。")
"""Ends a question that is typed as one."""
_TURNS_APART = 3
"""A fix that comes later than this after its explanation is not tied to it."""
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
        wanted = [w.quote for w in heard.wishes if w.turn == turn.number and symptoms.is_wanted(w)]
        told = symptoms.symptom(turn, wanted)
        opening = opening or symptoms.opening(turn)
        if turn.number in heard.undone:
            # What they had wanted done about it was taken back.
            symptom = symptoms.complaint(told, turn.spoken) or symptom or opening
            continue
        symptom = symptom if symptom and symptoms.only_says_still(told, turn) else told or symptom
        first = first or opening or (symptom if symptoms.tells_enough(symptom, turn.spoken) else "")
        here = [s for s in said.get(turn.number, ()) if s.text not in used]
        edits = [i for i, s in enumerate(turn.steps) if isinstance(s, Ran) and s.ok is not False and s.edits]
        if edits and (_only_puts_back(turn, turns, heard) or _ends_failing(turn, edits[-1])):
            continue
        if not edits:
            # The fix may come a message or two later, when the user has said go.
            explaining = _explaining(turn, here, symptom) if turn.number not in heard.contradicted else []
            symptom = symptom or (
                symptoms.fullest(turn, wanted) if explaining and not symptoms.only_asks_what(turn) else ""
            )
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
            symptom
            or opening
            or shown
            or (symptoms.first(turn) and (_is_seen(turn, causes) or _is_praised(turn, turns)))
        ):
            told = symptom or opening or symptoms.first(turn)
            worded = bool(symptom or not turn.number) or (told not in wanted and _is_on(told, causes))
            worded = (
                worded and symptoms.beyond_asking(symptoms.lasting_part(told, turn.spoken) or told, turn.spoken) >= BARE
            )
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
        reported=words.shorten(symptoms.lasting_part(symptom, turn.spoken) or symptom, 200),
        causes=tuple(causes),
        files=tuple(dict.fromkeys(path for path, _ in changed)),
        passed=passed[-1].part if passed else "",
        change=runs.added(changed[-1][1]) if changed else "",
    )
