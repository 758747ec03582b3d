"""Which sessions the block of a line names as what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from stillroom.errors import RecallError
from stillroom.insight.why.claims import claim_of, folded
from stillroom.insight.why.places import Spot, read_lines
from stillroom.pattern import late
from stillroom.workspace.artifacts import RAW_MEMORIES, SUMMARIES
from stillroom.workspace.layout import HANDBOOK, SUMMARY

_GROUP = "# Task Group:"
_TASK = late(r"## Task (\d+)\b")
_REFERENCES = late(r"\[Task (\d+)\]")
_THREAD = late(r"\bthread_id[=:]\s*([^\s,)]+)")
_FILE = late(rf"{SUMMARIES}/([^\s,()`\]]+\.md)")
_RAW = late(r"^## Thread `(.*)`$")
_TOPIC = late(r"\bMEMORY\.md, (?P<group>.+), Task (?P<task>\d+);")
#: Lines of the header of a session's summary that may name its thread.
_HEADER_LINES = 12


def named_threads(spot: Spot, root: Path) -> list[str]:
    """The ids of the threads, in order; none where the block names none."""
    path, lines, number = spot.place.path, spot.lines, spot.place.line - 1
    if path == HANDBOOK:
        return _of_handbook(lines, number, root)
    if path == SUMMARY:
        return _of_summary(lines, number, root)
    if path == RAW_MEMORIES:
        heads = (match[1] for line in reversed(lines[: number + 1]) if (match := _RAW.match(line)))
        return [head for head in [next(heads, None)] if head]
    if path.startswith(f"{SUMMARIES}/"):
        return _unique(_THREAD.findall("\n".join(lines[:_HEADER_LINES])))[:1]
    return _ids(lines, root)


def _of_handbook(lines: Sequence[str], number: int, root: Path) -> list[str]:
    start, end = _around(lines, number, _GROUP, "# ")
    if not lines[start].startswith(_GROUP):
        return _ids(lines[number : number + 1], root)
    tasks = _tasks(lines[start:end])
    if wanted := _REFERENCES.findall(lines[number]):
        return _unique(each for task in wanted for each in _ids(tasks.get(task, ()), root))
    head, _ = _around(lines[start : number + 1], number - start, "## ", "## ")
    if match := _TASK.match(lines[start + head]):
        return _ids(tasks.get(match[1], ()), root)
    return _ids(lines[start:end], root)


def _of_summary(lines: Sequence[str], number: int, root: Path) -> list[str]:
    """What the handbook says of the same words, or of the topic that the line is about."""
    handbook = _read(root, HANDBOOK)
    core = folded(claim_of(lines[number]).core).rstrip(" …")
    if core:
        for at, line in enumerate(handbook):
            if core in folded(line):
                return _of_handbook(handbook, at, root)
    for line in _item(lines, number):
        if topic := _TOPIC.search(line):
            start = next((at for at, row in enumerate(handbook) if row == f"{_GROUP} {topic['group']}"), None)
            if start is not None:
                _, end = _around(handbook, start, _GROUP, "# ")
                return _ids(_tasks(handbook[start:end]).get(topic["task"], ()), root)
    return _ids(lines[number : number + 1], root)


def _item(lines: Sequence[str], number: int) -> Sequence[str]:
    """The bullet with what is indented below it."""
    start = number
    while start > 0 and lines[start].startswith(" "):
        start -= 1
    end = number + 1
    while end < len(lines) and lines[end].startswith(" "):
        end += 1
    return lines[start:end]


def _tasks(group: Sequence[str]) -> dict[str, Sequence[str]]:
    """The sections of a group's tasks, by their numbers."""
    heads = [at for at, line in enumerate(group) if line.startswith("## ")] + [len(group)]
    found: dict[str, Sequence[str]] = {}
    for start, end in pairwise(heads):
        if match := _TASK.match(group[start]):
            found[match[1]] = group[start:end]
    return found


def _around(lines: Sequence[str], number: int, opens: str, ends: str) -> tuple[int, int]:
    """The part that a line stands in: from the heading above it to the next one."""
    start = number
    while start > 0 and not lines[start].startswith((opens, ends)):
        start -= 1
    end = number + 1
    while end < len(lines) and not lines[end].startswith(ends):
        end += 1
    return start, end


def _ids(lines: Iterable[str], root: Path) -> list[str]:
    """Every thread that the lines name, by its id or by the file of its summary."""

    def named() -> Iterator[str]:
        for line in lines:
            if ids := _THREAD.findall(line):
                yield from ids
                continue
            for name in _FILE.findall(line):
                yield from _THREAD.findall("\n".join(_read(root, f"{SUMMARIES}/{name}")[:_HEADER_LINES]))[:1]

    return _unique(named())


def _read(root: Path, path: str) -> list[str]:
    try:
        return read_lines(root, path)
    except RecallError:
        return []


def _unique(ids: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ids))
