"""Reads `memory_summary.md` (spec §1.15) into lines, each with the projects that it is for."""

from __future__ import annotations

import re
import unicodedata

import msgspec

from stillroom.recall.injection.labels import Label, of_description, of_heading, of_line, of_suffix
from stillroom.recall.injection.prepared import PLACEHOLDERS, SUMMARY, VERSION
from stillroom.recall.injection.statements import FAILURES, INDEX, KNOWLEDGE, PREFERENCES, PROFILE, Statement

HEADING, ITEM, MORE = "heading", "item", "more"
_KINDS = {"user profile": PROFILE, "user preferences": PREFERENCES, "general tips": FAILURES}

_HEADING = re.compile(r"(#{1,6}) +(\S.*)")
_FENCE = re.compile(r"\s*(```|~~~)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\b")
_INDEX = re.compile(r"what['’]?s in memory\b.*", re.IGNORECASE)
_OLDER = re.compile(r"older memory topics\b.*", re.IGNORECASE)
#: Sections below the title and above the projects are the format's own.
_SECTION_LEVEL = 2

#: Characters that change the order of text, or are not seen at all: nothing that a memory needs.
_UNSEEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff\U000e0000-\U000e007f]")
#: Controls, halves of characters, and what ends a line for some and not for others.
_STEERING = frozenset({"Cc", "Cs", "Zl", "Zp"})
#: Tags that would end our own block, or the one in which a host shows it.
_TAG = re.compile(r"<(?=\s{0,8}/?\s{0,8}(?:stillroom-memory|system-reminder|hook_context)\b)", re.IGNORECASE)
_MARKER = re.compile(r"MEMORY.SUMMARY", re.IGNORECASE)


class Line(msgspec.Struct):
    """One line of a summary; a fenced block counts as one."""

    text: str
    #: `HEADING`, `ITEM` (a bullet, the start of a paragraph), or `MORE` of the item before it.
    kind: str
    #: The heading or item that it stands under; -1: none.
    up: int
    #: Which of the labels it is for; -1: for every project.
    scope: int
    #: In the file, from 1.
    number: int = 0


class Summary(msgspec.Struct):
    """Lines, with places in `labels` for scopes."""

    lines: list[Line] = []
    labels: list[Label] = []
    #: Labels of the sections under "What's in Memory", which know their folders best.
    index: set[int] = msgspec.field(default_factory=set)


def harmless(text: str) -> str:
    """The text as lines that can't leave the block in which they are shown, without characters that nobody sees."""
    text = _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    rows = (row if row.isascii() and row.isprintable() else _steady(row) for row in text.split("\n"))
    text = "\n".join(rows)
    text = _TAG.sub("‹", text)
    return "\n".join(row.replace("=", "-") if _MARKER.search(row) else row for row in text.split("\n"))


def _steady(row: str) -> str:
    return "".join(c if c == "\t" or unicodedata.category(c) not in _STEERING else " " for c in row)


def is_bullet(text: str) -> bool:
    """Whether a line is an entry of a list."""
    return text.startswith(("- ", "* ", "+ ")) or text.partition(". ")[0].isdigit()


def statements(summary: Summary) -> list[tuple[int, Statement]]:
    """The items of a summary, each with what stands below it, and the label that they are for.

    What stands below an item and is for another project is a statement of its own.
    """
    found: list[tuple[int, Statement]] = []
    for line in summary.lines:
        if line.kind == HEADING:
            continue
        last = line.number + line.text.count("\n")
        if line.kind == MORE and found and found[-1][0] == line.scope:
            found[-1][1].text += f"\n{line.text}"
            found[-1][1].last = last
            continue
        kind, title = _section(summary, line)
        text = line.text.strip() if line.kind == MORE else line.text
        found.append((line.scope, Statement(text, kind=kind, title=title, file=SUMMARY, first=line.number, last=last)))
    return found


def _section(summary: Summary, line: Line) -> tuple[int, str]:
    """What kind of statements stand under the headings above a line, and the heading that says so."""
    title = ""
    while line.up >= 0:
        line = summary.lines[line.up]
        heading = _HEADING.fullmatch(line.text) if line.kind == HEADING else None
        if heading:
            name = heading[2].strip()
            if _INDEX.fullmatch(name):
                return INDEX, "Topics"
            if (kind := _KINDS.get(name.casefold())) is not None:
                return kind, name
            title = title or name
    return KNOWLEDGE, title or "From the summary"


