"""The projects whose memory a person switched off, in `memories-off.json` under the home.

A session there is told nothing and nothing of it is learnt. A repository is meant with all its worktrees and clones, a
folder without git with everything below it. Read at a session's start: nothing here costs a millisecond.
"""

from __future__ import annotations

import os

from stillroom.recall.projects.repository import Repository, find_same, identify
from stillroom.recall.telling.quick_json import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FILE = "memories-off.json"
_FORMAT = 1


class SwitchedOff:
    """Some projects, none to begin with."""

    __slots__ = ("projects", "unreadable")

    def __init__(self, projects: Sequence[Repository] = (), *, unreadable: bool = False) -> None:
        self.projects = list(projects)
        #: The file can't be understood: then every project counts as switched off, which loses nothing.
        self.unreadable = unreadable

    def __bool__(self) -> bool:
        return bool(self.projects) or self.unreadable

    def covers(self, cwd: str, project: Repository) -> bool:
        """Whether a folder, which is of this project, is switched off."""
        return self.unreadable or self.which(cwd, project) is not None

    def which(self, cwd: str, project: Repository) -> Repository | None:
        """The switched off project that a folder is of, or is in."""
        if not self.projects:
            return None
        if same := find_same(project, self.projects):
            return self.projects[min(same)]
        inside = {os.path.realpath(cwd), cwd.rstrip("/"), project.folder}
        for off in self.projects:
            if not off.is_git and any(path == off.folder or path.startswith(f"{off.folder}/") for path in inside):
                return off
        return None


def load_switched_off(home: str) -> SwitchedOff:
    """What is switched off."""
    try:
        with open(f"{home}/{FILE}", "rb") as file:
            data = loads(file.read())
        if data["format"] != _FORMAT:
            return SwitchedOff(unreadable=True)
        return SwitchedOff([_project(entry) for entry in data["projects"]])
    except FileNotFoundError:
        return SwitchedOff()
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return SwitchedOff(unreadable=True)


def save_switched_off(home: str, off: SwitchedOff) -> None:
    """Write it. Raises `OSError`."""
    import json
    from pathlib import Path

    from stillroom.private_file import write_private

    path = f"{home}/{FILE}"
    if not off.projects:
        if os.path.lexists(path):
            os.unlink(path)
        return
    os.makedirs(home, mode=0o700, exist_ok=True)
    projects = [[p.place, p.folder, p.is_git, p.remote, p.first_commit] for p in off.projects]
    write_private(Path(path), json.dumps({"format": _FORMAT, "projects": projects}, indent=1).encode("ascii"))


def is_switched_off(home: str, cwd: str) -> bool:
    """Whether the memory of the project that `cwd` is in is switched off."""
    off = load_switched_off(home)
    return bool(off) and off.covers(cwd, identify(cwd))


def _project(entry: list[object]) -> Repository:
    place, folder, is_git, remote, first_commit = entry
    if not isinstance(place, str) or not isinstance(folder, str) or not folder:
        raise TypeError("a project has a folder")
    return Repository(
        place=place,
        folder=folder,
        is_git=is_git is True,
        remote=remote if isinstance(remote, str) else None,
        first_commit=first_commit if isinstance(first_commit, str) else None,
    )


__all__ = ["FILE", "SwitchedOff", "is_switched_off", "load_switched_off", "save_switched_off"]
