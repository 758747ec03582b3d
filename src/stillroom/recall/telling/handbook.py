"""What `MEMORY.md` adds to the summary: more wishes of each project, and which folders the names of projects mean.

The summary is one file for all projects, and a short one: of many projects it has room for few wishes of each, or none.
A session has room of its own. It is told the rest of its project's wishes from the handbook, as far as that goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import msgspec

from stillroom.recall.telling.labels import Label, names_in, of_applies_to
from stillroom.recall.telling.packing import HEADING, ITEM, Line
from stillroom.recall.telling.summary import Summary

_GROUP = "# Task Group:"
_WISHES = "## user preferences"
_TITLE = "## More preferences, from MEMORY.md"
_TASKS = re.compile(r"(?:\s*\[Task \d{1,6}\])+\s*\Z")
#: Where the summary's wording of a wish may leave the handbook's: what follows from it, a cut, where it holds.
_LEAVES = re.compile(r" -> |…| \(in ")
#: Fewer characters are the beginning of anything.
_LEAST_CHARS = 12


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A task group, as far as it is looked at."""

    title: str
    folders: tuple[str, ...]
    wishes: tuple[str, ...]


def read_groups(text: str) -> list[Group]:
    """The task groups of a handbook that say for which folders they are, in their order."""
    found = []
    for part in re.split(r"^(?=# )", text.replace("\r\n", "\n"), flags=re.MULTILINE):
        head, *rows = part.split("\n")
        if not head.startswith(_GROUP):
            continue
        folders = next((of_applies_to(row) for row in rows if row.startswith("applies_to:")), ())
        if folders:
            found.append(Group(title=head.removeprefix(_GROUP).strip(), folders=folders, wishes=tuple(_wishes(rows))))
    return found


def cleaned(groups: Sequence[Group], clean: Callable[[str], str]) -> list[Group]:
    """The groups with what `clean` makes of their wishes: of all at once, as long as it keeps lines apart."""
    wishes = [wish for group in groups for wish in group.wishes]
    clean_wishes = clean("\n".join(wishes)).split("\n")
    if len(clean_wishes) != len(wishes):
        clean_wishes = [clean(wish).replace("\n", " ") for wish in wishes]
    left = iter(clean_wishes)
    return [msgspec.structs.replace(group, wishes=tuple(islice(left, len(group.wishes)))) for group in groups]


def name_folders(summary: Summary, groups: Sequence[Group]) -> None:
    """Give the labels that are names of groups their folders. A name that two groups have stays a name, and so does one
    that the index tells the folders of."""
    indexed = {summary.labels[number].text for number in summary.index}
    folders: dict[str, tuple[str, ...]] = {}
    for group in groups:
        if (name := group.title.casefold()) in indexed:
            continue
        folders[name] = () if name in folders else group.folders
    for number, label in enumerate(summary.labels):
        names = names_in(label.text)[1:] or names_in(label.text)
        found = [folders.get(name) for name in names]
        if label.kind == "suffix" and not label.paths and found and all(found):
            paths = tuple(dict.fromkeys(path for each in found if each for path in each))
            summary.labels[number] = msgspec.structs.replace(label, paths=paths)


def add_wishes(summary: Summary, groups: Sequence[Group], *, max_bytes: int, max_bytes_of_project: int) -> None:
    """Put the wishes that the summary does not have behind it, so many bytes of each project and of all."""
    told = _Told(line.text for line in summary.lines if line.kind == ITEM)
    up, room = len(summary.lines), max_bytes
    summary.lines.append(Line(_TITLE, kind=HEADING, up=-1, scope=-1, extra=1))
    for group in groups:
        wishes = [wish for wish in dict.fromkeys(group.wishes) if wish not in told]
        kept: list[Line] = []
        left = min(room, max_bytes_of_project)
        scope = len(summary.labels)
        for wish in wishes:
            line = Line(f"- {_bare(wish, group.title)}", kind=ITEM, up=up, scope=scope, extra=1)
            if line.size > left:
                break
            left, room = left - line.size, room - line.size
            kept.append(line)
        if kept:
            kept[-1].extra += len(wishes) - len(kept)
            summary.labels.append(Label(text=group.title.casefold(), paths=group.folders, kind="section"))
            summary.lines += kept


class _Told:
    """What the summary says of wishes, as it begins there."""

    def __init__(self, items: Iterable[str]) -> None:
        begun = (_LEAVES.split(item.lstrip("-*+ "), maxsplit=1)[0].strip() for item in items)
        self.begun = tuple(each for each in begun if len(each) >= _LEAST_CHARS)

    def __contains__(self, wish: str) -> bool:
        return wish.startswith(self.begun)


def _bare(wish: str, title: str) -> str:
    """The wish without what follows from it, where that says nothing more: that it holds here, or the same words."""
    before, _, implied = wish.rpartition(f" -> default in {title}")
    return before if before and implied.lstrip(": ").casefold() in before.casefold() else wish


def _wishes(rows: Iterable[str]) -> Iterable[str]:
    inside = False
    wish = ""
    for row in (*rows, "#"):
        if wish and not (row.startswith("  ") and row.strip()):
            yield _TASKS.sub("", wish)
            wish = ""
        if row.startswith("#"):
            inside = row.strip().casefold() == _WISHES
        elif inside and row.startswith("- "):
            wish = row[2:].strip()
        elif wish:
            wish += f" {row.strip()}"


__all__ = ["Group", "add_wishes", "cleaned", "name_folders", "read_groups"]
