"""What went wrong, and what then worked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from stillroom.offline.session import checks, explanations, reported, runs, settings, shell
from stillroom.offline.session.failure import Failure
from stillroom.offline.session.findings import Found
from stillroom.offline.session.hearing import Heard
from stillroom.offline.session.runs import Step
from stillroom.offline.session.turns import Turn
from stillroom.pattern import late

_LOOK_AHEAD_STEPS = 400
"""A fix that comes later than this many calls is not tied to the failure: keeps the search linear."""


_REMEDIES = late(
    r"(?<![a-z])(?:i|in|install|add|up|start|restart|reload|enable|login|sync|pull|update|upgrade|init|migrat\w+|generate|gen|create|set|use"
    r"|link|clean|purge|rebuild|build|reset|setup|bootstrap|refresh|renew|apply|mount|keyscan|keygen|trust|register|configure|config|seed|compile|kill|rm|prune)(?![a-z])"
)


_TURNS_APART = 2
"""A run that passes within this many turns is on the same thing, whatever the failure said."""
_FEW = 3
"""Commands between a failure and its end that may be what helped; of more, nobody can tell which."""


_EVERYWHERE = {"test", "tests", "spec", "specs", "unit", "integration", "packages", "main"}
"""Folders of tests: to share one is not to be the same test."""


def find(turns: Sequence[Turn], found: Found, heard: Heard) -> list[Failure]:
    """The failures of a session, each with its own cause and fix, in order."""
    steps = [s for turn in turns for s in runs.steps(turn)]
    failures: list[Failure] = []
    covered: set[tuple[int, int]] = set()
    for position, step in enumerate(steps):
        if not step.failed or step.place in covered:
            continue
        failure, used = _follow(step, steps[position + 1 : position + 1 + _LOOK_AHEAD_STEPS], turns)
        covered.update(used)
        failures.append(failure)
    failures = explanations.with_causes(failures, turns, found)
    failures += reported.find(turns, failures, found, heard)
    failures = [_current(f, heard) for f in failures if not _was_dropped(f, heard)]
    gone = _gone(turns)
    told = (_without(f, gone) for f in failures if not f.files or not gone.issuperset(f.files))
    return sorted((f for f in told if f.worth_keeping), key=lambda f: (f.turn, f.step))


def _current(failure: Failure, heard: Heard) -> Failure:
    """`failure` without the sentences of its cause that are on a value that no longer holds, unless all of them are."""
    causes = tuple(c for c in failure.causes if not settings.speaks_of(c.text, c.turn, heard.dead))
    mended = failure.turn if failure.reported else failure.passed_turn
    outdated = settings.speaks_of(failure.change, mended, heard.dead)
    gone = heard.rewritten.get(mended, ())
    outdated = outdated or any(line.replace("`", "'") in failure.change for line in gone)
    return replace(failure, causes=causes or failure.causes, change="" if outdated else failure.change)


def _was_dropped(failure: Failure, heard: Heard) -> bool:
    """Whether a failure belongs to work that was taken back, before it was mended or together with what mended it."""
    until = heard.undone.get(failure.turn)
    if until is None or not failure.resolved:
        return False
    return failure.passed_turn >= until or failure.passed_turn in heard.undone


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


def _follow(first: Step, later: list[Step], turns: Sequence[Turn]) -> tuple[Failure, set[tuple[int, int]]]:
    """From a failing run to the first later one that passes."""
    used: set[tuple[int, int]] = set()
    attempts = 1
    passed: Step | None = None
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
            if step.turn - last.turn <= _TURNS_APART or (
                checks.error_line(checks.output_of(last.run)) and (same or runs.edits(turns, last.place, step.place))
            ):
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
        changed = seen_green or bool(runs.edits(turns, last.place, end)) or last.turn < len(turns) - 1
        return replace(
            failure, ending="unseen" if changed and not seen_green else "" if seen_green else "failing"
        ), used
    edits = runs.edits(turns, first.place, passed.place)
    elsewhere = bool(passed.run.workdir) and passed.run.workdir != first.run.workdir
    return (
        replace(
            failure,
            passed=f"cd {passed.run.workdir} && {passed.part}" if elsewhere and not edits else passed.part,
            passed_turn=passed.turn,
            passed_step=passed.step,
            other_command=passed.base != first.base or (not edits and (passed.part != first.part or elsewhere)),
            files=tuple(dict.fromkeys(path for path, _ in edits)),
            remedy="" if edits else _remedy(later, last, passed, turns),
            change=runs.added(edits[-1][1]) if edits else "",
        ),
        used,
    )


def _remedy(later: list[Step], last: Step, passed: Step, turns: Sequence[Turn]) -> str:
    """The command between the last failure and the run that passed, if there are few: it made the difference."""
    before = later[: later.index(passed)]  # of a chain of commands, those that stand before it too
    between = [s for s in before if s.place > last.place and s.base != passed.base and not s.failed]
    if passed.part != last.part:
        between = [s for s in between if s.place < passed.place]  # what was told otherwise made the difference
    told = [
        s.part for s in between if _REMEDIES.search(s.part) or s.base in turns[s.turn].text or s.place == passed.place
    ]
    return told[-1] if told and len(between) <= _FEW else ""


def _covers(passed: Step, failed: Step) -> bool:
    """Whether a run that was told which tests to run was told those that had failed."""
    named = [w for w in shell.words(passed.part)[1:] if not w.startswith("-") and ("::" in w or "." in w or "/" in w)]
    if not named or any(name in failed.part for name in named):
        return True
    output = checks.output_of(failed.run)
    pieces = {piece for name in named for piece in re.split(r"[^\w]+", name)} - _EVERYWHERE
    stems = [piece for piece in pieces if len(piece) > 3]
    return any(stem in output for stem in stems) or not any(re.search(r"test|spec", name) for name in named)
