"""Puts a file of the live folder in its place, only if nobody else changed that place since it was looked at."""

from __future__ import annotations

import errno
import os
import stat

from stillroom import folders
from stillroom.workspace.tree import TEMPORARY_PREFIX, drop, names

#: What file systems without hard links say.
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})


def create(root: int, temporary: str, folder: int, name: str) -> bool:
    """Give a temporary file of `root` its name, where there was nothing; False when there is something by now."""
    try:
        folders.link(root, temporary, folder, name)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        folders.replace(root, temporary, folder, name)
        return True
    drop(root, temporary)
    return True


def replace(root: int, temporary: str, folder: int, name: str, status: os.stat_result, *, executable: bool) -> bool:
    """Put a temporary file of `root` in the place, and the rights, of the file that was found there; False when it is
    another by now."""
    mode = stat.S_IMODE(status.st_mode) & 0o777
    if executable != bool(mode & stat.S_IXUSR):
        mode = mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
    folders.set_mode(root, temporary, mode)
    if not _is_still(folder, name, status):
        return False
    folders.replace(root, temporary, folder, name)
    return True


def remove(folder: int, name: str, status: os.stat_result) -> bool:
    """Delete the file that was found there; False when it is another by now."""
    if not _is_still(folder, name, status):
        return False
    folders.unlink(folder, name)
    return True


def clear_temporary(root: int) -> None:
    """Delete what did not come into its place, in this run or in one that was killed."""
    for name in names(root):
        if name.startswith(TEMPORARY_PREFIX):
            drop(root, name)


def _is_still(folder: int, name: str, status: os.stat_result) -> bool:
    """The last look before it is gone: an editor may have saved since the content was compared."""
    return _stamp(folders.status(folder, name)) == _stamp(status)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode
