"""Commands that are the project's way of doing things."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from stillroom.offline.session import checks, shell
from stillroom.offline.session.turns import Turn
from stillroom.offline.sizes import COMMAND_CHARS
from stillroom.offline.text.words import shorten
from stillroom.pattern import late

_VERIFIES = late(
    r"\b(?:tests?|pytest|jest|vitest|mocha|rspec|phpunit|ctest|check|lint|ruff|eslint|mypy|tsc|typecheck|clippy|vet|fmt|format|prettier|black|build|compile|verify|ci|e2e|bench|migrat\w*|generate|codegen|gen|deploy|release|sync|install|up|start|serve|seed|validate|plan|package|bundle|docs?)\b"
)


@dataclass(frozen=True, slots=True)
class Command:
    """A command that worked."""

    turn: int
    text: str
    base: str
    runs: int
    told: bool  #: the user named it
    verifies: bool  #: checks or builds the project
    workdir: str
    result: str  #: the line of its last output that says how it went


def find(turns: Sequence[Turn]) -> list[Command]:
    """Commands that passed, the most telling first: told by the user, repeated checks, checks, the rest."""
    passed: dict[str, list[tuple[int, str, str, str]]] = {}
    failed_last: set[str] = set()
    said = "\n".join(turn.text for turn in turns)
    chains = _chains(turns)
    for turn in turns:
        for run in turn.runs:
            if not run.command:
                continue
            verdict = checks.verdict(run)
            if run.command in chains:
                if verdict == "passed":
                    passed.setdefault(run.command, []).append(
                        (turn.number, run.command, run.workdir or "", _result(run))
                    )
                continue
            for part in shell.parts(run.command):
                if shell.only_looks(part.head) or shell.is_chore(part.head) or "<<" in part.head or "\n" in part.head:
                    continue
                name = shell.base(part.head)
                if not name or len(part.head) > COMMAND_CHARS:
                    continue
                if verdict == "passed":
                    failed_last.discard(part.head)
                    passed.setdefault(name, []).append((turn.number, part.head, run.workdir or "", _result(run)))
                elif verdict == "failed":
                    failed_last.add(part.head)
    found = []
    for name, runs in passed.items():
        runs = [r for r in runs if r[1] not in failed_last] or []
        if not runs:
            continue
        told = name in said
        counts: dict[str, int] = {}
        for _, text, _, _ in runs:
            counts[text] = counts.get(text, 0) + 1
        text = min(counts, key=lambda t: (t not in said, -counts[t], len(t)))
        verifies = _VERIFIES.search(name) is not None
        last = next(r for r in reversed(runs) if r[1] == text)
        found.append(Command(last[0], text, name, len(runs), told, verifies, last[2], last[3]))
    found.sort(key=lambda c: (not c.told, not (c.runs > 1 and c.verifies), not c.verifies, -c.runs, c.turn))
    return found


def _chains(turns: Sequence[Turn]) -> frozenset[str]:
    """Whole lines that were run more than once, and more often than any part of them alone: one way of doing things."""
    lines = Counter(run.command for turn in turns for run in turn.runs if run.command)
    return frozenset(
        line
        for line, times in lines.items()
        if times > 1
        and len(line) <= COMMAND_CHARS
        and len(parts := shell.parts(line)) > 1
        and all(part.joined_by in ("", "&&") for part in parts)
        and not any(shell.only_looks(part.head) or shell.is_chore(part.head) for part in parts)
        and not any(part.head in lines for part in parts)
    )


def _result(run: object) -> str:
    output = getattr(run, "output", "")
    for line in reversed(output[-2000:].splitlines()):
        if re.search(r"\d+ pass|passed|\bok\b|success|✓|0 errors|0 failed|no issues", line, re.IGNORECASE):
            return shorten(line.strip("= "), 100)
    return ""
