"""Which project a folder belongs to, read from the files under `.git`: no git process, no import but `os`.

Worktrees, sub-folders, clones and renamed folders are one project. A submodule is its own, and so is a folder without
git: nothing says where such a project ends, and a session in the home directory would claim everything below it. For
the same reason a repository whose top is the home directory (dotfiles) is not the project of the folders below.
"""

from __future__ import annotations

import os

from stillroom.recall.projects.objects import holds_commit
from stillroom.recall.projects.remotes import remote_of, repository_name, without_git_suffix
from stillroom.system import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: `.git` files and `commondir` hold one path.
_POINTER_BYTES = 8192


class Repository:
    """What tells one project from another. Two that differ in everything may still be the same: see `same_project`."""

    __slots__ = ("first_commit", "folder", "is_git", "part", "place", "remote")

    def __init__(
        self,
        *,
        place: str,
        folder: str,
        is_git: bool = True,
        remote: str | None = None,
        first_commit: str | None = None,
        part: str = "",
    ) -> None:
        #: Git's common directory, which all worktrees share; without git the folder. "" if the folder was never seen.
        self.place = place
        #: The top of the work tree; without git the folder itself.
        self.folder = folder
        self.is_git = is_git
        #: Normalised; see `remotes`.
        self.remote = remote
        #: Object id of the oldest root commit; None while no pass has asked git.
        self.first_commit = first_commit
        #: The folder in it that a person set apart, where the project is that; else "".
        self.part = part

    def apart(self, part: str) -> Repository:
        """This part of it; of "" the whole."""
        return from_entry([*self.entry()[:-1], part])

    def entry(self) -> list[object]:
        """As JSON holds it."""
        return [self.place, self.folder, self.is_git, self.remote, self.first_commit, self.part]

    def _values(self) -> tuple[object, ...]:
        return tuple(self.entry())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Repository) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return f"Repository{self._values()}"


def from_entry(entry: list[object]) -> Repository:
    """The opposite of `Repository.entry`, of older releases too. Raises `TypeError` or `ValueError`."""
    place, folder, is_git, remote, first_commit, *rest = entry
    part = rest[0] if rest else ""
    if not isinstance(place, str) or not isinstance(folder, str) or not isinstance(part, str):
        raise TypeError("a project has a folder")
    return Repository(
        place=place,
        folder=folder,
        is_git=is_git is True,
        remote=remote if isinstance(remote, str) else None,
        first_commit=first_commit if isinstance(first_commit, str) else None,
        part=part,
    )


def identify(cwd: str | os.PathLike[str]) -> Repository:
    """The project of a folder. One that is gone belongs to whatever its nearest ancestor belongs to.

    A folder of another machine is a project of its own, not one below the folder that this process runs in.
    """
    if "\0" in (text := os.fspath(cwd)):  # no folder, but a session file may say so
        return Repository(place="", folder="", is_git=False)
    if text.startswith(("~", "\\\\")) or text[1:3] in (":/", ":\\"):
        return Repository(place="", folder=text, is_git=False)
    here = os.path.realpath(text)
    home = os.path.realpath(os.path.expanduser("~"))
    for folder in _upwards(here):
        if folder == home != here:
            break
        if common := _common_directory(folder):
            return Repository(place=common, folder=folder, remote=remote_of(common, top=folder))
    return Repository(place=here, folder=here, is_git=False)


def same_project(one: Repository, other: Repository) -> bool:
    """Whether both are checkouts of one project.

    An equal first commit does it, unless both have a remote and these have different names: a fork keeps its name, a
    product that began as a copy of a template has another one.
    """
    if one.part != other.part:
        return False
    if (one.place and one.place == other.place) or (one.folder and one.folder == other.folder):
        return True
    if not (one.is_git and other.is_git):
        return False
    if one.remote and (one.remote == other.remote or one.remote == _as_remote(other)):
        return True
    if other.remote and other.remote == _as_remote(one):
        return True
    return bool(one.first_commit) and one.first_commit == other.first_commit and not _named_apart(one, other)


def find_same(session: Repository, known: Sequence[Repository]) -> set[int]:
    """Which of the known ones are the session's project.

    A repository that no pass has seen yet has no known first commit. Then it counts whether a known first commit is
    among its objects: that needs a few reads and no git.
    """
    here = [repository for repository in known if repository.place == session.place and repository.first_commit]
    if here and session.first_commit is None:
        session = Repository(
            place=session.place,
            folder=session.folder,
            is_git=session.is_git,
            remote=session.remote,
            first_commit=here[0].first_commit,
            part=session.part,
        )
    found = {number for number, repository in enumerate(known) if same_project(session, repository)}
    if session.is_git and session.first_commit is None:
        held: dict[str, bool] = {}
        for number, repository in enumerate(known):
            commit = repository.first_commit
            apart = repository.part != session.part or _named_apart(session, repository)
            if commit and number not in found and not apart:
                if commit not in held:
                    held[commit] = holds_commit(session.place, commit)
                if held[commit]:
                    found.add(number)
    return found


def _named_apart(one: Repository, other: Repository) -> bool:
    names = repository_name(one.remote), repository_name(other.remote)
    return all(names) and names[0] != names[1]


def _as_remote(repository: Repository) -> str | None:
    """What a clone of this very checkout calls its remote."""
    return f"file:{without_git_suffix(repository.place)}" if repository.place else None


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def _common_directory(folder: str) -> str | None:
    """The common directory of the repository whose top `folder` is, or which it is itself (a bare one)."""
    dot = f"{folder}/.git"
    if _is_git_directory(dot):
        directory = dot
    elif pointer := _pointer(dot):
        if not pointer.startswith("gitdir:"):
            return None
        directory = os.path.join(folder, pointer[7:].strip())
        if not _is_git_directory(directory):
            return None
    elif _is_git_directory(folder) and os.path.isdir(f"{folder}/refs"):
        directory = folder
    else:
        return None
    if common := _pointer(f"{directory}/commondir"):
        directory = os.path.join(directory, common)
    return os.path.realpath(directory)


def _is_git_directory(path: str) -> bool:
    exists = os.path.exists
    return exists(f"{path}/HEAD") and (exists(f"{path}/objects") or exists(f"{path}/commondir"))


def _pointer(path: str) -> str:
    """The one line of a file, or "" when it is none."""
    try:
        descriptor = os.open(path, READ)
    except OSError:
        return ""
    try:
        text = os.fsdecode(os.read(descriptor, _POINTER_BYTES)).strip()
        return "" if "\0" in text else text
    except OSError:  # a folder
        return ""
    finally:
        os.close(descriptor)
