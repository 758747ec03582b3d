"""What the assistant found out, what it believed and had to take back, and what it left open."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from stillroom.offline import cues
from stillroom.offline.session import checks, options, settings
from stillroom.offline.session.hearing import Heard
from stillroom.offline.session.turns import Turn
from stillroom.offline.text import sentences, words
from stillroom.pattern import late
from stillroom.rollouts.events import Ran

Tone = Literal["plain", "done", "hypothesis", "intention", "proposal", "disproved", "unfinished"]

#: Of scripts without spaces every character.
_PART = late(r"[A-Za-z0-9_]+|[^\x00-\x7f]")
_MIN_WEIGHT, _MAX_CHARS = 2.5, 420
_CONFIRMED = 2
"""Names that tools have shown count up to this many."""
_SETBACK_SCORE = 2.0
"""A sentence after an edit says why it didn't do from this on."""
_FACT_SCORE = 4.0
"""A sentence is kept as a fact from this on: two names that a tool confirmed and words of finding."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of the assistant, with how far it can be trusted."""

    turn: int
    step: int  #: index within the turn
    text: str
    tone: Tone
    score: float
    causal: bool
    guess: bool  #: speaks of a theory
    trial: bool  #: announces an attempt
    reading: bool  #: tells what was counted or measured, and no cause
    discovery: bool  #: of a message that says that something was found
    closing: bool  #: of the last message of the turn
    confirmed: tuple[str, ...]  #: names in it that a tool's output, a command or an edit also holds
    content: frozenset[str]


@dataclass(frozen=True, slots=True)
class Found:
    """Everything worth keeping of the assistant's side."""

    #: All sentences in order, what was refuted left out.
    said: tuple[Statement, ...]
    facts: tuple[Statement, ...]
    disproved: tuple[Statement, ...]
    open: tuple[Statement, ...]
    done: tuple[Statement, ...]
    #: Why the work of a turn that was taken back didn't do, as the assistant saw it.
    setbacks: dict[int, str]


def find(turns: list[Turn], heard: Heard) -> Found:
    """Sort the assistant's sentences. What the user turned down, undid or contradicted is not a fact."""
    said = _without_refrains([statement for turn in turns for statement in _statements(turn)])
    setbacks = {number: _setback(turns[number], turns[later], said) for number, later in heard.undone.items()}
    # What is said with nothing looked at rules nothing out.
    disproved = [s for s in said if s.tone == "disproved" and turns[s.turn].runs and _takes_up(s, said)]
    said = [s for s in said if not _refuted(s, heard, disproved)]
    answers = {t.number for t in turns if not t.edited and any(s.endswith(("?", "？")) for s in t.sentences)}
    facts = [
        s
        for s in said
        if s.tone == "plain" and s.score >= _least(s, answers) and _is_seen(s)
        if not (_outdated(s, heard) or settings.speaks_of(s.text, s.turn, heard.dead))
    ]
    done = [s for s in said if s.tone == "done"]
    last = turns[-1].number if turns else 0
    return Found(
        said=tuple(said),
        facts=tuple(_distinct(sorted(facts, key=lambda f: (-f.score, f.turn, f.step)))),
        disproved=tuple(_distinct([d for d in disproved if _says_of_what(d) and not _turned_down(d, heard)])),
        open=tuple(_distinct([s for s in said if s.tone == "unfinished" and s.turn == last])),
        done=tuple(_distinct(done)),
        setbacks=setbacks,
    )


def _setback(undone: Turn, later: Turn, said: list[Statement]) -> str:
    """What was found after the last edit of a turn that was taken back, or in the turn that took it back."""
    last = max((i for i, s in enumerate(undone.steps) if isinstance(s, Ran) and s.edits), default=0)
    plain = [s for s in said if s.tone == "plain" and words.weight(s.content) >= _MIN_WEIGHT]
    own = [s for s in plain if s.turn == undone.number and s.step > last and s.score >= _SETBACK_SCORE]
    own = [s for s in own if s.score > min(_CONFIRMED, len(s.confirmed))]  # names alone tell what was done, not why not
    afterwards = [s for s in plain if s.turn == later.number and not cues.has("takeback", s.text, later.spoken)]
    return " ".join(s.text for s in (own or afterwards)[:2])


def _least(said: Statement, answers: set[int]) -> float:
    """The score from which a sentence is a fact; less in an answer to what the user wanted to know."""
    return _FACT_SCORE - 1 if said.closing and said.turn in answers else _FACT_SCORE


def _is_seen(said: Statement) -> bool:
    """Whether a tool has shown a name of it; numbers alone are met by chance."""
    return any(not name.isdigit() for name in said.confirmed)


def _without_refrains(said: list[Statement]) -> list[Statement]:
    """Without what was said again and again with other numbers: an account of steps, not a finding."""
    forms = [re.sub(r"\d+", "0", statement.text) for statement in said]
    counts = Counter(forms)
    return [statement for statement, form in zip(said, forms, strict=True) if counts[form] < 3]


def _takes_up(disproof: Statement, said: list[Statement]) -> bool:
    """Whether a disproof says of what: something that was believed before, or named as a theory."""
    if disproof.guess:
        return True
    return any(
        (s.turn, s.step) < (disproof.turn, disproof.step)
        and s.tone != "disproved"
        and (words.weight(s.content & disproof.content) >= 1 or (s.guess and s.turn == disproof.turn))
        for s in said
    )


def _says_of_what(disproof: Statement) -> bool:
    """Whether a disproof can be understood alone ("no change" can't)."""
    return words.weight(disproof.content) >= 2 or bool(words.identifiers(disproof.text))


