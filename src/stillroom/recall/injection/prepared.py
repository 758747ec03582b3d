"""What sessions can be given, read, redacted and sorted by project ahead, in `recall.json`. Imports nothing.

A copy holds for as long as the files and settings that it was made from stay as they were. Its first line says so; each
line below it has the statements of one scope, so that a session's start decodes only those of its own project.
"""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISREG

from stillroom import __version__
from stillroom.recall.injection.quick_json import loads
from stillroom.recall.injection.statements import Statement
from stillroom.recall.projects.repository import from_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from stillroom.recall.projects.repository import Repository

FILE = "recall.json"
SUMMARY = "memory_summary.md"
HANDBOOK = "MEMORY.md"
NOTES = "extensions/ad_hoc/notes"
_FORMAT = 7
#: The first row of a summary, and what a consolidation writes where there is nothing to say.
VERSION = "v1"
PLACEHOLDERS = frozenset({"- none yet", "- none known yet", "Nothing is known of the user yet."})
#: So many notes are looked at for whether one has changed: a hundredth of a second.
_MOST_NOTES = 4000
_STAMPS = ("config", "projects", "summary", "handbook", "notes")

Stamp = list[int] | None
"""How a file looks: size, time, inode, device. None: it is not there."""

DAMAGED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What comes of a copy that is not one."""


class Prepared:
    """A prepared copy."""

    __slots__ = (
        "folders",
        "is_off",
        "made_by",
        "nothing",
        "others_too",
        "parts",
        "root",
        "scopes",
        "stamps",
        "tokens",
    )

    def __init__(
        self,
        *,
        root: str,
        stamps: dict[str, Stamp],
        nothing: str | None = None,
        is_off: bool = False,
        tokens: int = 0,
        others_too: bool = False,
        scopes: list[tuple[list[int], list[str], list[str]]] | None = None,
        folders: list[Repository] | None = None,
        parts: Sequence[list[Statement] | bytes] | None = None,
        made_by: str = __version__,
    ) -> None:
        self.root = root
        #: Of `config.toml`, of what was said of projects, of the summary, the handbook and the notes.
        self.stamps = stamps
        #: Why a session is given nothing.
        self.nothing = nothing
        #: By the settings, whatever the folder holds.
        self.is_off = is_off
        #: `summary_token_limit`, and whether `scope` is `all`.
        self.tokens = tokens
        self.others_too = others_too
        #: The projects by number, or the names and folders that a scope goes by.
        self.scopes = scopes or []
        self.folders = folders or []
        #: The statements for every project, then those of each scope: decoded, or as they stand in the file.
        self.parts: Sequence[list[Statement] | bytes] = parts or [[]]
        self.made_by = made_by

    def part(self, scope: int) -> list[Statement]:
        """The statements of a scope; -1: those for every project. Raises one of `DAMAGED`."""
        found = self.parts[scope + 1]
        if isinstance(found, list):
            return found
        return [
            Statement(text, kind=kind, title=title, file=file, first=first, last=last, group=group, mark=mark)
            for kind, title, file, first, last, group, text, mark in loads(found)
        ]


def stamp_of(path: str) -> Stamp:
    """How the file looks; of a link, how the link does."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return stamp_from(status)


def stamp_from(status: os.stat_result) -> Stamp:
    """The same of a status."""
    return [status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev]


def notes_stamp(root: str) -> Stamp:
    """How all notes together look: their number, sizes and times."""
    number = size = time = 0
    try:
        if not S_ISDIR(os.lstat(f"{root}/{NOTES}").st_mode):
            return None
        with os.scandir(f"{root}/{NOTES}") as entries:
            for entry in entries:
                if number >= _MOST_NOTES:
                    break
                if is_note(entry.name):
                    status = entry.stat(follow_symlinks=False)
                    if S_ISREG(status.st_mode):
                        number, size, time = number + 1, size + status.st_size, time + status.st_mtime_ns
    except OSError:
        return None
    return [number, size, time] if number else None


def is_note(name: str) -> bool:
    """Whether a file of this name in the folder of notes is one."""
    return name.endswith(".md") and not name.startswith(".")


def stamps_of(home: str, root: str, projects: str) -> dict[str, Stamp]:
    """How everything looks now that a copy is made from. `projects` is the file in which projects are declared."""
    return {
        "config": stamp_of(f"{home}/config.toml"),
        "projects": stamp_of(f"{home}/{projects}"),
        "summary": stamp_of(f"{root}/{SUMMARY}"),
        "handbook": stamp_of(f"{root}/{HANDBOOK}"),
        "notes": notes_stamp(root),
    }


def load(home: str) -> Prepared | None:
    """The prepared copy; None when there is none, or it is damaged or of another version."""
    try:
        with open(f"{home}/{FILE}", "rb") as file:
            head, *parts = file.read().rstrip(b"\n").split(b"\n")
        return decode(loads(head), parts)
    except (OSError, *DAMAGED):
        return None


def decode(data: Mapping[str, Any], parts: list[bytes]) -> Prepared | None:
    """The opposite of `encode`. Raises one of `DAMAGED`."""
    if data["format"] != _FORMAT or data["made_by"] != __version__:
        return None
    if len(parts) != len(data["scopes"]) + 1 or set(data["stamps"]) != set(_STAMPS):
        return None
    return Prepared(
        root=data["root"],
        stamps=data["stamps"],
        nothing=data["nothing"],
        is_off=data["is_off"],
        tokens=data["tokens"],
        others_too=data["others_too"],
        scopes=data["scopes"],
        folders=[from_entry(entry) for entry in data["folders"]],
        parts=parts,
    )


def encode(prepared: Prepared) -> list[object]:
    """As JSON holds it: the first line, then one for each part."""
    head = {
        "format": _FORMAT,
        "made_by": prepared.made_by,
        "root": prepared.root,
        "stamps": prepared.stamps,
        "nothing": prepared.nothing,
        "is_off": prepared.is_off,
        "tokens": prepared.tokens,
        "others_too": prepared.others_too,
        "scopes": prepared.scopes,
        "folders": [project.entry() for project in prepared.folders],
    }
    parts = (prepared.part(scope) for scope in range(-1, len(prepared.scopes)))
    return [head, *([_entry(statement) for statement in part] for part in parts)]


def _entry(of: Statement) -> list[object]:
    return [of.kind, of.title, of.file, of.first, of.last, of.group, of.text, of.mark]


def save(home: str, prepared: Prepared) -> None:
    """Write it. Raises `OSError`."""
    import json
    from pathlib import Path

    from stillroom.private_file import write_private

    rows = (json.dumps(row, ensure_ascii=False) for row in encode(prepared))
    write_private(Path(home, FILE), "".join(f"{row}\n" for row in rows).encode("utf-8", "surrogatepass"))
