"""What Linux and macOS have and Windows lacks, asked for here and nowhere else outside the sandbox.

Nothing is refused for want of it: a link that appears between a look and an opening is then not noticed, and nobody
waits for somebody with a shared lock. Imports nothing but `os`: a hook imports this.
"""

from __future__ import annotations

import os

NO_LINK = getattr(os, "O_NOFOLLOW", 0)
#: Windows would write `\r\n` for `\n`.
_BYTES = getattr(os, "O_BINARY", 0)
#: A file, or whatever stands there: without `O_NONBLOCK` opening a named pipe waits for a writer.
READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BYTES
#: The same, but no link.
READ_ITSELF = READ | NO_LINK
#: A file that must not exist.
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK | _BYTES
#: A file of lines.
APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT | NO_LINK | _BYTES
#: A file that only serves to be locked.
LOCK_FILE = os.O_RDWR | os.O_CREAT | NO_LINK

#: Whether files have an owner and rights that `os.stat` tells. On Windows it says the same of all.
HAS_OWNERS = hasattr(os, "geteuid")


def read_at(file: int, size: int, start: int) -> bytes:
    """Read from a place in an open file that nobody else reads on in."""
    if hasattr(os, "pread"):
        return os.pread(file, size, start)
    os.lseek(file, start, os.SEEK_SET)
    return os.read(file, size)


def is_anothers(status: os.stat_result) -> bool:
    """Whether the file belongs to another user than the one at work; to root everything is its own."""
    return HAS_OWNERS and os.geteuid() not in (0, status.st_uid)


def open_to_others(status: os.stat_result) -> bool:
    """Whether another user of the machine may read or write the file, as far as can be told."""
    return HAS_OWNERS and bool(status.st_mode & 0o077)


class Room:
    """What a disk has left for whoever is not root. Raises `OSError` when it can't be asked."""

    __slots__ = ("free_bytes", "free_files", "is_read_only")

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        #: None: as many as there is room for.
        self.free_files: int | None = None
        self.is_read_only = False
        if hasattr(os, "statvfs"):
            disk = os.statvfs(folder)
            self.free_bytes = disk.f_bavail * disk.f_frsize
            if disk.f_files:  # some file systems say that there are none
                self.free_files = disk.f_favail
            self.is_read_only = bool(disk.f_flag & os.ST_RDONLY)
        else:
            import shutil

            self.free_bytes = shutil.disk_usage(folder).free


def finding_programs() -> dict[str, str]:
    """What a program needs of the environment to be found, and on Windows to be started at all."""
    needed = {"PATH": os.environ.get("PATH", os.defpath)}
    if "SYSTEMROOT" in os.environ:
        needed["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return needed


def lock(file: int, *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file until it is closed or the process ends; False: somebody else has it. Raises `OSError`.

    Windows knows no shared lock: there everybody has that.
    """
    try:
        import fcntl
    except ImportError:
        return shared or _lock_a_byte(file, wait=wait)
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def give_way() -> None:
    """Let another process run that waits for the processor."""
    if hasattr(os, "sched_yield"):
        os.sched_yield()


def _lock_a_byte(file: int, *, wait: bool) -> bool:
    import msvcrt

    while True:
        try:
            # With `LK_LOCK` it tries for ten seconds.
            msvcrt.locking(file, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            if not wait:
                return False
        else:
            return True
