"""Which known projects the labels of a summary mean."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

import msgspec

from stillroom.recall.injection.labels import Label, means_everywhere, names_in
from stillroom.recall.projects.remotes import repository_name, without_git_suffix
from stillroom.recall.projects.repository import Repository, same_project


class KnownFolder(msgspec.Struct, frozen=True):
    """A folder in which a session ran, and the project that it belonged to then."""

    cwd: str
    repository: Repository
    #: Whether something is remembered of a session there.
    has_memory: bool = True


class Scope(msgspec.Struct, frozen=True):
    """For whom a line is. Without known projects, a session's own names and folder decide."""

    known: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


class Scopes(msgspec.Struct):
    """What the labels mean."""

    #: One for each label; None: the words mean no project, the line is for every session.
    scopes: list[Scope | None] = []
    #: The projects that scopes name by their place in this list.
    repositories: list[Repository] = []


def resolve(labels: Sequence[Label], index: Collection[int], folders: Sequence[KnownFolder]) -> Scopes:
    """Find the projects. Folders decide; then the title of a section that has folders; then an unmistakable name.
    `index` are the labels of sections of the index.

    A name that several projects have is nobody's: better that a session misses a line than that it is told another's.
    """
    directory = _Directory(folders)
    by_path = [directory.at(label.paths) for label in labels]
    titles: dict[str, set[int]] = {}
    for number in index:
        titles.setdefault(labels[number].text, set()).update(by_path[number])
    found = [_scope(label, known, titles, directory) for label, known in zip(labels, by_path, strict=True)]
    # Only the projects that the labels speak of are looked for at a session's start.
    used = sorted({number for scope in found if scope for number in scope.known})
    places = {number: place for place, number in enumerate(used)}
    return Scopes(
        scopes=[
            scope and msgspec.structs.replace(scope, known=tuple(places[number] for number in scope.known))
            for scope in found
        ],
        repositories=[directory.repositories[number] for number in used],
    )


def _scope(label: Label, known: set[int], titles: dict[str, set[int]], directory: _Directory) -> Scope | None:
    names = names_in(label.text)
    is_taken = False
    for number, name in enumerate(names):
        if known and number <= 1:
            break  # by folder, or by the label as a whole
        called = titles.get(name) or directory.named(name)
        is_taken |= called is not None
        known = known | (called or set())
    if known:
        return Scope(known=tuple(sorted(known)))
    if is_taken:
        return Scope()
    if label.paths:
        return Scope(paths=tuple(_real(path) for path in label.paths))
    if means_everywhere(label.text):
        return None
    if label.kind == "section" or (label.kind == "suffix" and not directory.repositories):
        return Scope(names=tuple(names))
    return None  # "… (in English)": no project was ever called so


class _Directory:
    """The known folders, by path and by name."""

    def __init__(self, folders: Sequence[KnownFolder]) -> None:
        self.repositories: list[Repository] = []
        numbers: dict[Repository, int] = {}
        self.paths: dict[str, int] = {}
        self.names: dict[str, set[int]] = {}
        self.remembered: set[int] = set()
        for folder in folders:
            repository = folder.repository
            if repository not in numbers:
                numbers[repository] = len(self.repositories)
                self.repositories.append(repository)
            number = numbers[repository]
            self.remembered |= {number} if folder.has_memory else set()
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

    def named(self, name: str) -> set[int] | None:
        """The one project of this name, empty if several have it; None if none has. `shop (KEY)` is the one with it."""
        bare, _, key = name.partition(" (")
        for called in (name, key.removesuffix(")"), bare):
            for with_memory in (True, False):
                found = {n for n in self.names.get(called.strip(), ()) if (n in self.remembered) is with_memory}
                if found:
                    first = self.repositories[min(found)]
                    return found if all(same_project(first, self.repositories[n]) for n in found) else set()
        return None


def _real(path: str) -> str:
    """The path without `~`, with links followed as `identify` does; of a folder that is gone, as it was written."""
    if not path.startswith(("/", "~")):  # of Windows
        return path.rstrip("/")
    return os.path.realpath(os.path.expanduser(path)).rstrip("/")
