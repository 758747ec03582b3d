"""Looks at every byte under Stillroom's home for what should be gone: names of files, logs, pages of databases and the
values on them, objects of git whether anything leads to them or not.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from stillroom.config import Settings
from stillroom.errors import HistoryError
from stillroom.recall.projects.declared import FILE as PROJECTS
from stillroom.recall.projects.switched_off import FILE as SWITCHED_OFF
from stillroom.store.cells import is_database, values_of
from stillroom.workspace.git import Repository
from stillroom.workspace.tree import shown

#: Read at a time; a line is looked at whole up to this length.
_CHUNK_BYTES = 1024 * 1024
_OBJECTS = "objects"


#: Files under the home in which a person says something of projects.
_OWN = ("config.toml", SWITCHED_OFF, PROJECTS)


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is still there, or could not be looked at."""

    place: str
    #: `said`: a person's own setting speaks of it.
    kind: Literal["name", "content", "unreadable", "said"]
    count: int = 1


def residue(settings: Settings, count_in: Callable[[bytes], int], *, with_own: bool = True) -> list[Left]:
    """What is left, by place. `count_in` says how often a text holds what should be gone.

    Without `with_own` what a person set or switched is told apart: a project may be named there because it is off.
    """
    own = () if with_own else {shown(str(settings.home / name)) for name in _OWN}
    names: Counter[str] = Counter()
    contents: Counter[str] = Counter()
    unreadable: list[str] = []
    for place in _places(settings):
        for path in _files(place, unreadable):
            told = shown(str(path))
            names[told] += count_in(os.fsencode(path.relative_to(place)))
            try:
                contents[told] += sum(map(count_in, _pieces(path)))
                if is_database(path):
                    contents[told] = max(contents[told], sum(map(count_in, values_of(path))))
            except (OSError, sqlite3.Error):
                unreadable.append(told)
        for git_dir in _repositories(place):
            try:
                contents[shown(str(git_dir))] += _count_objects(git_dir, count_in)
            except HistoryError:
                unreadable.append(shown(str(git_dir)))
    return [
        *(Left(place=place, kind="name", count=count) for place, count in sorted(names.items()) if count),
        *(
            Left(place=place, kind="said" if place in own else "content", count=count)
            for place, count in sorted(contents.items())
            if count
        ),
        *(Left(place=place, kind="unreadable") for place in sorted(unreadable)),
    ]


def _places(settings: Settings) -> list[Path]:
    """The home, and the memory folder where it is somewhere else."""
    return [settings.home] if settings.root.is_relative_to(settings.home) else [settings.home, settings.root]


def _files(place: Path, unreadable: list[str]) -> Iterator[Path]:
    """Every regular file, but git's objects: these are compressed, and read through git."""

    def refused(error: OSError) -> None:
        unreadable.append(shown(str(error.filename)))

    for folder, folders, files in os.walk(place, onerror=refused):
        here = Path(folder)
        if _is_repository(here):
            folders.remove(_OBJECTS)
        yield from (path for name in files if (path := here / name).is_file() and not path.is_symlink())


def _repositories(place: Path) -> Iterator[Path]:
    for folder, _, _ in os.walk(place):
        if _is_repository(Path(folder)):
            yield Path(folder)


def _is_repository(folder: Path) -> bool:
    return (folder / _OBJECTS).is_dir() and (folder / "HEAD").is_file()


def _count_objects(git_dir: Path, count_in: Callable[[bytes], int]) -> int:
    found = 0

    def visit(name: str, kind: str, data: bytes) -> None:
        nonlocal found
        found += count_in(data)

    Repository(git_dir).visit(visit)
    return found


def _pieces(path: Path) -> Iterator[bytes]:
    """The file in pieces that end where a line does, if a line ends at all."""
    with path.open("rb") as file:
        rest = b""
        while chunk := file.read(_CHUNK_BYTES):
            piece, end, after = chunk.rpartition(b"\n")
            if end:
                yield rest + piece
                rest = after
            else:
                yield rest + chunk
                rest = chunk[-_OVERLAP_BYTES:]
        if rest:
            yield rest


#: Of a line without an end: names and phrases are shorter.
_OVERLAP_BYTES = 4096
