"""Takes what rests on forgotten sessions out of `MEMORY.md`, by provenance.

A task names the sessions that it rests on and goes with the last of them; a line below names the tasks that it rests on
and goes with the last of those. What rests on something else too stays, and is told as undecided. What a person wrote
stays unless it speaks of something forgotten itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from stillroom.offline.folder import byhand
from stillroom.undoing.traces import Finder
from stillroom.workspace.artifacts import SUMMARIES

GROUP = "# Task Group:"
_TASK = re.compile(r"## Task (\d+)\b")
_TAIL = re.compile(r"(?:\s*\[Task \d+\])+\s*$")
_REFERENCE = re.compile(r"\[Task (\d+)\]")
_SOURCE = re.compile(rf"- .*(?:{SUMMARIES}/|extensions/|thread_id=)")
RECORD_OPENS, _RECORD_CLOSES = "<!-- Lines by Stillroom", "-->"
_RECORD_ROW = re.compile(r"(handbook|summary): ([0-9a-f ]+)")

_Fate = Literal["gone", "mixed", "kept"]


class Cut(msgspec.Struct):
    """A handbook, and what was taken out of it."""

    lines: list[str] = []
    dropped: list[str] = []
    undecided: list[str] = []
    #: Groups whose sessions are all forgotten.
    emptied: set[str] = msgspec.field(default_factory=set)


def is_handbook(lines: Iterable[str]) -> bool:
    """Whether these are the lines of a `MEMORY.md` with task groups."""
    return any(line.startswith(GROUP) for line in lines)


def cut_handbook(
    lines: Sequence[str],
    finder: Finder,
    *,
    summary_keys: Iterable[str] = (),
    generated: frozenset[str] | None = None,
) -> Cut:
    """The handbook without what is to be forgotten. `generated` are the hashes of lines that no person wrote.

    One of an earlier release ends with its record of generated lines. That loses the lines that go, and `summary_keys`,
    of lines taken out of the summary, so that nobody seems to have taken them out by hand."""
    lines, row_lines, after = _around_record(lines)
    _, record = byhand.split_record("\n".join(row_lines))
    cutter = _Cutter(finder, generated if record.handbook is None else record.handbook)
    for part in _split(lines, "# "):
        cutter.cut.lines += cutter.group(part) if part[0].startswith(GROUP) else cutter.outside(part)
    # Headings come again and again: one that still stands somewhere is still generated.
    gone_here = set(map(byhand.key, cutter.cut.dropped)) - set(map(byhand.key, cutter.cut.lines))
    gone = {"handbook": gone_here, "summary": set(summary_keys)}
    cutter.cut.lines += [*without_keys(row_lines, gone), *cutter.outside(after)]
    return cutter.cut


class _Cutter(msgspec.Struct):
    finder: Finder
    #: Hashes of the lines that were generated; None: nobody knows.
    generated: frozenset[str] | None
    cut: Cut = msgspec.field(default_factory=Cut)

    def group(self, part: Sequence[str]) -> list[str]:
        if not self.finder.may_be_in("\n".join(part).encode("utf-8", "surrogateescape")):
            return list(part)
        head, *sections = _split_with_head(part)
        fates = {match[1]: self._fate(section) for section in sections if (match := _TASK.match(section[0]))}
        nothing_left = bool(fates) and set(fates.values()) == {"gone"}
        body: list[str] = []
        for section in sections:
            match = _TASK.match(section[0])
            body += self._task(section, fates[match[1]]) if match else self._section(section, fates)
        if nothing_left:
            self.cut.emptied.add(part[0].removeprefix(GROUP).strip())
        own = [line for line in head[1:] if self._is_by_hand(line)]
        if nothing_left and not own and not any(line.strip() for line in body):
            self._drop(head)
            return []
        return [*self.outside(head), *body]

    def outside(self, part: Sequence[str]) -> list[str]:
        """Lines that name nothing that they rest on."""
        return self._filtered(part, self.finder.is_traced)

    def _fate(self, section: Sequence[str]) -> _Fate:
        sources = [line for line in section if _SOURCE.match(line)]
        forgotten = sum(map(self.finder.names_in, sources))
        if not forgotten:
            return "kept"
        return "gone" if forgotten == len(sources) else "mixed"

    def _task(self, section: Sequence[str], fate: _Fate) -> list[str]:
        if fate == "gone":
            own = self._filtered(section, lambda line: not self._is_by_hand(line) or self.finder.is_traced(line))
            return own if any(line.strip() for line in own) else []
        kept = self._filtered(section, self.finder.is_traced)
        if fate == "mixed":
            about = (line for line in kept if line == section[0] or (line.startswith("- ") and not _SOURCE.match(line)))
            self.cut.undecided += about
        return kept

    def _section(self, section: Sequence[str], fates: dict[str, _Fate]) -> list[str]:
        """A section below the tasks, whose lines rest on some of them."""
        gone = {number for number, fate in fates.items() if fate == "gone"}
        mixed = {number for number, fate in fates.items() if fate == "mixed"}

        def goes(line: str) -> bool:
            if self.finder.is_traced(line):
                return True
            if not line.strip() or self._is_by_hand(line):
                return False
            rests_on = _references(line)
            return rests_on <= gone if rests_on else bool(gone) and len(gone) == len(fates)

        body = self._filtered(section[1:], goes)
        for number, line in enumerate(body):
            rests_on = _references(line)
            body[number] = _without_references(line, gone) if rests_on & gone else line
            unsure = rests_on & mixed if rests_on else (gone or mixed) and line.startswith("- ")
            if unsure and not self._is_by_hand(line):
                self.cut.undecided.append(body[number])
        if any(line.strip() for line in section[1:]) and not any(line.strip() for line in body):
            self._drop(section[:1])
            return []
        return [section[0], *body]

    def _filtered(self, lines: Sequence[str], goes: Callable[[str], bool]) -> list[str]:
        """Without the lines that go; a list item goes with what is indented below it."""
        kept: list[str] = []
        below = is_gap = False
        for line in lines:
            below = below and (line.startswith(" ") or not line.strip())
            if (below and line.strip()) or (line.strip() and goes(line)):
                self._drop([line])
                below = below or line.startswith(("- ", "* "))
                is_gap = True
            elif line.strip() or not (is_gap and kept and not kept[-1].strip()):  # no second blank line for a gap
                kept.append(line)
                is_gap = is_gap and not line.strip()
        return kept

    def _is_by_hand(self, line: str) -> bool:
        return self.generated is not None and bool(line.strip()) and byhand.key(line) not in self.generated

    def _drop(self, lines: Sequence[str]) -> None:
        self.cut.dropped += [line for line in lines if line.strip()]


def with_keys(lines: Sequence[str], swapped: Mapping[str, tuple[set[str], set[str]]]) -> list[str]:
    """A text with other hashes in the record of generated lines that it is, or ends with: of `handbook` and `summary`
    those that go, and those in their place. A line that was changed by a program is still generated."""
    before, record, after = _around_record(lines)
    rows: dict[str, list[str]] = {name: [] for name in swapped}
    for line in record:
        if row := _RECORD_ROW.fullmatch(line):
            rows[row[1]] += row[2].split()
    made = dict.fromkeys(swapped, "")
    for name, (gone, new) in swapped.items():
        if gone.isdisjoint(rows[name]):
            made[name] = " ".join(rows[name])
        else:
            made[name] = " ".join(sorted({*rows[name]} - gone | new))
    out: list[str] = []
    for line in record:
        row = _RECORD_ROW.fullmatch(line)
        if row is None:
            out.append(line)
        elif keys := made.pop(row[1], ""):
            out.append(f"{row[1]}: {keys}")
    return [*before, *out, *after]


def _around_record(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str], Sequence[str]]:
    """What stands before the record of generated lines, the record, and what stands after it."""
    for start, line in enumerate(lines):
        if line.startswith(RECORD_OPENS):
            ends = (number for number in range(start, len(lines)) if lines[number] == _RECORD_CLOSES)
            end = next(ends, len(lines) - 1) + 1
            return lines[:start], lines[start:end], lines[end:]
    return lines, (), ()


def _references(line: str) -> set[str]:
    tail = _TAIL.search(line)
    return set(_REFERENCE.findall(tail[0])) if tail else set()


def _without_references(line: str, gone: set[str]) -> str:
    tail = _TAIL.search(line)
    assert tail is not None
    left = [number for number in _REFERENCE.findall(tail[0]) if number not in gone]
    return f"{line[: tail.start()]} {''.join(f'[Task {number}]' for number in left)}"


def without_keys(lines: Iterable[str], gone: Mapping[str, set[str]]) -> Iterator[str]:
    """A record of generated lines without these hashes."""
    for line in lines:
        row = _RECORD_ROW.fullmatch(line)
        if row is None:
            yield line
        elif keys := [key for key in row[2].split() if key not in gone[row[1]]]:
            yield f"{row[1]}: {' '.join(keys)}"


def _split_with_head(part: Sequence[str]) -> list[list[str]]:
    """The lines before the first section, then the sections."""
    sections = list(_split(part, "## "))
    return sections if not sections[0][0].startswith("## ") else [[], *sections]


def _split(lines: Sequence[str], mark: str) -> Iterator[list[str]]:
    """Parts that each begin with `mark`; what stands before the first is a part too."""
    part: list[str] = []
    for line in lines:
        if line.startswith(mark) and part:
            yield part
            part = []
        part.append(line)
    if part:
        yield part
