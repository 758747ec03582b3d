"""Find sessions: what a look at a session file can give, and the look at all files of a home.

A file that has not changed is not opened, and one that can't be understood fails alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

import msgspec

from stillroom.errors import RolloutError
from stillroom.thread import FileStamp, Thread

# --- What a look can find


class Found(msgspec.Struct, frozen=True):
    """A thread that is new or has changed."""

    thread: Thread
    stamp: FileStamp


class Unchanged(msgspec.Struct, frozen=True):
    """The file looks as its known stamp says; it was not opened."""

    path: str


class Broken(msgspec.Struct, frozen=True):
    """A file that can't be understood; the others are not concerned."""

    path: str
    reason: str


Discovery = Found | Unchanged | Broken


class File(NamedTuple):
    """A session's file, as it looks now. Files are ordered by their times."""

    mtime_ns: int
    size: int
    path: Path

    def stamp(self, offset: int) -> FileStamp:
        return FileStamp(size=self.size, mtime_ns=self.mtime_ns, offset=offset)


def refreshed(root: Path, stored: Iterable[Thread], /) -> Iterator[Thread]:
    """None: all that is known of a session stands in its file, and shows in its stamp."""
    del root, stored
    yield from ()


def scan(
    paths: Iterable[Path], known: Mapping[str, FileStamp], look: Callable[[File], Discovery]
) -> Iterator[Discovery]:
    """What `look` finds in the files that are not as `known` says, oldest first."""
    for file in ordinary_files(paths):
        name = str(file.path)
        stamp = known.get(name)
        if stamp is not None and (stamp.size, stamp.mtime_ns) == (file.size, file.mtime_ns):
            yield Unchanged(name)
            continue
        try:
            yield look(file)
        except RolloutError as error:
            yield Broken(name, str(error))
        except OSError as error:
            yield Broken(name, f"`{name}` can't be read: {error.strerror}")


def ordinary_files(paths: Iterable[Path]) -> list[File]:
    """Those of the paths that are files, oldest first."""
    files: list[File] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:  # gone since it was listed, or a link to nowhere
            continue
        if S_ISREG(status.st_mode):
            files.append(File(status.st_mtime_ns, status.st_size, path))
    return sorted(files)


def scan_stores(
    paths: Iterable[Path],
    known: Mapping[str, FileStamp],
    is_unchanged: Callable[[File, list[FileStamp]], bool],
    look: Callable[[File], Iterable[Discovery]],
) -> Iterator[Discovery]:
    """The same for files that may hold many threads, `FILE#…` each.

    `is_unchanged` is asked of the stamps of all the threads that are known of a file.
    """
    inside: dict[str, list[str]] = {}
    for name in known:
        inside.setdefault(name, []).append(name)
        file_name, found, _ = name.rpartition("#")
        if found:
            inside.setdefault(file_name, []).append(name)
    for file in ordinary_files(paths):
        name = str(file.path)
        threads = inside.get(name, [])
        if threads and is_unchanged(file, [known[thread] for thread in threads]):
            yield from map(Unchanged, threads)
            continue
        try:
            yield from look(file)
        except RolloutError as error:
            yield Broken(name, str(error))
        except OSError as error:
            yield Broken(name, f"`{name}` can't be read: {error.strerror}")
