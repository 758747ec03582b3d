"""Remembers how files looked when they were hashed: one that looks the same costs a `stat`, not a read.

A change can hide from `stat` only within a tick of the file system's clock, so a file that was touched shortly before
it was hashed is not remembered. Losing the memory loses nothing but time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from stillroom.workspace.tree import Entry

#: Generous: the coarsest clocks of file systems in use tick every two seconds.
_TICK_NS = 2_000_000_000


class _Look(msgspec.Struct, frozen=True, array_like=True):
    stamp: tuple[int, int, int, int, int, int]
    blob: str
    executable: bool


@dataclass(slots=True)
class Remembered:
    """What is known of earlier scans, and what this one adds."""

    path: Path
    _old: Mapping[str, _Look]
    #: When this scan began, by the clock of the disk.
    _began_ns: int
    _new: dict[str, _Look] = field(default_factory=dict)
    _learned: bool = False

    @classmethod
    def load(cls, path: Path) -> Remembered:
        """What `path` holds; nothing when it can't be read."""
        try:
            old = msgspec.msgpack.decode(path.read_bytes(), type=dict[str, _Look])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            old = {}
        fresh = path.with_name(f"{path.name}.new")
        try:
            fresh.write_bytes(b"")
            began_ns = fresh.stat().st_mtime_ns
        except OSError:
            began_ns = 0
        return cls(path, old, began_ns)

    def entry(self, path: str, status: os.stat_result) -> Entry | None:
        """The entry of a file that looks as it did when it was hashed."""
        look = self._old.get(path)
        if look is None or look.stamp != _stamp(status):
            return None
        self._new[path] = look
        return Entry(look.blob, look.executable)

    def learn(self, path: str, status: os.stat_result, entry: Entry) -> None:
        """Remember a file that was hashed; `status` is from before its content was read."""
        settled = max(status.st_mtime_ns, status.st_ctime_ns) < self._began_ns - _TICK_NS
        if settled and (path.isascii() or path.isprintable()):  # other names may not be UTF-8
            self._new[path] = _Look(_stamp(status), entry.blob, entry.executable)
            self._learned = True

    def save(self) -> None:
        """Keep it for the next scan, if there is anything new."""
        fresh = self.path.with_name(f"{self.path.name}.new")
        try:
            if self._learned:
                fresh.write_bytes(msgspec.msgpack.encode(self._new))
                fresh.replace(self.path)
            else:
                fresh.unlink(missing_ok=True)
        except OSError:
            pass  # a full disk only makes the next scan slower


def _stamp(status: os.stat_result) -> tuple[int, int, int, int, int, int]:
    return (
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_dev,
        status.st_mode,
    )
