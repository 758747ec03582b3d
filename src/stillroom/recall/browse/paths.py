"""Opens what a path below the memory folder names, and nothing outside of it (spec §3.1).

Every step is opened relative to the descriptor of the step before, with `O_NOFOLLOW`: what is swapped for a link
between two system calls is refused, never followed. Standard library only: a session's start imports this.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from stillroom.errors import NotFound, PathRefused, RecallError, Unreadable
from stillroom.folders import again, open_either, open_root

_NO_STEP = {errno.ELOOP, errno.ENOTDIR}
_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:")


class Node(NamedTuple):
    """An open file or folder. Whoever made it closes it."""

    descriptor: int
    is_folder: bool
    size: int  #: bytes
    mtime_ns: int


def components(path: str | None) -> tuple[str, ...]:
    """The steps of a relative path; none for the folder itself.

    Raises `PathRefused` for a path that leads out, `NotFound` for a hidden one.

        >>> components("skills/./deploy/SKILL.md")
        ('skills', 'deploy', 'SKILL.md')
    """
    if not path:
        return ()
    steps = tuple(step for step in path.split("/") if step not in ("", "."))
    if ".." in steps or "\0" in path or _ABSOLUTE.match(path):
        raise PathRefused(
            f"{quoted(path)} is no path inside the memory folder", hint="paths are relative to it, without `..`"
        )
    if any(step.startswith(".") for step in steps) or not _is_encodable(path):
        raise _not_found(path)
    return steps


@contextmanager
def opened_root(root: Path) -> Iterator[int]:
    """A descriptor of the memory folder itself. A link is refused."""
    try:
        descriptor = open_root(root)
    except FileNotFoundError as error:
        raise NotFound(f"there is no memory folder `{root}`", hint="`stillroom run` makes one") from error
    except OSError as error:
        if error.errno in _NO_STEP:
            raise PathRefused(f"the memory folder `{root}` is a link, or no folder") from error
        raise RecallError(f"the memory folder `{root}` can't be opened: {error.strerror}") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_path(root: Path, path: str | None) -> Iterator[Node]:
    """The regular file or folder at `path`."""
    steps = components(path)
    with opened_root(root) as top:
        node = Node(again(top), is_folder=True, size=0, mtime_ns=0)
        try:
            for step in steps:
                if not node.is_folder:
                    raise PathRefused(f"{quoted(path or '')} leads through a file")
                below = open_step(node.descriptor, step, path or "")
                os.close(node.descriptor)
                node = below
            yield node
        finally:
            os.close(node.descriptor)


def open_step(descriptor: int, name: str, path: str) -> Node:
    """What `name` is in an open folder; `path` is for messages. Links and special files are refused."""
    try:
        below, status = open_either(descriptor, name)
    except FileNotFoundError as error:
        raise _not_found(path) from error
    except OSError as error:
        if error.errno in _NO_STEP:
            raise PathRefused(f"{quoted(path)} leads over a link") from error
        if error.errno == errno.ENXIO:
            raise _special(path) from error
        raise RecallError(f"{quoted(path)} can't be opened: {error.strerror}") from error
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return Node(below, stat.S_ISDIR(status.st_mode), status.st_size, status.st_mtime_ns)
    os.close(below)
    raise _special(path)


def read_text(node: Node, path: str, *, max_bytes: int) -> str:
    """The whole of an open file, as large as it was when it was opened.

    Raises `Unreadable` when it is too large, or no UTF-8.
    """
    if node.size > max_bytes:
        raise Unreadable(f"{quoted(path)} has {node.size:,} bytes, more than {max_bytes:,}")
    try:
        data = os.read(node.descriptor, node.size)
        while len(data) < node.size and (more := os.read(node.descriptor, node.size - len(data))):
            data += more
        return data.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"{quoted(path)} is no UTF-8 text (at byte {error.start:,})") from error
    except OSError as error:
        raise RecallError(f"{quoted(path)} can't be read: {error.strerror}") from error


def quoted(path: str) -> str:
    """A path for people and models: one line, valid UTF-8, not endless."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in path[:200])
    return f"`{text}{'…' if len(path) > 200 else ''}`"


def readable(name: str) -> str:
    """A name from the disk as text; bytes that are no UTF-8 become `\\ufffd`."""
    return os.fsencode(name).decode("utf-8", "replace")


def _not_found(path: str) -> NotFound:
    return NotFound(f"{quoted(path)} is not in the memory folder", hint="`list` shows what is")


def _special(path: str) -> PathRefused:
    return PathRefused(f"{quoted(path)} is no regular file")


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True
