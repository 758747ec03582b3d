"""The projects whose memory a person switched off, in `memories-off.json` under the home.

A session there is told nothing and nothing of it is learnt. A repository is meant with all its worktrees and clones, a
folder without git with everything below it. Read at a session's start: nothing here costs a millisecond.
"""

from __future__ import annotations

import os

from stillroom.recall.injection.quick_json import loads
from stillroom.recall.projects.declared import Declared, load_declared
from stillroom.recall.projects.repository import Repository, from_entry, identify

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

    def covers(self, cwd: str, project: Repository, declared: Declared) -> bool:
        """Whether a folder, which is of this project, is switched off."""
        return self.unreadable or self.which(cwd, project, declared) is not None

    def which(self, cwd: str, project: Repository, declared: Declared) -> Repository | None:
        """The switched off project that a folder is of, or is in: the part that it is of, or the whole."""
        if not self.projects:
            return None
        for each in dict.fromkeys((project, project.apart(""))):
            if same := declared.same(each, self.projects):
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
    projects = [project.entry() for project in off.projects]
    write_private(Path(path), json.dumps({"format": _FORMAT, "projects": projects}, indent=1).encode("ascii"))


def is_switched_off(home: str, cwd: str) -> bool:
    """Whether the memory of the project that `cwd` is in is switched off."""
    off = load_switched_off(home)
    if not off:
        return False
    declared = load_declared(home)
    return declared.unreadable or off.covers(cwd, declared.project_of(cwd, identify(cwd)), declared)


def _project(entry: list[object]) -> Repository:
    project = from_entry(entry)
    if not project.folder:
        raise TypeError("a project has a folder")
    return project


__all__ = ["FILE", "SwitchedOff", "is_switched_off", "load_switched_off", "save_switched_off"]
