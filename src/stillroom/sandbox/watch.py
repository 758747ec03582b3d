"""Look at a jail from outside: its processes, what they use, and what is in its folder.

The parent does this because nothing inside can be trusted to do it, and because root is exempt from the kernel's limit
on processes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Survey:
    """The folder at one moment."""

    total_bytes: int
    entries: int
    #: Names, sizes and times of everything: another number means that something changed.
    fingerprint: int
    #: Links, special files and `.git…` names, which no memory folder may hold (the first few).
    foreign: tuple[str, ...]
    #: There was more than could be counted.
    over: bool


@dataclass(frozen=True, slots=True)
class Use:
    """What all processes below one use together."""

    processes: int
    resident_bytes: int
    written_bytes: int


def survey(folder: Path, *, max_entries: int) -> Survey:
    """Count a folder whose owner is hostile: no link is followed, and it ends after `max_entries`."""
    total, entries, fingerprint, over = 0, 0, 0, False
    foreign: list[str] = []
    waiting = [(str(folder), "")]
    while waiting and not over:
        path, inside = waiting.pop()
        try:
            with os.scandir(path) as found:
                for entry in found:
                    name = f"{inside}{entry.name}"
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        entries += 1
                        if entries > max_entries:
                            over = True
                            break
                        # Blocks, so that a file with holes counts as what it takes and a directory as nothing much.
                        regular, directory = stat.S_ISREG(status.st_mode), stat.S_ISDIR(status.st_mode)
                        total += max(status.st_size, status.st_blocks * 512) if regular else 0
                        # A sum, because the order of entries is the file system's.
                        if regular:
                            fingerprint += hash(
                                (name, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino)
                            )
                        else:
                            fingerprint += hash((name, status.st_mode))
                        if directory:
                            waiting.append((entry.path, f"{name}/"))
                        if not (regular or directory) or entry.name.lower().startswith(".git"):
                            foreign.append(name)
        except OSError:
            foreign.append(f"{inside or './'} (unreadable)")
    return Survey(total, entries, fingerprint, tuple(sorted(foreign)[:10]), over)


def open_up(folder: Path) -> None:
    """Give the owner back every directory that a command closed, so that the folder can be read and removed.

    Only safe when nothing of the jail runs any more.
    """
    waiting = [str(folder)]
    while waiting:
        path = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(path) as found:
            for entry in found:
                if not entry.is_dir(follow_symlinks=False):
                    continue
                mode = entry.stat(follow_symlinks=False).st_mode
                if mode & stat.S_IRWXU != stat.S_IRWXU:
                    os.chmod(entry.path, stat.S_IMODE(mode) | stat.S_IRWXU)
                waiting.append(entry.path)


def descendants(root: int) -> list[int]:
    """Every process below `root`, whatever session it has moved to. Empty where there is no `/proc`."""
    children: dict[int, list[int]] = {}
    for name in _processes():
        with contextlib.suppress(OSError):
            line = Path(f"/proc/{name}/stat").read_bytes()
            # The command's name is in parentheses and may hold anything; the fields follow the last one.
            parent = int(line[line.rindex(b")") + 2 :].split()[1])
            children.setdefault(parent, []).append(int(name))
    found, waiting = [], [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def use_of(root: int) -> Use:
    """What the processes below `root` use."""
    resident = written = 0
    page = os.sysconf("SC_PAGE_SIZE")
    below = descendants(root)
    for process in below:
        with contextlib.suppress(OSError, ValueError):
            resident += int(Path(f"/proc/{process}/statm").read_bytes().split()[1]) * page
        with contextlib.suppress(OSError, ValueError):
            fields = dict(line.split(b": ") for line in Path(f"/proc/{process}/io").read_bytes().splitlines())
            written += int(fields[b"write_bytes"])
    return Use(len(below), resident, written)


def user_processes() -> int:
    """How many threads this user runs, which is what the kernel's limit counts. 0 where that can't be told."""
    count, mine = 0, os.getuid()
    for name in _processes():
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == mine:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count


def end_below(root: int) -> None:
    """End everything below `root`, group by group: a group ends in one call, which no fork can outrun.

    Call until `descendants(root)` is empty.
    """
    ours = os.getpgrp()
    for process in descendants(root):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            group = os.getpgid(process)
            if group not in (ours, os.getpgid(root)):
                os.killpg(group, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)


def _processes() -> list[str]:
    if sys.platform != "linux":
        return []
    return [name for name in os.listdir("/proc") if name.isdigit()]
