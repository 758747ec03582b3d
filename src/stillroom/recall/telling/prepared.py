"""The summary, redacted and parsed ahead, in `recall.json`: what a session start reads. Imports nothing.

It holds for as long as the summary, the settings and Stillroom itself are those that it was made with.
"""

from __future__ import annotations

import os

from stillroom import __version__
from stillroom.recall.projects.repository import from_entry
from stillroom.recall.telling.packing import Line
from stillroom.recall.telling.quick_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from stillroom.recall.projects.repository import Repository

FILE = "recall.json"
SUMMARY = "memory_summary.md"
HANDBOOK = "MEMORY.md"
_FORMAT = 6
#: The first row of a summary, and what a consolidation writes where there is nothing to say.
VERSION = "v1"
PLACEHOLDERS = frozenset({"- none yet", "- none known yet", "Nothing is known of the user yet."})
#: The settings under `[memories]` that a copy rests on.
_CHOICES = ("enabled", "use_memories", "root", "redaction", "summary_token_limit", "scope")

Stamp = list[int] | None
"""How a file looks: size, time, inode, device. None: it is not there."""


class Prepared:
    """A prepared copy."""

    __slots__ = (
        "choices",
        "config",
        "folders",
        "handbook",
        "is_off",
        "is_partial",
        "lines",
        "made_by",
        "nothing",
        "others_too",
        "projects",
        "root",
        "scopes",
        "stamp",
        "tokens",
    )

    def __init__(
        self,
        *,
        root: str,
        stamp: Stamp,
        config: Stamp,
        projects: Stamp = None,
        handbook: Stamp = None,
        choices: dict[str, object] | None = None,
        nothing: str | None = None,
        is_off: bool = False,
        tokens: int = 0,
        others_too: bool = False,
        lines: list[Line] | None = None,
        scopes: list[tuple[list[int], list[str], list[str]]] | None = None,
        folders: list[Repository] | None = None,
        made_by: str = __version__,
        is_partial: bool = False,
    ) -> None:
        self.root = root
        #: Of the summary, of `config.toml`, of what was said of projects, and of the handbook, when they were read.
        self.stamp = stamp
        self.config = config
        self.projects = projects
        self.handbook = handbook
        #: What `config.toml` said of the settings that it rests on; None: it could not be read.
        self.choices = choices
        #: Why a session is told nothing.
        self.nothing = nothing
        #: By the settings, whatever the summary holds.
        self.is_off = is_off
        #: `summary_token_limit`, and whether `scope` is `all`.
        self.tokens = tokens
        self.others_too = others_too
        self.lines = lines or []
        #: For each scope of the lines: the projects by number, or the names and folders that it goes by.
        self.scopes = scopes or []
        self.folders = folders or []
        self.made_by = made_by
        #: Lines are missing, as the summary was edited since. Never saved.
        self.is_partial = is_partial


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


def choices(path: str) -> dict[str, object] | None:
    """What a `config.toml` says of the settings that a copy rests on; None when it can't be read."""
    import tomllib

    try:
        with open(path, "rb") as file:
            memories = tomllib.load(file).get("memories", {})
        chosen = {name: memories[name] for name in _CHOICES if name in memories}
        return chosen if all(isinstance(value, str | int) for value in chosen.values()) else None
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError):
        return None


def load(home: str) -> Prepared | None:
    """The prepared copy; None when there is none, or it is damaged or of another version."""
    try:
        with open(f"{home}/{FILE}", "rb") as file:
            return decode(loads(file.read()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def decode(data: Mapping[str, Any]) -> Prepared | None:
    """The opposite of `encode`. Raises the errors of a damaged mapping."""
    if data["format"] != _FORMAT or data["made_by"] != __version__:
        return None
    lines = [
        Line(text, kind=kind, up=up, scope=scope, note=note, paths=paths, extra=extra)
        for kind, up, scope, text, note, paths, extra in data["lines"]
    ]
    folders = [from_entry(entry) for entry in data["folders"]]
    others = {
        key: data[key]
        for key in (
            "root",
            "stamp",
            "config",
            "projects",
            "handbook",
            "choices",
            "nothing",
            "is_off",
            "tokens",
            "others_too",
            "scopes",
        )
    }
    return Prepared(**others, lines=lines, folders=folders)


def encode(prepared: Prepared) -> dict[str, object]:
    """As JSON holds it."""
    return {
        "format": _FORMAT,
        "made_by": prepared.made_by,
        "root": prepared.root,
        "stamp": prepared.stamp,
        "config": prepared.config,
        "projects": prepared.projects,
        "handbook": prepared.handbook,
        "choices": prepared.choices,
        "nothing": prepared.nothing,
        "is_off": prepared.is_off,
        "tokens": prepared.tokens,
        "others_too": prepared.others_too,
        "scopes": prepared.scopes,
        "folders": [project.entry() for project in prepared.folders],
        "lines": [
            [line.kind, line.up, line.scope, line.text, line.note, list(line.paths), line.extra]
            for line in prepared.lines
        ],
    }


def save(home: str, prepared: Prepared) -> None:
    """Write it. Raises `OSError`."""
    import json
    from pathlib import Path

    from stillroom.private_file import write_private

    data = json.dumps(encode(prepared), ensure_ascii=False).encode("utf-8", "surrogatepass")
    write_private(Path(home, FILE), data)
