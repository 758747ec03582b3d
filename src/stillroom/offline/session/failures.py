"""What went wrong, why, and what then worked.

The cause is read from where it stands: the assistant says it right before the edit that made the check pass. Cue words
only break ties.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from stillroom.offline import cues
from stillroom.offline.session import checks, kinds, referents, settings, shell
from stillroom.offline.session.findings import Found, Statement
from stillroom.offline.session.turns import Turn
from stillroom.offline.session.wishes import Heard
from stillroom.offline.text import words
from stillroom.offline.text.pattern import late
from stillroom.rollouts.events import Ran

_LOOK_AHEAD_STEPS = 400
"""A fix that comes later than this many calls is not tied to the failure: keeps the search linear."""
_CAUSE_SENTENCES = 3
_TELLING = 2
"""What is said without a fault having been reported explains something from this score on."""
_REMEDIES = late(
    r"(?<![a-z])(?:i|in|install|add|up|start|restart|reload|enable|login|sync|pull|update|upgrade|init|migrat\w+|generate|gen|create|set|use"
    r"|link|clean|purge|rebuild|build|reset|setup|bootstrap|refresh|renew|apply|mount|seed|compile|kill|rm|prune)(?![a-z])"
)
_FEW = 3
"""Commands between a failure and its end that may be what helped; of more, nobody can tell which."""
_EVERYWHERE = {"test", "tests", "spec", "specs", "unit", "integration", "packages", "main"}
"""Folders of tests: to share one is not to be the same test."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A command that failed, or a fault that the user reported, and the story up to the run that passed."""

    turn: int
    step: int
    command: str = ""
    exit_code: int | None = None
    error: str = ""
    reported: str = ""  #: the user's words, when no command showed it
    attempts: int = 1
    #: The run that passed: the same command, or another one for the same purpose.
    passed: str = ""
    passed_turn: int = -1
    passed_step: int = -1
    other_command: bool = False
    files: tuple[str, ...] = ()
    remedy: str = ""  #: the command in between, when no file was changed
    change: str = ""  #: lines that the last edit added, when nobody said why
    causes: tuple[Statement, ...] = ()
    told: str = ""  #: what the user said of it
    #: The check was not seen to pass: nothing was changed after it failed for the last time, or something was.
    ending: Literal["failing", "unseen", ""] = ""

    @property
    def resolved(self) -> bool:
        return bool(self.passed)

    @property
    def worth_keeping(self) -> bool:
        """A run that failed once and then passed by itself teaches nothing."""
        if self.reported:
            return bool(self.causes)
        if self.resolved:
            known = bool(self.error or self.causes or self.other_command)
            return known and bool(self.files or self.causes or self.other_command or self.told or self.remedy)
        return bool(self.error) and (self.attempts > 1 or bool(self.causes or self.told))


@dataclass(frozen=True, slots=True)
class _Step:
    turn: int
    step: int
    run: Ran
    part: str
    base: str
    core: frozenset[str]
    failed: bool

    @property
    def place(self) -> tuple[int, int]:
        return self.turn, self.step


def find(turns: Sequence[Turn], found: Found, heard: Heard) -> list[Failure]:
    """The failures of a session, each with its own cause and fix, in order."""
    steps = [s for turn in turns for s in _steps(turn)]
    failures: list[Failure] = []
    covered: set[tuple[int, int]] = set()
    for position, step in enumerate(steps):
        if not step.failed or step.place in covered:
            continue
        failure, used = _follow(step, steps[position + 1 : position + 1 + _LOOK_AHEAD_STEPS], turns)
        covered.update(used)
        failures.append(failure)
    failures = _with_causes(failures, turns, found)
    failures += _reported(turns, failures, found, heard)
    failures = [_current(f, heard) for f in failures]
    gone = _gone(turns)
    told = (_without(f, gone) for f in failures if not f.files or not gone.issuperset(f.files))
    return sorted((f for f in told if f.worth_keeping), key=lambda f: (f.turn, f.step))


