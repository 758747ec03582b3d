"""Works on what an open folder holds, by name: no step of a path leads over a link.

A folder is known by a descriptor, and everything is asked for relative to it (`dir_fd`). Windows has no descriptors of
folders: there the number stands for a path, and a link that appears between a look and the work is not noticed.
All functions raise `OSError` as those of `os` do. Standard library only: a session's start imports this.
"""

from __future__ import annotations

import errno
import os
import stat

from stillroom.system import NO_LINK, READ, READ_ITSELF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

_FOLDER = READ | NO_LINK | getattr(os, "O_DIRECTORY", 0)
_HAS_DESCRIPTORS = os.open in os.supports_dir_fd
#: On Windows: the path that a number stands for. One that was closed stays until the number is given again.
_PATHS: dict[int, str] = {}
#: Windows' other kind of link to a folder, a junction.
_JUNCTION = 0xA0000003


def open_root(path: str | os.PathLike[str]) -> int:
    """A descriptor of a folder; a link, or anything else that is no folder, is refused. `os.close` closes it."""
    return os.open(path, _FOLDER) if _HAS_DESCRIPTORS else _stand_for(os.fspath(path))


def open_folder(folder: int, name: str) -> int:
    """The same of a folder in an open one."""
    return os.open(name, _FOLDER, dir_fd=folder) if _HAS_DESCRIPTORS else _stand_for(_path(folder, name))


def open_file(folder: int, name: str, flags: int, mode: int = 0o600) -> int:
    """A descriptor of a file in an open folder, with flags of `stillroom.system`."""
    if _HAS_DESCRIPTORS:
        return os.open(name, flags, mode, dir_fd=folder)
    path = _path(folder, name)
    if os.path.lexists(path):
        _refuse_link(path)
    return os.open(path, flags, mode)


def open_either(folder: int, name: str) -> tuple[int, os.stat_result]:
    """A descriptor of a file or folder in an open one, and what it is; never waits."""
    if not _HAS_DESCRIPTORS and stat.S_ISDIR((found := status(folder, name)).st_mode):
        return open_folder(folder, name), found
    descriptor = open_file(folder, name, READ_ITSELF)
    return descriptor, os.fstat(descriptor)


def again(folder: int) -> int:
    """A second descriptor of an open folder."""
    return os.dup(folder) if _HAS_DESCRIPTORS else _stand_for(_PATHS[folder])


def listed(folder: int) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
    """What an open folder holds, as `os.scandir` tells it."""
    return os.scandir(folder) if _HAS_DESCRIPTORS else os.scandir(_PATHS[folder])


def status(folder: int, name: str) -> os.stat_result:
    """Of a file, a folder, or a link itself."""
    path, at = _place(folder, name)
    return os.stat(path, dir_fd=at, follow_symlinks=False)


def unlink(folder: int, name: str) -> None:
    """Remove a file or a link."""
    path, at = _place(folder, name)
    os.unlink(path, dir_fd=at)


def make_folder(folder: int, name: str) -> None:
    """Make a folder, for its owner only."""
    path, at = _place(folder, name)
    os.mkdir(path, 0o700, dir_fd=at)


def remove_folder(folder: int, name: str) -> None:
    """Remove an empty folder."""
    path, at = _place(folder, name)
    os.rmdir(path, dir_fd=at)


def replace(folder: int, name: str, to_folder: int, to_name: str) -> None:
    """Give a file another place; what was there is gone."""
    (old, at), (new, to) = _place(folder, name), _place(to_folder, to_name)
    os.replace(old, new, src_dir_fd=at, dst_dir_fd=to)


def link(folder: int, name: str, to_folder: int, to_name: str) -> None:
    """Give a file a second place. Raises `FileExistsError` where something is."""
    if _HAS_DESCRIPTORS:
        os.link(name, to_name, src_dir_fd=folder, dst_dir_fd=to_folder, follow_symlinks=False)
    else:
        os.link(_path(folder, name), _path(to_folder, to_name))


def target(folder: int, name: str) -> str:
    """Where a link leads."""
    path, at = _place(folder, name)
    return os.readlink(path, dir_fd=at)


def set_mode(folder: int, name: str, mode: int) -> None:
    """Set a file's rights."""
    path, at = _place(folder, name)
    os.chmod(path, mode, dir_fd=at)


def sync(folder: int) -> None:
    """Make it durable which names a folder holds. On Windows that can't be asked for."""
    if _HAS_DESCRIPTORS:
        os.fsync(folder)


def _place(folder: int, name: str) -> tuple[str, int | None]:
    return (name, folder) if _HAS_DESCRIPTORS else (_path(folder, name), None)


def _path(folder: int, name: str) -> str:
    return f"{_PATHS[folder]}/{name}"


def _stand_for(path: str) -> int:
    _refuse_link(path)
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    number = os.open(os.devnull, os.O_RDONLY)
    _PATHS[number] = path
    return number


def _refuse_link(path: str) -> None:
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode) or getattr(found, "st_reparse_tag", 0) == _JUNCTION:
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
