"""What a scenario says about the memory that should come of it, and how a line is held against it.

A draft has two tiers: what is *told* to later sessions (`raw_memory`), and *evidence*, which is found by search
(`rollout_summary`). Facts and traps are looked for in each.
"""

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
_FAILURES = re.compile(r"^failures and how to do differently\s*:?\s*$", re.I)
_HEADING = re.compile(r"^(#{1,6} .*|[A-Z][\w ]{2,60}:)\s*$")
_BULLET = re.compile(r"^\s*- ")
#: Where a line begins to say why something failed: everything behind it, up to the next part, is the cause.
_CAUSE = re.compile(
    r"\b(?:root )?causes?(?:, [^:;\n]{0,60})?:|\b(?:caused by|because of|because|due to)\b|原因(?:是|は|：|:)", re.I
)
_VERBATIM = re.compile(r'"[^"]*"|“[^”]*”|`[^`]*`')
_AFTER_CAUSE = re.compile(r" \| |; then it passed\b|\(then `")
_QUOTED = re.compile(r'"([^"]+)"|“([^”]+)”|「([^」]+)」|«([^»]+)»')
#: A longer bullet is a copy, not a memory.
MAX_LINE_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Regular expressions that must all be in one line (or in a few, for `LINES_OF`), and what would excuse them."""

    kind: str
    every: tuple[re.Pattern[str], ...]
    unless: re.Pattern[str] | None = None
    #: Of a failure: what its cause must say. None: nothing is said of it; empty: none is known, so none may be told.
    cause: tuple[re.Pattern[str], ...] | None = None
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
        cause=tuple(re.compile(pattern, re.I) for pattern in entry["cause"]) if "cause" in entry else None,
        text=entry.get("say", " & ".join(entry["all"])),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A told line that says why something failed, in its two halves."""

    line: str
    error: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One session held against its labels."""

    found: tuple[Label, ...]  #: told, or held as evidence
    missed: tuple[Label, ...]
    told: tuple[Label, ...]  #: facts of `found` that are told
    lines: tuple[str, ...]  #: the told bullets that count, each once
    wrong: tuple[str, ...]
    kept: tuple[Label, ...]  #: forbidden things that are in either tier
    kept_told: tuple[Label, ...]
    kept_evidence: tuple[Label, ...]
    forbidden: int
    causes: tuple[Cause, ...]
    wrong_causes: tuple[Cause, ...]


def judge(labels: Labels, draft: Stage1Draft | None) -> Verdict:
    """Hold a draft against the labels; `None` is a draft without lines."""
    raw_memory, rollout_summary = (draft.raw_memory, draft.rollout_summary) if draft else ("", "")
    memory, summary = counted_bullets(raw_memory), counted_bullets(rollout_summary)
    told_text, evidence_text = raw_memory.splitlines(), rollout_summary.splitlines()
    told = tuple(fact for fact in labels.facts if _found(fact, memory, told_text))
    found = tuple(fact for fact in labels.facts if fact in told or _found(fact, summary, evidence_text))
    lines = tuple(dict.fromkeys(memory))
    kept_told = tuple(never for never in labels.never if _is_kept(never, memory, told_text))
    kept_evidence = tuple(never for never in labels.never if _is_kept(never, summary, evidence_text))
    causes = tuple(cause for line in dict.fromkeys(failure_bullets(raw_memory)) if (cause := _cause_of(line)))
    return Verdict(
        found=found,
        missed=tuple(fact for fact in labels.facts if fact not in found),
        told=told,
        lines=lines,
        wrong=tuple(line for line in lines if not _right(labels, line, memory)),
        kept=tuple(never for never in labels.never if never in kept_told or never in kept_evidence),
        kept_told=kept_told,
        kept_evidence=kept_evidence,
        forbidden=len(labels.never),
        causes=causes,
        wrong_causes=tuple(cause for cause in causes if not _cause_is_right(labels, cause)),
    )


def _is_kept(never: Label, bullets: Sequence[str], whole: Sequence[str]) -> bool:
    return any(never.is_kept_in(line) for line in (whole if never.kind == "secret" else bullets))


def _cause_of(line: str) -> Cause | None:
    """The halves of a line that says why: of "A | cause: B | then passed", A with what follows, and B."""
    mark = _CAUSE.search(_VERBATIM.sub(lambda quoted: "\0" * len(quoted[0]), line))
    if not mark:
        return None
    rest = line[mark.end() :]
    end = _AFTER_CAUSE.search(rest)
    cause = rest[: end.start()] if end else rest
    return Cause(line=line, error=line[: mark.start()] + rest[len(cause) :], cause=cause)


def _cause_is_right(labels: Labels, said: Cause) -> bool:
    """Whether a failure's label holds the cause *beside its error*: a cause that belongs elsewhere is wrong.

    A label that names causes must find all of them in the half that tells the cause, and something of its own in the
    other. One that doesn't must match the line, with something of it in each half.
    """
    if any(never.is_kept_in(said.line) for never in labels.never):
        return False
    for fact in labels.facts:
        if fact.kind != "failure" or not fact.touches(said.error):
            continue
        if fact.cause is not None:
            if fact.cause and all(p.search(said.cause) for p in fact.cause):
                return True
        elif fact.matches(said.line) and fact.touches(said.cause):
            return True
    return False


def judge_given(labels: Labels, text: str) -> tuple[tuple[Label, ...], tuple[Label, ...]]:
    """Of what a session is given when it starts: the facts in it, and the forbidden things."""
    lines = bullets_of(text)
    facts = tuple(fact for fact in labels.facts if _in_window(fact, lines))
    return facts, tuple(never for never in labels.never if any(never.is_kept_in(line) for line in lines))


def bullets_of(text: str) -> list[str]:
    """Every bullet of a text, whatever it stands under."""
    return [_BULLET.sub("", line).strip() for line in text.splitlines() if _BULLET.match(line)]


def counted_bullets(text: str) -> list[str]:
    """The bullets under preferences, knowledge and failures, each in one line."""
    return _bullets(text, _COUNTED)


def failure_bullets(text: str) -> list[str]:
    """The bullets under failures, each in one line."""
    return _bullets(text, _FAILURES)


def _bullets(text: str, sections: re.Pattern[str]) -> list[str]:
    bullets: list[str] = []
    counting = inside = False
    for line in text.splitlines():
        if _BULLET.match(line):
            inside = counting
            if counting:
                bullets.append(_BULLET.sub("", line).strip())
        elif sections.match(line.strip().lstrip("#").strip()):
            counting, inside = True, False
        elif _HEADING.match(line):
            counting = inside = False
        elif inside and line.strip():
            bullets[-1] += " " + line.strip()
    return bullets


def _found(fact: Label, bullets: Sequence[str], whole: Sequence[str]) -> bool:
    if fact.kind in {"command", "file", "outcome"}:  # these have places of their own: references, front matter
        return _in_window(fact, whole)
    return _in_window(fact, bullets)


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