class _Evidence:
    """What tools have shown so far in a turn, by words: a turn may have thousands of outputs."""

    def __init__(self) -> None:
        self._words: set[str] = set()

    def add(self, run: Ran) -> None:
        self._see(run.command or run.arguments[:4000])
        self._see(checks.output_of(run))
        for edit in run.edits:
            self._see(edit.path)
            self._see(edit.diff[:8000])

    def holds(self, name: str) -> bool:
        parts = _PART.findall(name)
        return bool(parts) and self._words.issuperset(parts)

    def __bool__(self) -> bool:
        return bool(self._words)

    def _see(self, text: str) -> None:
        self._words.update(_PART.findall(text))


def _statements(turn: Turn) -> list[Statement]:
    evidence = _Evidence()
    found: list[Statement] = []
    # What is said with nothing run after it closes the turn.
    last = max((i for i, s in enumerate(turn.steps) if isinstance(s, Ran)), default=-1)
    for index, step in enumerate(turn.steps):
        if isinstance(step, Ran):
            evidence.add(step)
        elif step.who == "assistant":
            spoken = cues.spoken_in(step.text, turn.spoken[0])
            found_out = cues.has("strongcause", step.text[:2000], spoken)
            for raw in sentences.split(sentences.without_pastes(step.text)):
                text = options.plain(raw)
                content = words.content(text)
                if len(text) > _MAX_CHARS or not content or text.endswith(("?", "？")):
                    continue
                statement = _statement(
                    turn, index, text, content, spoken, evidence, closing=index > last, discovery=found_out
                )
                if words.weight(content) >= _MIN_WEIGHT or statement.tone in ("disproved", "hypothesis"):
                    found.append(statement)
    return found


def _statement(
    turn: Turn,
    step: int,
    text: str,
    content: frozenset[str],
    spoken: tuple[str, ...],
    evidence: _Evidence,
    *,
    closing: bool,
    discovery: bool,
) -> Statement:
    confirmed = tuple(name for name in words.identifiers(text)[:12] if evidence.holds(name)) if evidence else ()
    strong = cues.has("strongcause", text, spoken)
    tone = _tone(text, spoken, closing=closing, causal=strong)
    score = 3.0 * strong + cues.has("cause", text, spoken) + cues.has("finding", text, spoken)
    score += min(_CONFIRMED, len(confirmed))
    if not evidence:
        score -= 3
    elif not confirmed and not strong:
        score -= 2
    if cues.has("perishable", text, spoken) or cues.has("oneoff", text, spoken):
        score -= 4
    if cues.opens("pronoun", text, spoken):
        score -= 1  # "They go into the spool": says not what does
    return Statement(
        turn=turn.number,
        step=step,
        text=text,
        tone=tone,
        score=score,
        causal=strong,
        guess=cues.has("hypothesis", text, spoken),
        trial=cues.has("trial", text, spoken) and not strong,
        reading=cues.has("reading", text, spoken) and not strong,
        discovery=discovery,
        closing=closing,
        confirmed=confirmed,
        content=content,
    )


def _tone(text: str, spoken: tuple[str, ...], *, closing: bool, causal: bool) -> Tone:
    if cues.has("disproved", text, spoken) and not (causal and _goes_on_to_explain(text, spoken)):
        return "disproved"
    if cues.has("intention", text, spoken):
        return "intention"
    if cues.has("proposal", text, spoken):
        return "proposal"
    if cues.has("hypothesis", text, spoken):
        return "hypothesis"
    if closing and cues.has("unfinished", text, spoken):
        return "unfinished"
    if cues.opens("done", text, spoken) or (
        closing and not causal and (cues.has("done", text, spoken) or cues.has("works", text, spoken))
    ):
        return "done"
    return "plain"


def _goes_on_to_explain(text: str, spoken: tuple[str, ...]) -> bool:
    """Whether what is ruled out stands before a mark, and the cause after it ("no change: it is held, because …")."""
    head, mark, tail = re.split(r"([:：;；—–])", text, maxsplit=1) if re.search(r"[:：;；—–]", text) else (text, "", "")
    return bool(mark) and cues.has("disproved", head, spoken) and cues.has("strongcause", tail, spoken)


def _refuted(said: Statement, heard: Heard, disproved: list[Statement]) -> bool:
    if said.turn in heard.undone or _turned_down(said, heard):
        return True
    if said.turn in heard.contradicted and said.tone in ("plain", "hypothesis"):
        return True
    return said.tone != "disproved" and any(
        (d.turn, d.step) > (said.turn, said.step)
        and (
            (said.guess and words.weight(d.content & said.content) >= 1)
            or (words.overlap(d.content, said.content) >= 0.5 and words.weight(d.content & said.content) >= 1.5)
        )
        for d in disproved
    )


def _turned_down(said: Statement, heard: Heard) -> bool:
    return any(
        abs(turn - said.turn) <= 1
        and words.weight(offer & said.content) >= 2.5
        and words.overlap(offer, said.content) >= 0.6
        for turn, offer in heard.turned_down
    )


def _outdated(said: Statement, heard: Heard) -> bool:
    for turn, values in heard.outdated:
        telling = {v for v in values if any(c.isdigit() for c in v) or len(v) > 3}
        if said.turn < turn and telling & said.content and len(values & said.content) * 2 >= len(values):
            return True
    return False


def _distinct(statements: list[Statement]) -> list[Statement]:
    kept: list[Statement] = []
    for statement in statements:
        if not any(words.jaccard(statement.content, k.content) >= 0.6 for k in kept[:60]):
            kept.append(statement)
    return kept
