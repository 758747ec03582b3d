"""Lists and hashes what is in a folder; what looks as it did when it was hashed need not be read again.

`.git`, what the desktop leaves behind, our own temporary files and the diff file are not seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import msgspec

from stillroom.config import StageTwo
from stillroom.errors import WorkspaceError
from stillroom.folders import listed, open_folder
from stillroom.workspace.tree import (
    DEFAULTS,
    DIFF_FILE,
    TEMPORARY_PREFIX,
    Entry,
    blob_id,
    naming,
    opened,
    read_file,
    shown,
)

_UNSEEN = (".git", ".ds_store", "thumbs.db")

Visit = Callable[[str, bytes, Entry], None]


class Scan(msgspec.Struct, frozen=True):
    """What a folder holds."""

    files: dict[str, Entry] = {}
    links: list[str] = []
    #: Pipes, sockets, devices, and what lies too deep: never read, never copied.
    odd: list[str] = []
    #: Files over `max_file_bytes`: left where they are, unseen by the agent.
    too_large: list[str] = []
    #: Files that another name leads to as well.
    shared: list[str] = []
    #: Names that are none of the memory's business.
    unseen: list[str] = []
    #: Folders, each before what is in it.
    folders: list[str] = []


class Memory(Protocol):
    """Who remembers entries of files that still look the same."""

    def __contains__(self, path: str) -> bool: ...
    def entry(self, path: str, status: os.stat_result) -> Entry | None: ...
    def learn(self, path: str, status: os.stat_result, entry: Entry) -> None: ...


def scan(
    root: Path,
    *,
    limits: StageTwo,
    visit: Visit | None = None,
    memory: Memory | None = None,
    wanted: Callable[[str, Entry], bool] | None = None,
) -> Scan:
    """List and hash every regular file. `visit` gets each content once.

    A file that the `memory` knows is not read, so not visited either, unless it is `wanted`.

    Raises `WorkspaceError` when something can't be read or the whole is over `max_folder_bytes`.
    """
    found = Scan()
    with opened(root) as descriptor:
        _Walk(found, limits, visit, memory, wanted).folder(descriptor, "", 0)
    return found


def unseen(path: str) -> bool:
    """Whether this path is none of the memory's business."""
    if path.lower().endswith(_UNSEEN):
        return path.rpartition("/")[2].lower() in _UNSEEN
    return path == DIFF_FILE or (path.startswith(TEMPORARY_PREFIX) and "/" not in path)


def links_below(descriptor: int, prefix: str = "", depth: int = 0) -> Iterator[tuple[int, str, str]]:
    """Every link down to `max_folder_depth`: the descriptor of the folder it is in, its name, its path."""
    with listed(descriptor) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    for entry in entries:
        if entry.is_symlink():
            yield descriptor, entry.name, prefix + entry.name
        elif entry.is_dir(follow_symlinks=False) and depth < DEFAULTS.max_folder_depth and not unseen(entry.name):
            with naming(prefix + entry.name, "read"):
                child = open_folder(descriptor, entry.name)
            try:
                yield from links_below(child, f"{prefix}{entry.name}/", depth + 1)
            finally:
                os.close(child)


class _Walk:
    def __init__(
        self,
        found: Scan,
        limits: StageTwo,
        visit: Visit | None,
        memory: Memory | None,
        wanted: Callable[[str, Entry], bool] | None,
    ) -> None:
        self.found = found
        self.memory = memory
        self.wanted = wanted
        self.limits = limits
        self.visit = visit
        self.total = 0

    def folder(self, descriptor: int, prefix: str, depth: int) -> None:
        with listed(descriptor) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            path = prefix + entry.name
            if unseen(path):
                self.found.unseen.append(path)
            elif entry.is_file(follow_symlinks=False):
                if self.memory is None or not self.known(self.memory, entry, path):
                    self.file(descriptor, entry.name, path)
            elif entry.is_symlink():
                self.found.links.append(path)
            elif entry.is_dir(follow_symlinks=False):
                if depth >= self.limits.max_folder_depth:
                    self.found.odd.append(path)
                    continue
                self.found.folders.append(path)
                with naming(path, "read"):
                    child = open_folder(descriptor, entry.name)
                try:
                    self.folder(child, path + "/", depth + 1)
                finally:
                    os.close(child)
            else:
                self.found.odd.append(path)

    def known(self, memory: Memory, listed: os.DirEntry[str], path: str) -> bool:
        if path not in memory:
            return False
        try:  # not `naming`: a context manager for each of thousands of files shows
            status = listed.stat(follow_symlinks=False)
        except OSError as error:
            raise WorkspaceError(f"`{shown(path)}` can't be read: {error.strerror}") from error
        entry = memory.entry(path, status)
        if entry is None or (self.wanted is not None and self.wanted(path, entry)):
            return False
        self.count(status.st_size)
        self.found.files[path] = entry
        if status.st_nlink > 1:
            self.found.shared.append(path)
        return True

    def count(self, size: int) -> None:
        self.total += size
        if self.total > self.limits.max_folder_bytes:
            raise WorkspaceError(
                f"the folder holds more than {self.limits.max_folder_bytes:,} bytes",
                hint="move large files out of it",
            )

    def file(self, descriptor: int, name: str, path: str) -> None:
        try:
            got = read_file(descriptor, name, max_bytes=self.limits.max_file_bytes)
        except OSError as error:
            raise WorkspaceError(f"`{shown(path)}` can't be read: {error.strerror}") from error
        if got is None:
            self.found.too_large.append(path)
            return
        self.count(len(got.data))
        entry = self.found.files[path] = Entry(blob_id(got.data), got.executable)
        if self.memory is not None:
            self.memory.learn(path, got.status, entry)
        if got.status.st_nlink > 1:
            self.found.shared.append(path)
        if self.visit is not None:
            self.visit(path, got.data, entry)
