"""Reads `MEMORY.md` (spec §1.15): the task groups, each with its folders and its statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from stillroom.recall.injection.labels import Label, means_everywhere, names_in, of_applies_to
from stillroom.recall.injection.prepared import HANDBOOK
from stillroom.recall.injection.statements import COMMANDS, FAILURES, INDEX, KNOWLEDGE, PREFERENCES, Statement
from stillroom.recall.injection.summary import Summary

_GROUP = "# Task Group:"
_END = "# "
_APPLIES_TO = re.compile(r"applies_to:\s*(?:cwd=)?")
_TASK = re.compile(r"#{2,4} (Task \d{1,6}\b.*)")
_HEADING = re.compile(r"(#{1,6}) +(\S.*)")
_FENCE = re.compile(r"\s*(```|~~~)")
_REFERENCES = re.compile(r"(?:\s*\[Task \d{1,6}\])+\s*\Z")
_THREAD = re.compile(r"\bthread_id=([\w-]{1,80})")
_COMMAND = re.compile(r"- `[^`]+` works here\b")
_TITLES = {
    "user preferences": (PREFERENCES, "User preferences"),
    "reusable knowledge": (KNOWLEDGE, "Reusable knowledge"),
    "failures and how to do differently": (FAILURES, "Failures and how to do differently"),
}
_COMMENT = re.compile(r"^<!--.*?-->[ \t]*$", re.DOTALL | re.MULTILINE)
_LISTS = frozenset({"rollout_summary_files", "keywords", "extension_resource_files"})
_MOST_KEYWORDS = 8


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A task group."""

    title: str
    #: None are named where it says that it applies to every project.
    folders: tuple[str, ...]
    statements: list[Statement]

    @property
    def label(self) -> Label:
        """For which projects it is; the empty one: for all."""
        return Label(text=self.title.casefold(), paths=self.folders, kind="section") if self.folders else Label()

    @property
    def preferences(self) -> Iterator[str]:
        """What the user prefers there, without the bullet and on one line each."""
        for statement in self.statements:
            if statement.kind == PREFERENCES:
                yield " ".join(_REFERENCES.sub("", statement.text).split()).removeprefix("- ")


def read_groups(text: str) -> list[Group]:
    """The task groups that say for which folders they are, or that they are for all, in their order."""
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)  # nothing that a session needs
    found: list[Group] = []
    reading: _Reading | None = None
    for number, row in enumerate([*text.split("\n"), _END], 1):
        if row.startswith(_GROUP) or row == _END or (row.startswith("# ") and not (reading and reading.fence)):
            if reading is not None and (group := reading.done()):
                found.append(group)
            title = row.removeprefix(_GROUP).strip()
            reading = _Reading(title, len(found) + 1) if row.startswith(_GROUP) else None
        elif reading is not None:
            reading.take(row.rstrip(), number)
    return found


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


class _Task:
    """One entry of the index, as it is read."""

    def __init__(self, name: str, first: int) -> None:
        self.name = name
        self.first = self.last = first
        self.threads: dict[str, None] = {}
        self.keywords: list[str] = []


class _Reading:
    """Reads one group, row by row."""

    def __init__(self, title: str, number: int) -> None:
        self.title = title
        self.number = number
        self.folders: tuple[str, ...] = ()
        self.is_for_all = False
        self.statements: list[Statement] = []
        self.tasks: list[_Task] = []
        self.task: _Task | None = None
        self.list_of: str = ""
        self.kind, self.heading = KNOWLEDGE, "Reusable knowledge"
        self.is_open = False  # the next row may go on with the last statement
        self.fence = ""

    def take(self, row: str, number: int) -> None:
        fence = _FENCE.match(row)
        if self.fence or fence:
            self.fence = ("" if fence and fence[1] == self.fence else self.fence) if self.fence else fence[1]  # type: ignore[index]
            self.add(row, number, goes_on=self.is_open)
        elif heading := _HEADING.fullmatch(row):
            self.take_heading(row, heading[2].strip(), number)
        elif not row:
            self.is_open = False
        elif self.task is not None:
            self.take_of_task(row, number)
        elif row.startswith("applies_to:"):
            self.folders = self.folders or of_applies_to(row)
            self.is_for_all = means_everywhere(_APPLIES_TO.sub("", row).partition(";")[0].strip(" *`."))
        elif not row.startswith("scope:"):
            starts = row.startswith(("- ", "* ", "+ ")) or not (self.is_open or row.startswith("  "))
            self.add(row, number, goes_on=not starts and bool(self.statements))

    def take_heading(self, row: str, title: str, number: int) -> None:
        self.is_open, self.list_of = False, ""
        name = title.casefold().rstrip(":")
        if task := _TASK.fullmatch(row):
            self.task = _Task(task[1].strip(), number)
            self.tasks.append(self.task)
        elif name in _LISTS:
            self.list_of = name
        else:
            self.task = None
            self.kind, self.heading = _TITLES.get(name, (KNOWLEDGE, title))

    def take_of_task(self, row: str, number: int) -> None:
        """Which sessions a task was worked on in, and its keywords; whatever else stands there is knowledge."""
        assert self.task is not None
        self.task.last = number
        if self.list_of == "keywords":
            self.task.keywords += [word.strip() for word in row.removeprefix("- ").split(",")]
        elif self.list_of:
            self.task.threads.update(dict.fromkeys(_THREAD.findall(row)))
        else:
            self.kind, self.heading = KNOWLEDGE, "Reusable knowledge"
            self.add(row, number, goes_on=self.is_open and row.startswith("  "))

    def add(self, row: str, number: int, *, goes_on: bool) -> None:
        self.is_open = True
        if goes_on and self.statements:
            self.statements[-1].text += f"\n{row}"
            self.statements[-1].last = number
            return
        kind, heading = self.kind, self.heading
        if kind == KNOWLEDGE and _COMMAND.match(row):
            kind, heading = COMMANDS, "Commands that work"
        self.statements.append(self.statement(row, kind, heading, number, number))

    def done(self) -> Group | None:
        if not (self.folders or self.is_for_all):
            return None
        if len(self.tasks) < 2:  # then all of it is of that task
            for statement in self.statements:
                statement.text = _REFERENCES.sub("", statement.text)
        entries = [self.statement(_entry(task), INDEX, "Tasks", task.first, task.last) for task in self.tasks]
        return Group(title=self.title, folders=self.folders, statements=[*self.statements, *entries])

    def statement(self, text: str, kind: int, title: str, first: int, last: int) -> Statement:
        return Statement(text, kind=kind, title=title, file=HANDBOOK, first=first, last=last, group=self.number)


def _entry(task: _Task) -> str:
    """A task in one line: what it was, where it stands, what it is found by."""
    threads = ", ".join(list(task.threads)[:2])
    of = f"; thread_id {threads}" if threads else ""
    words = ", ".join(task.keywords[:_MOST_KEYWORDS])
    return f"- {task.name} [{task.first}-{task.last}{of}]{f': {words}' if words else ''}"


__all__ = ["Group", "name_folders", "read_groups"]
