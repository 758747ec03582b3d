"""Looks for one object in a git repository: a few reads, no git process."""

from __future__ import annotations

import os

from stillroom.system import READ, read_at

_MAGIC = b"\377tOc\0\0\0\2"
#: SHA-1 and SHA-256.
_ID_BYTES = (20, 32)
_FANOUT = 8 + 256 * 4
#: A repository with more packs has no maintenance; the newest ones are not where a first commit is, so all that many.
_MAX_PACKS = 256


def holds_commit(common_directory: str, commit: str) -> bool:
    """Whether the repository has an object of this id. False for what can't be read."""
    try:
        wanted = bytes.fromhex(commit)
    except ValueError:
        return False
    if len(wanted) not in _ID_BYTES:
        return False
    objects = f"{common_directory}/objects"
    if os.path.exists(f"{objects}/{commit[:2]}/{commit[2:]}"):
        return True
    try:
        packs = [name for name in os.listdir(f"{objects}/pack") if name.endswith(".idx")][:_MAX_PACKS]
    except OSError:
        return False
    return any(_index_holds(f"{objects}/pack/{name}", wanted) for name in packs)


def _index_holds(path: str, wanted: bytes) -> bool:
    """Search one pack's index, version 2: a table of first bytes, then all ids in order."""
    try:
        descriptor = os.open(path, READ)
    except OSError:
        return False
    try:
        head = read_at(descriptor, _FANOUT, 0)
        if len(head) != _FANOUT or not head.startswith(_MAGIC):
            return False
        first = wanted[0]
        low = int.from_bytes(head[4 + 4 * first : 8 + 4 * first], "big") if first else 0
        high = int.from_bytes(head[8 + 4 * first : 12 + 4 * first], "big")
        size = len(wanted)
        while low < high:
            middle = (low + high) // 2
            found = read_at(descriptor, size, _FANOUT + middle * size)
            if found == wanted:
                return True
            if len(found) != size:
                return False
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        return False
    except OSError:
        return False
    finally:
        os.close(descriptor)
