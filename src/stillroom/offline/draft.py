"""From what was found to two texts: `raw_memory`, which sessions are given, and `rollout_summary`, evidence for search.

Every line is written together with what it rests on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stillroom.offline.sentences import clip, identifiers
from stillroom.offline.work import Command, Outcome
from stillroom.sessions.events import Ran, Said
from stillroom.store.records.outputs import LineSource

LINE_CHARS = 480
"""A longer line is a copy, not a memory."""
QUOTE_CHARS = 400
MAX_RAW_MEMORY_BYTES, MAX_SUMMARY_BYTES = 16_000, 24_000
_MAX_KEYWORDS = 14
Section = Literal["preference", "step", "knowledge", "failure", "reference"]
_TITLES: dict[Section, str] = {
    "preference": "Preference signals",
    "step": "Key steps",
    "knowledge": "Reusable knowledge",
    "failure": "Failures and how to do differently",
    "reference": "References",
}
_NOTHING_SAID = frozenset(
    "yes no not none null true false fail failed pass passed error warn warning info todo done ok".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Line:
    """A bullet, and the events that it rests on with the words there."""

    section: Section
    text: str
    sources: tuple[tuple[Said | Ran, str], ...]


@dataclass(slots=True)
class Task:
    """What is known of one task."""

    name: str
    outcome: Outcome
    group: str  #: project
    cwd: str
    told: list[Line] = field(default_factory=list)
    evidence: list[Line] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    commit: str = ""


def raw_memory(tasks: Sequence[Task]) -> str:
    """The text that MEMORY.md is made of: a block a task."""
    first = tasks[0]
    lines = [
        "---",
        f"description: {description(tasks)}",
        f"task: {first.name}",
        f"task_group: {first.group}",
        f"task_outcome: {_worst(tasks)}",
        f"cwd: {first.cwd}",
        f"keywords: {', '.join(_unique(word for task in tasks for word in keywords(task))[:_MAX_KEYWORDS])}",
        "---",
    ]
    for number, task in enumerate(tasks, 1):
        lines += ["", f"### Task {number}: {task.name}", "", f"task: {task.name}", f"task_group: {task.group}"]
        lines += [f"task_outcome: {task.outcome}", f"keywords: {', '.join(keywords(task))}", ""]
        lines += _sections(task.told)
    return _within(lines, MAX_RAW_MEMORY_BYTES)


def rollout_summary(tasks: Sequence[Task], *, branch: str | None) -> str:
    """What `raw_memory` does not say: the person's other words, what was found, how it ended."""
    on_branch = f", branch `{branch}`" if branch else ""
    lines = [f"# {description(tasks)}", "", f"Rollout context: in `{tasks[0].cwd}`{on_branch}"]
    for number, task in enumerate(tasks, 1):
        lines += ["", f"## Task {number}: {task.name}", "", f"Outcome: {task.outcome}", ""]
        lines += _sections(task.evidence)
    return _within(lines, MAX_SUMMARY_BYTES)


def description(tasks: Sequence[Task]) -> str:
    return f"{'; '.join(clip(task.name, 80) for task in tasks[:3])} ({_worst(tasks)})"


def keywords(task: Task) -> list[str]:
    """Names to search by: commands, files, identifiers of the lines."""
    found = [command.text for command in task.commands[:3] if len(command.text) <= 40]
    found += [path.rpartition("/")[2] for path in task.files[:5]]
    for line in task.told:
        found += sorted(identifiers(line.text.replace("[REDACTED_SECRET]", " ")), key=len, reverse=True)[:3]
    clean = [" ".join(word.replace(",", " ").split()).strip("`'\"") for word in found]
    clean = [word for word in clean if 2 < len(word) <= 60 and word not in _NOTHING_SAID and not word.isdigit()]
    return _unique(clean)[:_MAX_KEYWORDS] or [word for word in task.name.split() if len(word) > 3][:6]


def line_sources(tasks: Sequence[Task]) -> tuple[LineSource, ...]:
    """A row for each event that a line rests on."""
    found = []
    for task in tasks:
        for line in (*task.told, *task.evidence):
            for event, quote in line.sources:
                speaker = event.who if isinstance(event, Said) else "tool"
                words = clip(quote, QUOTE_CHARS)
                found.append(LineSource(line=line.text, speaker=speaker, line_no=event.line_no, quote=words))
    return tuple(found)


def _sections(lines: Sequence[Line]) -> list[str]:
    text: list[str] = []
    for section, title in _TITLES.items():
        bullets = _unique(f"- {line.text}" for line in lines if line.section == section)
        if section == "reference":
            bullets = [f"- [{number}] {bullet[2:]}" for number, bullet in enumerate(bullets, 1)]
        text += [f"{title}:", *bullets] if bullets else []
    return text


def _worst(tasks: Sequence[Task]) -> Outcome:
    outcomes = {task.outcome for task in tasks}
    if len(outcomes) == 1:
        return tasks[0].outcome
    return "partial" if outcomes & {"success", "partial"} else "fail" if "fail" in outcomes else "uncertain"


def _unique(lines: Iterable[str]) -> list[str]:
    return list({" ".join(line.casefold().split()): line for line in reversed(list(lines))}.values())[::-1]


def _within(lines: Sequence[str], limit: int) -> str:
    """The lines that fit, dropped from the end, none cut inside."""
    kept, left = list[str](), limit - 1
    for line in lines:
        left -= len(line.encode("utf-8", "replace")) + 1
        if left < 0:
            break
        kept.append(line)
    return "\n".join(kept).strip() + "\n"
