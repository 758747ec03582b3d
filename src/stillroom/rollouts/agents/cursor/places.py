"""Where a Cursor session worked: the folder of a project is named after its path, which can't be read back from it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import text_of
from stillroom.rollouts.agents.ends import read_description

# How many folders may be looked into for the one whose path has the name.
_MAX_FOLDERS = 64
_NOT_KEPT = re.compile(r"[^a-zA-Z0-9]+")


class Chat(msgspec.Struct, rename="camel"):
    """What the command line's client stores of a chat."""

    cwd: Any = None
    title: Any = None
    created_at_ms: Any = None
    is_subagent: Any = None


class _Trusted(msgspec.Struct, rename="camel"):
    workspace_path: Any = None


def chat_of(project: Path, session: str) -> Chat:
    """The description of a chat, if it was one of the command line's."""
    found = next(iter(project.parent.parent.glob(f"chats/*/{session}/meta.json")), None)
    return read_description(found, Chat) if found is not None else Chat()


def folder_of(project: Path, *, top: Path = Path("/")) -> str:
    """The path that a project's folder is named after: as its user trusted it, else the only one here that fits."""
    trusted = text_of(read_description(project / ".workspace-trusted", _Trusted).workspace_path)
    return trusted or _only_fitting(project.name, top)


def _only_fitting(name: str, top: Path) -> str:
    fitting: list[Path] = []
    open_folders = [(top, name)]
    for _ in range(_MAX_FOLDERS):
        if not open_folders:
            break
        folder, rest = open_folders.pop()
        for inner in _folders(folder):
            part = _NOT_KEPT.sub("-", inner).strip("-")
            if part and rest == part:
                fitting.append(folder / inner)
            elif part and rest.startswith(f"{part}-"):
                open_folders.append((folder / inner, rest[len(part) + 1 :]))
    return str(fitting[0]) if len(fitting) == 1 and not open_folders else ""


def _folders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []
