"""What a line or a heading of a summary says of the projects that it is for, in its own words."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

LabelKind = Literal["section", "suffix", "words"]

#: What may stand behind a label: references to tasks, the tag of a note, emphasis, a full stop.
_BEHIND = re.compile(r"(?:\s|\[[^\[\]]{0,40}\]|[.*_`;,]){1,200}\Z")
_LONGEST_BEHIND = 200
_CWD = re.compile(r"\bcwd=([^;)\]\n]+)")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_DESCRIPTION = re.compile(r"\s+[-*+] desc: ")
_FOLDER_OF_NAME = re.compile(r" \((~?/.*)\)\Z")
_TIP = re.compile(r"[-*+] in ([^:]{1,120}|[^:]{1,255} \(~?/[^:]{1,400}\)): ")
_PREFIX = re.compile(r"(?:cwd|scope|project|repo(?:sitory)?)\s*[:=]\s*", re.IGNORECASE)
_EVERYWHERE = re.compile(
    r"(?:every|all|any)(?: (?:of )?(?:my|our|the))? (?:projects?|repositor(?:y|ies)|repos?)|everywhere|global|general"
    r"|cross-project",
    re.IGNORECASE,
)


class Label(msgspec.Struct, frozen=True):
    """The words, and the folders in them. Without both: for every project."""

    #: One name, or several with commas between; "" if only folders are named.
    text: str = ""
    #: Absolute, or from `~`.
    paths: tuple[str, ...] = ()
    #: `section`: a heading of the index, which always means a project; `suffix`: `(in …)` at the end of a line;
    #: `words`: what may mean a project, or anything else ("- in Docker: …").
    kind: LabelKind = "words"

    def __bool__(self) -> bool:
        return bool(self.text or self.paths)


def of_heading(title: str, kind: LabelKind) -> Label:
    """`shop`, `/home/ada/shop`, `shop (/home/ada/shop)`, `cwd=/home/ada/shop`."""
    return _label(_PREFIX.sub("", title, count=1) if _PREFIX.match(title) else title, kind)


def of_line(row: str) -> Label:
    """`- in NAME (/path): …`, else `… (in NAME, NAME)`, else `cwd=/path` anywhere in the line, else `- in NAME: …`."""
    tip = _TIP.match(row)
    if tip and (named := _label(tip[1], "words")).paths:
        return named  # whatever the line ends with, or is cut to
    label = of_suffix(row)
    if label is not None:
        return label
    if paths := _folders(row):
        return Label(paths=paths)
    return _label(tip[1], "words") if tip else Label()


def of_suffix(row: str) -> Label | None:
    """The label at the end of a line; None if it has none. A name may have parentheses of its own."""
    text = row if row.endswith(")") else row[:-_LONGEST_BEHIND] + _BEHIND.sub("", row[-_LONGEST_BEHIND:])
    if not text.endswith(")"):
        return None
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        depth += (text[position] == ")") - (text[position] == "(")
        if depth == 0:
            return _label(text[position + 4 : -1], "suffix") if text.startswith("(in ", position) else None
    return None


def of_description(row: str) -> tuple[str, ...]:
    """The folders that the description of a topic ends with. What else a line quotes may be anyone's."""
    return _folders(row[row.rfind("cwd=") :]) if _DESCRIPTION.match(row) and "cwd=" in row else ()


def of_applies_to(row: str) -> tuple[str, ...]:
    """The folders of a task group: `applies_to: cwd=/a, /b; reuse_rule=…`."""
    return _folders(row)


def means_everywhere(text: str) -> bool:
    """Whether the words say that something holds in every project. A project may be called "general" all the same."""
    return _EVERYWHERE.fullmatch(text) is not None


def names_in(text: str) -> list[str]:
    """The whole text, then each of the names in it."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth <= 0:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return list(dict.fromkeys(part for part in (text, *parts) if part))


def _label(text: str, kind: LabelKind) -> Label:
    text = text.replace("`", "").strip()
    parts = names_in(text)[1:] or [text]
    paths = tuple(dict.fromkeys(path for part in parts for path in _paths(part)))
    return Label("" if text in paths else text.casefold(), paths, kind)


def _paths(part: str) -> list[str]:
    """The folder of `NAME (/the/folder)`, whatever it is called; else every word that is a path."""
    if folder := _FOLDER_OF_NAME.search(part):
        return [folder[1]]
    return [word for word in re.split(r"[\s,;()]+", part) if word.startswith(("/", "~/"))]


def _folders(text: str) -> tuple[str, ...]:
    found = (part.strip().strip("`'\"") for match in _CWD.finditer(text) for part in match[1].split(","))
    return tuple(dict.fromkeys(path for path in found if path.startswith(("/", "~/")) or _DRIVE.match(path)))
