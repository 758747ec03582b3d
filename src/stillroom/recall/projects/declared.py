"""What a person says of projects, in `projects.json` under the home: folders that are one, and folders that are apart.

Git and paths tell most projects; a person knows the rest: a folder without git that moved, repositories that share what
was learnt, the parts of a large one. Read at a session's start: nothing here costs a millisecond.
"""

from __future__ import annotations

import os

from stillroom.recall.injection.quick_json import loads
from stillroom.recall.projects.repository import Repository, find_same, from_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FILE = "projects.json"
_FORMAT = 1


class Declared:
    """What was said; nothing to begin with."""

    __slots__ = ("apart", "joined", "unreadable")

    def __init__(
        self, *, joined: Sequence[Sequence[Repository]] = (), apart: Sequence[str] = (), unreadable: bool = False
    ) -> None:
        #: Each of these is one project: a repository with all its checkouts, a folder without git with all below it.
        self.joined = [list(group) for group in joined]
        #: Each of these folders is a project of its own, with all below it.
        self.apart = list(apart)
        #: The file can't be understood: nobody knows whose a line is.
        self.unreadable = unreadable

    def __bool__(self) -> bool:
        return bool(self.joined or self.apart)

    def project_of(self, cwd: str, found: Repository) -> Repository:
        """The project of a folder of which git, or its path, says `found`."""
        here = {cwd.rstrip("/"), os.path.realpath(cwd)} if self.apart else ()
        parts = [folder for folder in self.apart if any(_is_in(path, folder) for path in here)]
        return found.apart(max(parts, key=len)) if parts else found

    def same(self, session: Repository, known: Sequence[Repository]) -> set[int]:
        """Which of the known ones are the session's project."""
        found = find_same(session, known)
        for group in self.joined:
            if is_of(session, group):
                found.update(number for number, project in enumerate(known) if is_of(project, group))
        return found


def load_declared(home: str) -> Declared:
    """What was said."""
    try:
        with open(f"{home}/{FILE}", "rb") as file:
            data = loads(file.read())
        if data["format"] != _FORMAT or not all(isinstance(folder, str) and folder for folder in data["apart"]):
            return Declared(unreadable=True)
        return Declared(joined=[[from_entry(e) for e in group] for group in data["joined"]], apart=data["apart"])
    except FileNotFoundError:
        return Declared()
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return Declared(unreadable=True)


def save_declared(home: str, declared: Declared) -> None:
    """Write it. Raises `OSError`."""
    import json
    from pathlib import Path

    from stillroom.private_file import write_private

    path = f"{home}/{FILE}"
    if not declared:
        if os.path.lexists(path):
            os.unlink(path)
        return
    os.makedirs(home, mode=0o700, exist_ok=True)
    joined = [[project.entry() for project in group] for group in declared.joined]
    data = {"format": _FORMAT, "joined": joined, "apart": declared.apart}
    write_private(Path(path), json.dumps(data, indent=1).encode("ascii"))


def is_of(project: Repository, group: Sequence[Repository]) -> bool:
    """Whether a project is one of those that a person joined, or lies below one that has no git."""
    if find_same(project, group):
        return True
    return any(not one.is_git and not project.part and _is_in(project.folder, one.folder) for one in group)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


__all__ = ["FILE", "Declared", "is_of", "load_declared", "save_declared"]
