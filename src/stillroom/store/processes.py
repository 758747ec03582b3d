"""Which process holds something, and whether it is certainly gone.

A process id alone says little: ids come again, and a container counts its own. So it is kept with the machine's start,
the namespace of the ids and the process's own start. Where these can't be had, nothing is certain, and a lease decides.
"""

from __future__ import annotations

import os
from pathlib import Path

_UNKNOWN = "-"


def this_process() -> str:
    """A name of this process that no other has."""
    pid = os.getpid()
    return f"{pid}@{_start_of(pid)}@{_id_space()}"


def is_surely_gone(owner: str) -> bool:
    """Whether the process of this name ended. False also where that can't be known."""
    pid, _, rest = owner.partition("@")
    start, _, id_space = rest.partition("@")
    if not pid.isdecimal() or start == _UNKNOWN or id_space != _id_space():
        return False
    return _start_of(int(pid)) != start


def _start_of(pid: int) -> str:
    """When it started, in ticks since the machine did; "" if there is no such process; "-" where that can't be had."""
    try:
        # The name of the program stands in brackets and may hold anything, also brackets.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        state, start = fields[0], fields[19]
    except (FileNotFoundError, ProcessLookupError):
        return "" if Path("/proc/self/stat").exists() else _UNKNOWN
    except (OSError, IndexError):
        return _UNKNOWN
    return "" if state in (b"Z", b"X") else start.decode()  # one that waits to be reaped runs no more


def _id_space() -> str:
    """The machine since it was started, and the namespace in which its process ids are counted."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return _UNKNOWN