def parse(text: str) -> Summary:
    """Every line of a summary but `v1` and blank ones. Whatever it holds is a line of some kind; nothing is refused."""
    return _Reading().read(text)


class _Reading:
    def __init__(self) -> None:
        self.summary = Summary()
        self.numbers: dict[Label, int] = {}
        self.headings: list[tuple[int, int]] = []  #: level and line of those that are open
        self.row = 0  #: of the file, from 1
        self.item = -1
        self.item_scope = -1  #: as the last labelled line of the item says
        self.index_level = 0  #: of the heading under which projects stand; 0: none is open

    def read(self, text: str) -> Summary:
        rows = text.split("\n")
        number = 1 if rows[0].strip() == VERSION else 0
        is_new = True  # the next plain line starts a paragraph
        while number < len(rows):
            row = rows[number].rstrip()
            number += 1
            self.row = number
            if not row or row in PLACEHOLDERS:
                is_new = True
                continue
            if fence := _FENCE.match(row):
                end = number
                while end < len(rows) and not rows[end].strip().startswith(fence[1]):
                    end += 1
                row = "\n".join([row, *(inside.rstrip() for inside in rows[number : end + 1])])
                number = end + 1
                self.add_text(row, starts=self.item < 0)
            elif heading := _HEADING.fullmatch(row):
                self.add_heading(row, len(heading[1]), heading[2].strip())
            else:
                is_indented = row[0] in " \t"
                self.add_text(row, starts=self.item < 0 or (not is_indented and (is_new or is_bullet(row))))
            is_new = False
        self.end_item()
        self.learn_folders()
        return self.summary

    def add_heading(self, row: str, level: int, title: str) -> None:
        self.end_item()
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        if level <= self.index_level:
            self.index_level = 0
        up, scope = self.above()
        if _INDEX.fullmatch(title):
            self.index_level = level
        elif scope < 0 and self.index_level and not _OLDER.fullmatch(title) and not _DAY.match(title):
            scope = self.number(of_heading(title, "section"))
            self.summary.index |= {scope} - {-1}
        elif scope < 0 and not self.index_level and level > _SECTION_LEVEL:
            scope = self.number(of_heading(title, "words"))
        self.headings.append((level, len(self.summary.lines)))
        self.summary.lines.append(Line(row, HEADING, up, scope, self.row))

    def add_text(self, row: str, *, starts: bool) -> None:
        if not starts:
            self.add_more(row)
            return
        self.end_item()
        up, scope = self.above()
        if scope < 0:
            scope = self.number(of_line(row))
        self.item, self.item_scope = len(self.summary.lines), scope
        self.summary.lines.append(Line(row, ITEM, up, scope, self.row))

    def add_more(self, row: str) -> None:
        """A label at the end of a wrapped line is the whole item's; at the end of a bullet below it, that bullet's."""
        item = self.summary.lines[self.item]
        above = self.summary.lines[item.up].scope if item.up >= 0 else -1
        label = of_suffix(row) if above < 0 else None
        scope = item.scope if label is None else self.number(label)
        if label is not None and not is_bullet(row.lstrip()):
            self.item_scope, scope = scope, item.scope
        self.summary.lines.append(Line(row, MORE, self.item, scope, self.row))

    def end_item(self) -> None:
        """Give an item that was labelled at its end, and what has no label of its own below it, that label."""
        if self.item >= 0 and (before := self.summary.lines[self.item].scope) != self.item_scope:
            for line in self.summary.lines[self.item :]:
                line.scope = self.item_scope if line.scope == before else line.scope
        self.item = -1

    def above(self) -> tuple[int, int]:
        """The heading that is open, and its scope."""
        up = self.headings[-1][1] if self.headings else -1
        return up, self.summary.lines[up].scope if up >= 0 else -1

    def number(self, label: Label) -> int:
        if not label:
            return -1
        if label not in self.numbers:
            self.numbers[label] = len(self.summary.labels)
            self.summary.labels.append(label)
        return self.numbers[label]

    def learn_folders(self) -> None:
        """A project's folders stand in the descriptions of its topics."""
        found: dict[int, list[str]] = {}
        for line in self.summary.lines:
            if line.scope in self.summary.index:
                found.setdefault(line.scope, []).extend(of_description(line.text))
        for scope, paths in found.items():
            label = self.summary.labels[scope]
            self.summary.labels[scope] = msgspec.structs.replace(
                label, paths=tuple(dict.fromkeys((*label.paths, *paths)))
            )
