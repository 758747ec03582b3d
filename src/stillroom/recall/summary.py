"""Reads `memory_summary.md` (spec §1.15) into lines, each with the projects that it is for."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from stillroom.recall.packing import HEADING, ITEM, MORE, Line, is_bullet

VERSION = "v1"
NOTE_TAG = "[ad-hoc note]"
#: What a consolidation writes where there is nothing to say.
_PLACEHOLDERS = frozenset({"- none yet", "- none known yet", "Nothing is known of the user yet."})
_HEADING = re.compile(r"(#{1,6}) +(\S.*)")
_FENCE = re.compile(r"\s*(```|~~~)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\b")
_INDEX = re.compile(r"what['’]?s in memory\b.*", re.IGNORECASE)
_OLDER = re.compile(r"older memory topics\b.*", re.IGNORECASE)
_CWD = re.compile(r"\bcwd=([^;)\]\n]+)")
_DESCRIPTION = re.compile(r"\s+[-*+] desc: .*\bcwd=")
_TIP = re.compile(r"[-*+] in ([^:]{1,120}): ")
#: Characters that steer a terminal or the order of text, or are not seen at all: nothing that a memory needs.
_UNSEEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\u2060\ufeff\U000e0000-\U000e007f]")
#: Tags that would end our own block, or the one in which a host shows it.
_TAG = re.compile(r"<(?=\s*/?\s*(?:stillroom-memory|system-reminder|hook_context)\b)", re.IGNORECASE)
_MARKER = re.compile(r"={2,}(?=.*MEMORY.SUMMARY)|(?<=MEMORY.SUMMARY).*={2,}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Label:
    """What a line or section says of the projects that it is for, as it says it."""

    names: tuple[str, ...] = ()
    #: Folders, absolute or from `~`.
    paths: tuple[str, ...] = ()
    #: Whether these words can only mean a project. "- in Docker: …" may mean anything.
    certain: bool = True


@dataclass(slots=True)
class Summary:
    """Lines, with places in `labels` for scopes."""

    lines: list[Line] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    #: Labels of the sections under "What's in Memory", which know their folders best.
    index: set[int] = field(default_factory=set)


def harmless(text: str) -> str:
    """The text as lines that can't leave the block in which they are shown, without characters that nobody sees."""
    text = _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs", "Zl", "Zp") else " " for c in text)
    return _MARKER.sub(lambda found: found[0].replace("=", "-"), _TAG.sub("‹", text))


def parse(text: str) -> Summary:
    """Every line of a summary but `v1` and blank ones. Whatever it holds is a line of some kind; nothing is refused."""
    return _Reading().read(text)


