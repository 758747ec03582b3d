"""Which processes hold a database locked, as Linux tells: for a person who is to end one of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

#: In the log's shared memory: whoever writes holds this byte. The ones behind it are of readers and checkpoints.
_WRITING = 120
#: Of a command line; it may be anybody's, and a secret is seldom at its beginning.
_COMMAND_CHARS = 60


def holders(path: Path) -> list[str]:
    """`process 4711 (sqlite3 state.sqlite3)`, for each but this one; none where that can't be found out."""
    try:
        locks = Path("/proc/locks").read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    wanted = dict(_files(path))
    found: dict[int, None] = {}
    for line in locks.splitlines():
        words = line.split()
        # `7: POSIX ADVISORY WRITE 4711 fe:00:123 120 120`; with `->` one that waits for it.
        if len(words) != 8 or words[3] != "WRITE" or words[5] not in wanted:
            continue
        if wanted[words[5]] and words[6] != str(_WRITING):
            continue
        if words[4].isdecimal() and int(words[4]) not in (0, os.getpid()):
            found[int(words[4])] = None
    return [f"process {process}{_called(process)}" for process in found]


def _files(path: Path) -> Iterator[tuple[str, bool]]:
    """The files in which locks are, and whether it is the shared memory of the log."""
    for file, is_shared in ((path, False), (path.with_name(f"{path.name}-shm"), True)):
        try:
            stat = file.stat()
        except OSError:
            continue
        yield f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}:{stat.st_ino}", is_shared


def _called(process: int) -> str:
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return ""
    command = b" ".join(words).decode("utf-8", "replace")
    return f" (`{command[:_COMMAND_CHARS]}`)" if command else ""


__all__ = ["holders"]
