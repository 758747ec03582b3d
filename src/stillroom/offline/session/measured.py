"""Whether a command told something else after an edit than before it: then the edit was what it was about."""

from __future__ import annotations

from collections.abc import Sequence

from stillroom.offline.session import checks, kinds, runs
from stillroom.offline.session.runs import Step
from stillroom.offline.session.turns import Turn

_TURNS_BACK = 3
"""What was measured longer ago than this was measured for something else."""


CHECKS = frozenset({"test", "tests", "spec", "build", "compile", "lint", "check", "typecheck", "format", "install"})


def across(turns: Sequence[Turn], turn: Turn, first: int, last: int) -> bool:
    """Whether a command that ran before the edits of `turn`, its steps `first` to `last`, read otherwise after them."""
    earlier = [s for t in turns[max(0, turn.number - _TURNS_BACK) : turn.number] for s in runs.steps(t)]
    own = runs.steps(turn)
    before = {s.base: s for s in (*earlier, *(s for s in own if s.step < first)) if _reads(s)}
    return any(s.step > last and _reads(s) and s.base in before and _differ(before[s.base], s) for s in own)


def _reads(step: Step) -> bool:
    """Whether a run shows a reading: a test or a build tells only whether it passed, and how long it took."""
    return not (step.failed or step.core & CHECKS or checks.says_passed(step.run)) and bool(step.run.output.strip())


def _differ(one: Step, other: Step) -> bool:
    return kinds.numbers(checks.output_of(one.run)) != kinds.numbers(checks.output_of(other.run))