class _Reading:
    def __init__(self) -> None:
        self.summary = Summary()
        self.known: dict[Label, int] = {}
        self.headings: list[tuple[int, int]] = []  # level, line
        self.item = -1
        self.index_level = 0  #: of the heading under which projects stand; 0: none

    def read(self, text: str) -> Summary:
        rows = text.split("\n")
        number = 1 if rows[0].strip() == VERSION else 0
        paragraph = True  # the next plain line starts one
        while number < len(rows):
            row = rows[number].rstrip()
            number += 1
            if not row or row in _PLACEHOLDERS:
                paragraph = True
                continue
            if fence := _FENCE.match(row):
                while number < len(rows):
                    row += f"\n{rows[number].rstrip()}"
                    number += 1
                    if rows[number - 1].strip().startswith(fence[1]):
                        break
                self.add_text(row, starts=self.item < 0)
            elif heading := _HEADING.fullmatch(row):
                self.add_heading(row, len(heading[1]), heading[2].strip())
            else:
                indented = row[0] in " \t"
                self.add_text(row, starts=self.item < 0 or (not indented and (paragraph or is_bullet(row))))
            paragraph = False
        self.learn_folders()
        return self.summary

    def add_heading(self, row: str, level: int, title: str) -> None:
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        if level <= self.index_level:
            self.index_level = 0
        up = self.headings[-1][1] if self.headings else -1
        scope = self.summary.lines[up].scope if up >= 0 else -1
        if _INDEX.fullmatch(title):
            self.index_level = level
        elif self.index_level and _OLDER.fullmatch(title):
            scope = -1
        elif self.index_level and scope < 0 and not _DAY.match(title):
            scope = self.label(_of_heading(title, certain=True))
            self.summary.index.add(scope)
        elif not self.index_level and level > 2 and scope < 0:
            scope = self.label(_of_heading(title, certain=False))
        self.headings.append((level, len(self.summary.lines)))
        self.summary.lines.append(Line(row, kind=HEADING, up=up, scope=scope))
        self.item = -1

    def add_text(self, row: str, *, starts: bool) -> None:
        lines = self.summary.lines
        if not starts:
            lines.append(Line(row, kind=MORE, up=self.item, scope=lines[self.item].scope))
            return
        up = self.headings[-1][1] if self.headings else -1
        scope = lines[up].scope if up >= 0 else -1
        if scope < 0:
            scope = self.label(_of_line(row))
        self.item = len(lines)
        lines.append(Line(row, kind=ITEM, up=up, scope=scope))

    def label(self, label: Label) -> int:
        if not label.names and not label.paths:
            return -1
        if label not in self.known:
            self.known[label] = len(self.summary.labels)
            self.summary.labels.append(label)
        return self.known[label]

    def learn_folders(self) -> None:
        """The folders that a topic's description ends with are its project's; what a line quotes may be anyone's."""
        found: dict[int, list[str]] = {}
        for line in self.summary.lines:
            if line.scope in self.summary.index and _DESCRIPTION.match(line.text):
                found.setdefault(line.scope, []).extend(_folders(line.text[line.text.rfind("cwd=") :]))
        for scope, paths in found.items():
            label = self.summary.labels[scope]
            self.summary.labels[scope] = Label(label.names, tuple(dict.fromkeys((*label.paths, *paths))))


_EVERYWHERE = re.compile(
    r"(?:every|all|any)(?: (?:of )?(?:my|our|the))? (?:projects?|repositor(?:y|ies)|repos?)|everywhere|global|general"
    r"|cross-project",
    re.IGNORECASE,
)


def _of_heading(title: str, *, certain: bool) -> Label:
    return _label(re.sub(r"^(?:cwd|scope|project|repo(?:sitory)?)\s*[:=]\s*", "", title, flags=re.IGNORECASE), certain)


def _of_line(row: str) -> Label:
    """`… (in NAME, NAME)` at the end, `cwd=/path` anywhere, or `- in NAME: …`."""
    text = row.removesuffix(NOTE_TAG).rstrip()
    start = _label_start(text)
    if start >= 0:
        return _label(text[start + 4 : -1], certain=True)
    if paths := _folders(text):
        return Label((), paths)
    tip = _TIP.match(text)
    return _label(tip[1], certain=False) if tip else Label()


def _label_start(text: str) -> int:
    """Where the `(in …)` begins that ends with the line; a name may have parentheses of its own."""
    if not text.endswith(")"):
        return -1
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        depth += (text[position] == ")") - (text[position] == "(")
        if depth == 0:
            return position if text.startswith("(in ", position) else -1
    return -1


def _label(text: str, certain: bool) -> Label:
    text = text.replace("`", "").strip()
    if _EVERYWHERE.fullmatch(text):
        return Label()
    paths = tuple(dict.fromkeys(word for word in re.split(r"[\s,;()]+", text) if word.startswith(("/", "~/"))))
    names = [text, *re.split(r", | / | & | \+ | and ", text)]
    names += [name.partition(" (")[0] for name in names]
    kept = dict.fromkeys(name.strip().casefold() for name in names if not name.strip().startswith(("/", "~/")))
    return Label(tuple(name for name in kept if name), paths, certain)


def _folders(text: str) -> tuple[str, ...]:
    found = (part.strip().strip("`'\"") for match in _CWD.finditer(text) for part in match[1].split(","))
    return tuple(dict.fromkeys(path for path in found if path.startswith(("/", "~/"))))
