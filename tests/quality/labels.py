"""What a scenario says about the memory that should come of it, and how a line is held against it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stillroom.store.records import Stage1Draft

FACT_KINDS = ("preference", "failure", "command", "decision", "fact", "file", "outcome")
#: A cause, its fix and its check may stand in neighbouring lines, and a wish told in two sentences in two.
LINES_OF = {"failure": 3, "outcome": 3, "preference": 2}
_COUNTED = re.compile(r"^(preference signals|reusable knowledge|failures and how to do differently)\s*:?\s*$", re.I)
_HEADING = re.compile(r"^(#{1,6} .*|[A-Z][\w ]{2,60}:)\s*$")
_BULLET = re.compile(r"^\s*- ")
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|「([^」]+)」|«([^»]+)»')
#: A longer bullet is a copy, not a memory.
MAX_LINE_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Regular expressions that must all be in one line (or in a few, for `LINES_OF`), and what would excuse them."""

    kind: str
    every: tuple[re.Pattern[str], ...]
    unless: re.Pattern[str] | None = None
    text: str = ""

    def matches(self, line: str) -> bool:
        """All of the expressions are in `line`, and none of the excuses."""
        return all(p.search(line) for p in self.every) and not (self.unless and self.unless.search(line))

    def is_kept_in(self, line: str) -> bool:
        """Like `matches`, but what the line quotes is looked at by itself too."""
        if self.matches(line):
            return True
        if self.unless and self.unless.search(line):
            return False
        return any(self.matches(next(filter(None, quoted.groups()))) for quoted in _QUOTED.finditer(line))

    def touches(self, line: str) -> bool:
        """At least one of the expressions is in `line`."""
        return any(p.search(line) for p in self.every)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Everything that a scenario demands, forbids and permits."""

    facts: tuple[Label, ...]
    never: tuple[Label, ...]
    allowed: tuple[Label, ...]
    empty: bool


def labels_of(table: dict[str, Any]) -> Labels:
    """The labels of a scenario's table. A label without an expression, or of an unknown kind, is a `ValueError`."""
    labels = Labels(
        facts=tuple(_label(entry) for entry in table.get("facts", [])),
        never=tuple(_label(entry) for entry in table.get("not", [])),
        allowed=tuple(_label({"all": [pattern]}) for pattern in table.get("allowed", [])),
        empty=table.get("empty", False),
    )
    unknown = {fact.kind for fact in labels.facts} - set(FACT_KINDS)
    if unknown:
        raise ValueError(f"unknown kind of fact: {sorted(unknown)}")
    if labels.empty == bool(labels.facts):
        raise ValueError("a scenario has facts, or is `empty`")
    return labels


def _label(entry: dict[str, Any]) -> Label:
    if not entry["all"]:
        raise ValueError(f"a label without an expression: {entry}")
    unless = entry.get("unless")
    return Label(
        kind=entry.get("kind", ""),
        every=tuple(re.compile(pattern, re.I) for pattern in entry["all"]),
        unless=re.compile(unless, re.I) if unless else None,
        text=entry.get("say", " & ".join(entry["all"])),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One session held against its labels."""

    found: tuple[Label, ...]
    missed: tuple[Label, ...]
    #: The bullets that count, each once.
    lines: tuple[str, ...]
    wrong: tuple[str, ...]
    kept: tuple[Label, ...]  #: forbidden things that are there
    forbidden: int


def judge(labels: Labels, draft: Stage1Draft | None) -> Verdict:
    """Hold a draft against the labels; `None` is a draft without lines."""
    if draft is None:
        return Verdict(found=(), missed=labels.facts, lines=(), wrong=(), kept=(), forbidden=len(labels.never))
    memory, summary = counted_bullets(draft.raw_memory), counted_bullets(draft.rollout_summary)
    whole = [*draft.raw_memory.splitlines(), *draft.rollout_summary.splitlines()]
    found = tuple(fact for fact in labels.facts if _found(fact, memory, summary, whole))
    lines = tuple(dict.fromkeys(memory))
    wrong = tuple(line for line in lines if not _right(labels, line, memory))
    counted = [*memory, *summary]
    kept = tuple(n for n in labels.never if any(n.is_kept_in(x) for x in (whole if n.kind == "secret" else counted)))
    missed = tuple(fact for fact in labels.facts if fact not in found)
    return Verdict(found=found, missed=missed, lines=lines, wrong=wrong, kept=kept, forbidden=len(labels.never))


def counted_bullets(text: str) -> list[str]:
    """The bullets under preferences, knowledge and failures, each in one line."""
    bullets: list[str] = []
    counting = inside = False
    for line in text.splitlines():
        if _BULLET.match(line):
            inside = counting
            if counting:
                bullets.append(_BULLET.sub("", line).strip())
        elif _COUNTED.match(line.strip().lstrip("#").strip()):
            counting, inside = True, False
        elif _HEADING.match(line):
            counting = inside = False
        elif inside and line.strip():
            bullets[-1] += " " + line.strip()
    return bullets


def _found(fact: Label, memory: list[str], summary: list[str], whole: list[str]) -> bool:
    if fact.kind in {"command", "file", "outcome"}:  # these have places of their own: references, front matter
        return _in_window(fact, whole)
    return _in_window(fact, memory) or _in_window(fact, summary)


def _in_window(fact: Label, lines: Sequence[str]) -> bool:
    return any(fact.matches(line) for line in _windows(lines, LINES_OF.get(fact.kind, 1)))


def _windows(lines: Sequence[str], size: int) -> list[str]:
    return ["\n".join(lines[i : i + size]) for i in range(len(lines))]


def _right(labels: Labels, line: str, memory: list[str]) -> bool:
    if len(line) > MAX_LINE_CHARS or any(never.is_kept_in(line) for never in labels.never):
        return False
    if any(label.matches(line) for label in (*labels.facts, *labels.allowed)):
        return True
    # A line of a cause-and-fix told in several lines is right when it holds a part of what they hold together.
    return any(
        fact.touches(line) and any(line in part.split("\n") and fact.matches(part) for part in _windows(memory, size))
        for fact in labels.facts
        if (size := LINES_OF.get(fact.kind, 1)) > 1
    )