def _current(failure: Failure, heard: Heard) -> Failure:
    """`failure` without the sentences of its cause that are on a value that no longer holds, unless all of them are."""
    causes = tuple(c for c in failure.causes if not settings.speaks_of(c.text, c.turn, heard.dead))
    outdated = settings.speaks_of(failure.change, failure.passed_turn, heard.dead)
    return replace(failure, causes=causes or failure.causes, change="" if outdated else failure.change)


def _gone(turns: Sequence[Turn]) -> frozenset[str]:
    """Files that the session itself made and deleted again: what failed in them was part of an attempt."""
    made: set[str] = set()
    gone: set[str] = set()
    for edit in (e for turn in turns for run in turn.runs if run.ok is not False for e in run.edits):
        if edit.action == "add":
            made.add(edit.path)
        (gone.add if edit.action == "delete" and edit.path in made else gone.discard)(edit.path)
    return frozenset(gone)


def _without(failure: Failure, gone: frozenset[str]) -> Failure:
    return replace(failure, files=tuple(path for path in failure.files if path not in gone)) if gone else failure


def _steps(turn: Turn) -> list[_Step]:
    found = []
    for index, step in enumerate(turn.steps):
        if not isinstance(step, Ran) or not step.command:
            continue
        verdict = checks.verdict(step)
        heads = [
            p.head for p in shell.parts(step.command) if not shell.only_looks(p.head) and not shell.is_chore(p.head)
        ]
        if not heads:
            continue
        if verdict == "failed":
            heads = [_blamed(heads, step)]
        failed = verdict == "failed"
        found += [_Step(turn.number, index, step, h, shell.base(h), shell.core(h), failed) for h in heads]
    return found


def _blamed(heads: list[str], run: Ran) -> str:
    """Of the parts of a chain, the one whose program the error names; else the last one."""
    error = checks.error_line(checks.output_of(run)).casefold()
    for head in reversed(heads):
        program = shell.base(head).split()[0:1]
        if program and len(program[0]) > 2 and program[0].rsplit("/", 1)[-1].casefold() in error:
            return head
    return heads[-1]


def _follow(first: _Step, later: list[_Step], turns: Sequence[Turn]) -> tuple[Failure, set[tuple[int, int]]]:
    """From a failing run to the first later one that passes."""
    used: set[tuple[int, int]] = set()
    attempts = 1
    passed: _Step | None = None
    last = first
    seen_green = False
    for step in later:
        same = step.base == first.base
        alike = bool(step.core & first.core)
        if step.failed and same:
            attempts += 1
            used.add(step.place)
            last = step
        elif not step.failed and (same or (alike and _covers(step, first))):
            seen_green = True
            if same or step.turn - first.turn <= 2 or _edits(turns, last.place, step.place):
                passed = step
                break
    failure = Failure(
        turn=first.turn,
        step=first.step,
        command=first.part,
        exit_code=first.run.exit_code,
        error=checks.error_line(checks.output_of(first.run)),
        attempts=attempts,
    )
    if passed is None:
        end = (len(turns), 0)
        changed = seen_green or bool(_edits(turns, last.place, end)) or last.turn < len(turns) - 1
        return replace(
            failure, ending="unseen" if changed and not seen_green else "" if seen_green else "failing"
        ), used
    edits = _edits(turns, first.place, passed.place)
    return (
        replace(
            failure,
            passed=passed.part,
            passed_turn=passed.turn,
            passed_step=passed.step,
            other_command=passed.base != first.base or (passed.part != first.part and not edits),
            files=tuple(dict.fromkeys(path for path, _ in edits)),
            remedy="" if edits else _remedy(later, last, passed),
            change=_added(edits[-1][1]) if edits else "",
        ),
        used,
    )


def _remedy(later: list[_Step], last: _Step, passed: _Step) -> str:
    """The command between the last failure and the run that passed, if there are few: it made the difference."""
    between = [s for s in later if last.place < s.place < passed.place and s.base != passed.base and not s.failed]
    told = [s.part for s in between if _REMEDIES.search(s.part)]
    return told[-1] if told and len(between) <= _FEW else ""


