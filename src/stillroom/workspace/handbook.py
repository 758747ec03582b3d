"""The shape of `MEMORY.md`: task groups, their tasks, the sections that each must have (spec §1.15)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stillroom.pattern import late

_GROUP = "# Task Group:"
_TASK = late(r"## Task \d+\b")
#: A task rests on session summaries, or on resources that an extension brought.
_SOURCES = ("### rollout_summary_files", "### extension_resource_files")
_KEYWORDS = "### keywords"
_FENCE = late(r" {0,3}(`{3,}|~{3,})")


class Problem(NamedTuple):
    """A block that breaks the shape."""

    line: int
    message: str
    block: str


class _Line(NamedTuple):
    number: int
    text: str


def shape(lines: Sequence[str]) -> Iterator[Problem]:
    """Problems of every task group, in order. Headings in code fences are no headings; other blocks are free."""
    for group in _sections(_outside_fences(lines), "# "):
        if not group[0].text.startswith(_GROUP):
            continue
        block = _text(lines, group)
        if not group[0].text[len(_GROUP) :].strip():
            yield Problem(group[0].number, "the task group has no name", block)
        sections = list(_sections(group[1:], "## "))
        first = sections[0][0].number if sections else group[-1].number + 1
        for key in ("scope:", "applies_to:"):
            if not any(line.text.startswith(key) for line in group if line.number < first):
                yield Problem(group[0].number, f"the task group has no `{key}` line", block)
        tasks = [section for section in sections if _TASK.match(section[0].text)]
        if not tasks:
            yield Problem(group[0].number, "the task group has no `## Task 1`", block)
        for task in tasks:
            for message in _task_problems(task):
                yield Problem(task[0].number, message, _text(lines, task))


def _task_problems(task: Sequence[_Line]) -> Iterator[str]:
    headings = [line.text.rstrip() for line in task if line.text.startswith("### ")]
    sources = [headings.count(heading) for heading in _SOURCES]
    if sum(sources) == 0:
        yield f"the task has no `{_SOURCES[0]}`"
    elif max(sources) > 1:
        yield f"the task has more than one `{_SOURCES[sources.index(max(sources))]}`"
    if headings.count(_KEYWORDS) != 1:
        yield f"the task must have exactly one `{_KEYWORDS}`"


def _outside_fences(lines: Sequence[str]) -> list[_Line]:
    kept: list[_Line] = []
    fence = ""
    for number, text in enumerate(lines, 1):
        mark = _FENCE.match(text)
        if fence:
            if mark and mark[1].startswith(fence) and not text.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            kept.append(_Line(number, text))
    return kept


def _sections(lines: Sequence[_Line], mark: str) -> Iterator[list[_Line]]:
    section: list[_Line] = []
    for line in lines:
        if line.text.startswith(mark):
            if section:
                yield section
            section = [line]
        elif section:
            section.append(line)
    if section:
        yield section


def _text(lines: Sequence[str], section: Sequence[_Line]) -> str:
    return "\n".join(lines[section[0].number - 1 : section[-1].number])
