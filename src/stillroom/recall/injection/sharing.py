"""Proposes what of a project's memory could stand in its AGENTS.md: a patch to look at, and nothing more."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from stillroom.config import Settings
from stillroom.errors import InvalidRequest, Unreadable, WorkspaceError
from stillroom.recall.injection.handbook import read_groups
from stillroom.recall.injection.labels import Label
from stillroom.recall.injection.preparing import folders_if_any, read_handbook
from stillroom.recall.injection.scopes import resolve
from stillroom.recall.injection.summary import harmless
from stillroom.recall.projects.declared import FILE as PROJECTS
from stillroom.recall.projects.declared import load_declared
from stillroom.recall.projects.repository import identify
from stillroom.rollouts.redact import redact

#: The files of a project in which agents look for rules, the first that is there.
FILES = ("AGENTS.md", "CLAUDE.md")
HEADING = "## Learnt in earlier sessions"
#: A wish in the words of the rules that found it. What was decided or agreed to belongs into code, not into rules.
_QUOTED = re.compile(
    r'.*?the user (?:asked|corrected|said): "(.+?)"(?= \((?:now|they|having|said|supersedes|replaces)\b| -> |$)'
)
_OF_THE_MOMENT = re.compile(r"the user (?:decided|agreed)\b")
_FOLLOWS = re.compile(r" -> (?:default|do so from the start)\b.*| \((?:said in|supersedes:|replaces:)[^()]*\)\Z")
#: A file of rules that is larger is none.
_MAX_FILE_BYTES = 1024 * 1024


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What could be added to a file."""

    #: Relative to `folder`, which is the top of the project.
    file: str
    folder: str
    #: In the user's words, without those that the file has.
    rules: tuple[str, ...]
    #: A unified diff for `git apply` in `folder`; "" where there is nothing to add.
    patch: str


def propose(settings: Settings, cwd: Path, *, file: str | None = None) -> Proposal:
    """The wishes of this folder's project that its file of rules does not have.

    Raises `WorkspaceError` where it can't be known whose a wish is, `InvalidRequest` for a file elsewhere, and
    `Unreadable` for one that is no text.
    """
    if file is not None and Path(file).is_absolute():
        raise InvalidRequest(f"`{file}` is not in the project", hint="name it from the top of the project")
    declared = load_declared(str(settings.home))
    if declared.unreadable:
        raise WorkspaceError(f"`{settings.home / PROJECTS}` can't be read, so nobody knows whose a line is")
    session = declared.project_of(str(cwd.absolute()), identify(cwd))
    top = Path(session.part or session.folder)
    name = file or next((each for each in FILES if (top / each).exists()), FILES[0])
    style = settings.memories.redaction
    handbook = harmless(redact(read_handbook(settings), style=style))
    groups = [group for group in read_groups(handbook) if group.folders]
    labels = [Label(text=group.title.casefold(), paths=group.folders) for group in groups]
    found = resolve(labels, (), folders_if_any(settings))
    mine = declared.same(session, found.repositories)
    wishes = (
        wish
        for group, scope in zip(groups, found.scopes, strict=True)
        if (scope and mine.intersection(scope.known)) or session.folder in group.folders
        for wish in group.preferences
    )
    before = _read(top / name)
    rules = tuple(_new(wishes, before or ""))
    after = _with(before or "", rules) if rules else before
    return Proposal(file=name, folder=str(top), rules=rules, patch=_patch(name, before, after or ""))


def _new(wishes: Iterable[str], text: str) -> Iterator[str]:
    """Each wish once, as a rule, unless the text says it."""
    said = _folded(text)
    for wish in wishes:
        if _OF_THE_MOMENT.search(wish):
            continue
        quoted = _QUOTED.match(wish)
        rule = quoted[1] if quoted else _FOLLOWS.sub("", wish)
        if (folded := _folded(rule)) and folded not in said:
            said += f"\n{folded}"
            yield rule


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(".!")


def _with(text: str, rules: Iterable[str]) -> str:
    """Under our heading, where it is there; else that at the end."""
    end = "\r\n" if "\r\n" in text else "\n"
    rows = text.splitlines(keepends=True)
    added = [f"- {rule}{end}" for rule in rules]
    at = next((number for number, row in enumerate(rows) if row.strip() == HEADING), None)
    if at is None:
        if rows and not rows[-1].endswith("\n"):
            rows[-1] += end
        return "".join([*rows, *([end] if rows else []), f"{HEADING}{end}", end, *added])
    last = at
    for number in range(at + 1, len(rows)):
        if rows[number].startswith("#"):
            break
        last = number if rows[number].strip() else last
    if not rows[last].endswith("\n"):
        rows[last] += end
    gap = [end] if last == at else []
    return "".join([*rows[: last + 1], *gap, *added, *rows[last + 1 :]])


def _patch(name: str, before: str | None, after: str) -> str:
    rows = difflib.unified_diff(
        (before or "").splitlines(keepends=True),
        after.splitlines(keepends=True),
        "/dev/null" if before is None else f"a/{name}",
        f"b/{name}",
    )
    return "".join(row if row.endswith("\n") else f"{row}\n\\ No newline at end of file\n" for row in rows)


def _read(path: Path) -> str | None:
    """The file of rules; None if there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
        if len(data) > _MAX_FILE_BYTES:
            raise Unreadable(f"`{path}` is larger than {_MAX_FILE_BYTES:,} bytes")
        return data.decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise Unreadable(f"`{path}` is not UTF-8") from error


__all__ = ["Proposal", "propose"]
