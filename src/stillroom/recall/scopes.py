"""Which known projects the labels of a summary mean."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from stillroom.recall.remotes import repository_name, without_git_suffix
from stillroom.recall.repository import Repository, same_project
from stillroom.recall.summary import Summary


@dataclass(frozen=True, slots=True)
class KnownFolder:
    """A folder in which a session ran, and the project that it belonged to then."""

    cwd: str
    repository: Repository


@dataclass(frozen=True, slots=True)
class Scope:
    """For whom a line is. Without known projects, a session's own names and folder decide."""

    known: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


@dataclass(slots=True)
class Scopes:
    """What the labels mean."""

    #: One for each label; None: the words mean no project, the line is for every session.
    scopes: list[Scope | None] = field(default_factory=list)
    #: The projects that scopes name by their place in this list.
    repositories: list[Repository] = field(default_factory=list)


def resolve(summary: Summary, folders: Sequence[KnownFolder]) -> Scopes:
    """Find the projects. Folders decide; then the title of a section that has folders; then an unmistakable name."""
    directory = _Directory(folders)
    by_path = [directory.at(label.paths) for label in summary.labels]
    titles: dict[str, set[int]] = {}
    for number in summary.index:
        if by_path[number] and summary.labels[number].names:
            titles.setdefault(summary.labels[number].names[0], set()).update(by_path[number])
    result = Scopes(repositories=directory.repositories)
    for label, found in zip(summary.labels, by_path, strict=True):
        known = found
        if not known:
            known = titles.get(label.names[0], set()) if label.names else set()
        if not known:
            for name in label.names:
                known = known | (titles.get(name) or directory.named(name))
        if not known and not label.certain and not label.paths:
            result.scopes.append(None)
            continue
        paths = tuple(_real(path) for path in label.paths)
        result.scopes.append(Scope(tuple(sorted(known)), () if known else label.names, () if known else paths))
    return result


class _Directory:
    """The known folders, by path and by name."""

    def __init__(self, folders: Sequence[KnownFolder]) -> None:
        self.repositories: list[Repository] = []
        numbers: dict[Repository, int] = {}
        self.paths: dict[str, int] = {}
        self.names: dict[str, set[int]] = {}
        for folder in folders:
            repository = folder.repository
            if repository not in numbers:
                numbers[repository] = len(self.repositories)
                self.repositories.append(repository)
            number = numbers[repository]
            self.paths[folder.cwd.rstrip("/")] = number
            if repository.folder:
                self.paths.setdefault(repository.folder, number)
            names = {os.path.basename(path.rstrip("/")) for path in (folder.cwd, repository.folder)}
            names |= {os.path.basename(without_git_suffix(repository.place)), repository_name(repository.remote)}
            names |= {repository.remote or "", folder.cwd.rstrip("/")}
            for name in names - {""}:
                self.names.setdefault(name.casefold(), set()).add(number)

    def at(self, paths: Sequence[str]) -> set[int]:
        """The projects that these folders are, or are in."""
        found = set()
        for path in paths:
            folder = _real(path)
            exact = True
            while folder not in ("", "/"):
                number = self.paths.get(folder)
                if number is not None and (exact or self.repositories[number].is_git):
                    found.add(number)
                    break
                folder, exact = folder.rpartition("/")[0], False
        return found

    def named(self, name: str) -> set[int]:
        """The one project of this name; none if several have it."""
        found = self.names.get(name, set())
        numbers = iter(found)
        first = next(numbers, None)
        if first is None or not all(same_project(self.repositories[first], self.repositories[n]) for n in numbers):
            return set()
        return found


def _real(path: str) -> str:
    """The path without `~`, with links followed as `identify` does; of a folder that is gone, as it was written."""
    return os.path.realpath(os.path.expanduser(path)).rstrip("/")