def _covers(passed: _Step, failed: _Step) -> bool:
    """Whether a run that was told which tests to run was told those that had failed."""
    named = [w for w in shell.words(passed.part)[1:] if not w.startswith("-") and ("::" in w or "." in w or "/" in w)]
    if not named or any(name in failed.part for name in named):
        return True
    output = checks.output_of(failed.run)
    pieces = {piece for name in named for piece in re.split(r"[^\w]+", name)} - _EVERYWHERE
    stems = [piece for piece in pieces if len(piece) > 3]
    return any(stem in output for stem in stems) or not any(re.search(r"test|spec", name) for name in named)


def _edits(turns: Sequence[Turn], start: tuple[int, int], end: tuple[int, int]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for turn in turns[start[0] : end[0] + 1]:
        for index, step in enumerate(turn.steps):
            if start < (turn.number, index) < end and isinstance(step, Ran) and step.ok is not False:
                found += [(edit.path, edit.diff) for edit in step.edits]
    return found


def _added(diff: str) -> str:
    lines = [
        line[1:].strip().replace("`", "'") for line in diff.splitlines() if line.startswith("+") and line[1:].strip()
    ]
    return words.shorten("; ".join(lines[:2]), 110)


def _with_causes(failures: list[Failure], turns: Sequence[Turn], found: Found) -> list[Failure]:
    """Give each failure the sentences that explain it, each sentence to one failure only."""
    taken: set[str] = set()
    out: list[Failure] = []
    for number, failure in enumerate(failures):
        start = (failure.turn, failure.step)
        end = (
            (failure.passed_turn, failure.passed_step)
            if failure.resolved
            else (failure.turn, len(turns[failure.turn].steps))
        )
        near = words.content(" ".join([failure.error, failure.command, *failure.files]))
        named = words.content(" ".join([failure.error, *failure.files, *(c.text for c in failure.causes)]))
        rivals = [f for f in failures[number + 1 :] if (f.turn, f.step) < end]
        inside = [s for s in found.said if start < (s.turn, s.step) < end and s.text not in taken]
        causes = _explanation(inside, near, rivals)
        if not causes and failure.resolved:
            after = [s for s in found.said if end <= (s.turn, s.step) and s.turn == end[0] and s.text not in taken]
            causes = [s for s in after if s.causal and s.tone == "plain" and s.content & near][:1]
        taken.update(s.text for s in causes)
        out.append(
            replace(
                failure, causes=tuple(causes), told=_explained(failure, named - words.content(failure.command), turns)
            )
        )
    return out


def _explained(failure: Failure, named: frozenset[str], turns: Sequence[Turn]) -> str:
    """The user's own word on a failure that the turn ended with."""
    if failure.turn + 1 >= len(turns) or (failure.resolved and failure.passed_turn == failure.turn):
        return ""
    turn = turns[failure.turn + 1]
    for sentence in turn.sentences[:4]:
        if sentence.endswith(("?", "？")) or cues.opens("request", sentence, turn.spoken):
            continue
        if kinds.has_own_rule(sentence, turn.spoken) or kinds.is_passing(sentence, turn.spoken):
            # What they want from now on is no word on what failed.
            continue
        content = words.content(sentence)
        if words.weight(content) >= 3 and words.weight(content & named) >= 1:
            return words.shorten(sentence, 200)
    return ""


def _explanation(said: Sequence[Statement], near: frozenset[str], rivals: Sequence[Failure]) -> list[Statement]:
    """The sentences of the last message that says what is wrong, unless they are nearer to a later failure."""
    messages: dict[tuple[int, int], list[Statement]] = {}
    for statement in said:
        messages.setdefault((statement.turn, statement.step), []).append(statement)
    for place in sorted(messages, reverse=True):
        rival = next((r for r in reversed(rivals) if (r.turn, r.step) < place), None)
        told = _told(messages[place])
        if not told:
            continue
        if rival is not None:
            theirs = words.content(" ".join([rival.error, rival.command, *rival.files]))
            about = frozenset().union(*(s.content for s in told))
            if len(about & near) <= len(about & theirs):
                continue
        return told
    return []


def _told(message: Sequence[Statement]) -> list[Statement]:
    """Of one message, what explains: plain sentences, or a guess that names a cause when there is nothing plainer."""
    first = next((i for i, s in enumerate(message) if s.tone in ("plain", "unfinished")), None)
    if first is not None:
        # What it says it will do about it is part of the story: it was done, and the check passed.
        return [s for s in message[first:] if s.tone != "disproved"][:_CAUSE_SENTENCES]
    guesses = [s for s in message if (s.tone == "hypothesis" and _is_whole(s)) or (s.tone == "done" and s.causal)]
    return guesses[:_CAUSE_SENTENCES] or [s for s in message if s.tone == "intention" and _says_more(s)][:1]


def _is_whole(said: Statement) -> bool:
    return words.weight(said.content) >= 2.5


def _says_more(said: Statement) -> bool:
    """An intention that also says why ("X refuses both, so I'll convert the old one")."""
    return words.weight(said.content) >= 8


def _lasting_part(symptom: str, spoken: tuple[str, ...]) -> str:
    """A symptom without the clauses that are true only now."""
    clauses = re.split(r"(?<=[,;，；、])\s*", symptom)
    return "".join(
        c if c.endswith(("，", "；", "、")) else c + " " for c in clauses if not cues.has("perishable", c, spoken)
    ).strip(" ,;，；、")


def _reported(turns: Sequence[Turn], known: Sequence[Failure], found: Found, heard: Heard) -> list[Failure]:
    """Faults that the user told of and no command showed: explained right before an edit that stayed."""
    used = {cause.text for failure in known for cause in failure.causes}
    out: list[Failure] = []
    symptom = ""
    carried: list[Statement] = []  # said in a turn whose fix came with the next one
    for turn in turns:
        told = [s for s in turn.sentences if cues.has("problem", s, turn.spoken)]
        if not told and turn.sentences and cues.has("repair", turn.text[:600], turn.spoken):
            told = [turn.sentences[0]]
        if told:
            symptom = told[0]
        if turn.number in heard.undone:
            continue
        edits = [
            i for i, step in enumerate(turn.steps) if isinstance(step, Ran) and step.ok is not False and step.edits
        ]
        if not edits:
            # The fix may come a message or two later, when the user has said go.
            told_off = bool(referents.offers(turn) or referents.question(turn) or referents.lays_out(turn))
            here = [s for s in found.said if s.turn == turn.number and s.text not in used]
            if told_off:
                here = [s for s in here if s.step < here[-1].step]
            explains = symptom or (not told_off and any(s.causal or s.score >= _TELLING for s in here))
            if turn.runs and turn.number not in heard.contradicted and here and explains:
                carried = here
                symptom = symptom or max(turn.sentences[:3], key=lambda s: words.weight(words.content(s)), default="")
            continue
        before = [s for s in found.said if s.turn == turn.number and s.step < edits[-1]]
        before = [s for s in before if s.text not in used and s.tone != "hypothesis"]
        causes = _explanation(before or [s for s in carried if turn.number - s.turn <= 3], frozenset(), ())
        carried = [
            s for s in found.said if s.turn == turn.number and s.step > edits[-1] and s.causal and s.tone == "plain"
        ]
        looked = (
            any(isinstance(step, Ran) and not step.edits for step in turn.steps[: causes[0].step]) if causes else False
        )
        seen = any(s.discovery or s.confirmed or s.score >= 1 or (looked and _says_more(s)) for s in causes)
        if not causes or not (symptom or seen):
            continue
        passed = [s for s in _steps(turn) if not s.failed and s.step > edits[-1]]
        paths = [edit.path for i in edits for edit in turn.steps[i].edits]  # type: ignore[union-attr]
        out.append(
            Failure(
                turn=turn.number,
                step=causes[0].step,
                reported=words.shorten(
                    _lasting_part(symptom, turn.spoken) or symptom or (turn.sentences[0] if turn.sentences else ""), 200
                ),
                causes=tuple(causes),
                files=tuple(dict.fromkeys(paths)),
                passed=passed[-1].part if passed else "",
            )
        )
        symptom = ""
    return out
