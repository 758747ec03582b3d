"""The commands of a session that do something, each with whether it failed, and the edits between two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stillroom.offline.session import checks, shell
from stillroom.offline.session.checkout import Checkout, lines_of
from stillroom.offline.session.turns import Turn
from stillroom.offline.text import words
from stillroom.offline.text.secrets import gives_secret
from stillroom.rollouts.events import Ran


@dataclass(frozen=True, slots=True)
class Step:
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


def steps(turn: Turn, *, after: int = -1) -> list[Step]:
    """The commands of `turn` behind its step `after` that do something."""
    found = []
    for index, step in enumerate(turn.steps):
        if index <= after or not isinstance(step, Ran) or not step.command:
            continue
        verdict = checks.verdict(step)
        if verdict == "passed" and checks.ran_nothing(step):
            continue
        heads = [
            p.head for p in shell.parts(step.command) if not shell.only_looks(p.head) and not shell.is_chore(p.head)
        ]
        if not heads:
            continue
        if verdict == "failed":
            heads = [_blamed(heads, step)]
        failed = verdict == "failed"
        found += [Step(turn.number, index, step, h, shell.base(h), shell.core(h), failed) for h in heads]
    return found


def _blamed(heads: list[str], run: Ran) -> str:
    """Of the parts of a chain, the one whose program the error names; else the last one."""
    error = checks.error_line(checks.output_of(run)).casefold()
    for head in reversed(heads):
        program = shell.base(head).split()[0:1]
        if program and len(program[0]) > 2 and program[0].rsplit("/", 1)[-1].casefold() in error:
            return head
    return heads[-1]


def edits(turns: Sequence[Turn], start: tuple[int, int], end: tuple[int, int]) -> list[tuple[str, str]]:
    """Path and diff of the edits between two places, without those to files that were put back as they had been."""
    found: list[tuple[str, str]] = []
    tree = Checkout()
    new: dict[str, set[str]] = {}
    old: dict[str, set[str]] = {}
    for turn in turns[start[0] : end[0] + 1]:
        for index, step in enumerate(turn.steps):
            if not (start < (turn.number, index) < end) or not isinstance(step, Ran) or step.ok is False:
                continue
            for edit in step.edits:
                found.append((edit.path, edit.diff))
                added, removed = lines_of(edit)
                tree.edited(added, removed, turn=turn.number)
                came, went = new.setdefault(edit.path, set()), old.setdefault(edit.path, set())
                for _, text in removed:
                    (came.discard if text in came else went.add)(text)
                for _, text in added:
                    (went.discard if text in went else came.add)(text)
            for path, text in tree.ran(step):
                new[path].discard(text)
                if not new[path]:
                    old[path].clear()
    return [(path, diff) for path, diff in found if new[path] or old[path] or not diff.strip()]


def added(diff: str) -> str:
    """The first lines that an edit added."""
    texts = (line[1:].strip().replace("`", "'") for line in diff.splitlines() if line.startswith("+"))
    lines = [text for text in texts if text and not gives_secret(text)]
    return words.shorten("; ".join(lines[:2]), 110)
