"""Reads and writes below one folder without ever following a link out of it.

Everything is opened relative to directory descriptors with `O_NOFOLLOW`: a link that appears between two system calls
is refused, not followed. Paths are slash-separated and relative; names that are not UTF-8 keep their bytes
(`surrogateescape`).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from stillroom.config import StageTwo
from stillroom.errors import FolderRefused, WorkspaceError, way_out
from stillroom.folders import again, listed, make_folder, open_file, open_folder, open_root, unlink
from stillroom.system import NEW, READ_ITSELF

DEFAULTS = StageTwo()
DIFF_FILE = "phase2_workspace_diff.md"
TEMPORARY_PREFIX = ".stillroom-tmp-"


class Entry(NamedTuple):
    """A regular file as the baseline knows it."""

    blob: str  #: git's object id of the content
    executable: bool

    @property
    def mode(self) -> str:
        return "100755" if self.executable else "100644"


class Read(NamedTuple):
    """What was read of one file."""

    data: bytes
    executable: bool
    #: From before it was read.
    status: os.stat_result


def blob_id(data: bytes) -> str:
    """Git's name for this content."""
    import hashlib  # most commands hash nothing, and OpenSSL takes long to load

    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def shown(path: str) -> str:
    """A path for people and prompts: one line, valid UTF-8."""
    if path.isprintable():
        return path
    text = os.fsencode(path).decode("utf-8", "replace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


@contextmanager
def opened(root: Path) -> Iterator[int]:
    """A descriptor of the folder itself; a link or anything but a folder is refused."""
    try:
        descriptor = open_root(root)
    except OSError as error:
        raise FolderRefused(f"`{root}` can't be opened as a folder: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def names(descriptor: int) -> set[str]:
    """What an open folder holds."""
    with listed(descriptor) as listing:
        return {entry.name for entry in listing}


@contextmanager
def parent(root: int, path: str, *, create: bool) -> Iterator[tuple[int, str]]:
    """The folder that holds `path`, opened step by step, and the last name. `OSError` where a step is no folder."""
    *steps, name = path.split("/")
    descriptor = again(root)
    try:
        for step in steps:
            try:
                child = open_folder(descriptor, step)
            except FileNotFoundError:
                if not create:
                    raise
                with suppress(FileExistsError):
                    make_folder(descriptor, step)
                child = open_folder(descriptor, step)
            os.close(descriptor)
            descriptor = child
        yield descriptor, name
    finally:
        os.close(descriptor)


def write_new(descriptor: int, name: str, data: bytes, *, executable: bool, durable: bool) -> None:
    """Create a file that must not exist. On a full disk there is none afterwards, not half of one."""
    file = open_file(descriptor, name, NEW, 0o700 if executable else 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        if durable:
            os.fsync(file)
    except OSError:
        drop(descriptor, name)
        raise
    finally:
        os.close(file)


def drop(descriptor: int, name: str) -> bool:
    """Delete a file or link; whether there was one."""
    try:
        unlink(descriptor, name)
    except FileNotFoundError:
        return False
    return True


def remove_tree(folder: Path) -> None:
    """Delete a folder whatever a process left in it: any depth, any permissions, no link followed.

    Sub-folders are moved up before they are emptied, so that neither the stack nor descriptors run out.
    """
    if not folder.is_dir() or folder.is_symlink():
        return
    pending = [folder]
    moved = 0
    while pending:
        current = pending[-1]
        current.chmod(0o700)
        below: list[Path] = []
        with os.scandir(current) as listing:
            for entry in listing:
                if entry.is_dir(follow_symlinks=False):
                    below.append(Path(entry.path))
                else:
                    Path(entry.path).unlink()
        for path in below:
            if current is folder:
                pending.append(path)
                continue
            path.chmod(0o700)
            while (target := folder / f"{TEMPORARY_PREFIX}{moved}").exists():  # one that was killed here left it
                moved += 1
            path.rename(target)
            pending.append(target)
        if not below:
            current.rmdir()
            pending.pop()


def read_file(descriptor: int, name: str, *, max_bytes: int) -> Read | None:
    """A regular file's content; None when it is anything else, or larger. Never waits."""
    file = open_file(descriptor, name, READ_ITSELF)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_size > max_bytes:
            return None
        data = os.read(file, status.st_size + 1)
        while len(data) != status.st_size and (more := os.read(file, 1 << 20)):  # somebody is writing to it
            data += more
            if len(data) > max_bytes:
                return None
        return Read(data, bool(status.st_mode & stat.S_IXUSR), status)
    finally:
        os.close(file)


@contextmanager
def naming(path: str, done: str) -> Iterator[None]:
    """Whatever the disk refuses names the path."""
    try:
        yield
    except OSError as error:
        # A path within the folder is not enough to do anything with it; room is wanted wherever it is.
        hint = way_out(error, shown(path)) if Path(path).is_absolute() or error.errno == errno.ENOSPC else None
        raise WorkspaceError(f"`{shown(path)}` can't be {done}: {error.strerror}", hint=hint) from error
