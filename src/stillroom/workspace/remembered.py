"""Remembers how files looked when they were hashed: one that looks the same costs a `stat`, not a read.

A change can hide from `stat` only within a tick of the file system's clock, so a file that was touched shortly before
it was hashed is not remembered. Losing the memory loses nothing but time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Self

import msgspec

from stillroom.workspace.tree import Entry

#: Generous: the coarsest clocks of file systems in use tick every two seconds.
_TICK_NS = 2_000_000_000
#: What tells whether a file is still the one that was hashed.
_STAMP = attrgetter("st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_dev", "st_mode")


class _Look(msgspec.Struct, frozen=True, array_like=True, gc=False):
    stamp: tuple[int, int, int, int, int, int]
    entry: Entry


class Remembered(msgspec.Struct):
    """What is known of earlier scans, and what those since it was loaded add."""

    path: Path
    _old: Mapping[str, _Look]
    #: When it was loaded, by the clock of the disk.
    _began_ns: int
    _new: dict[str, _Look] = {}
    _learned: bool = False

    @classmethod
    @contextmanager
    def kept(cls, path: Path) -> Iterator[Self]:
        """For one scan: what `path` holds, and afterwards what is to be known next time."""
        memory = cls.load(path)
        yield memory
        memory.save()

    @classmethod
    def load(cls, path: Path) -> Self:
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

    def __contains__(self, path: str) -> bool:
        """Whether it is worth a look."""
        return path in self._new or path in self._old

    def entry(self, path: str, status: os.stat_result) -> Entry | None:
        """The entry of a file that looks as it did when it was hashed."""
        look = self._new.get(path) or self._old.get(path)
        if look is None or look.stamp != _STAMP(status):
            return None
        self._new[path] = look
        return look.entry

    def learn(self, path: str, status: os.stat_result, entry: Entry) -> None:
        """Remember a file that was hashed; `status` is from before its content was read."""
        settled = max(status.st_mtime_ns, status.st_ctime_ns) < self._began_ns - _TICK_NS
        if settled and (path.isascii() or path.isprintable()):  # other names may not be UTF-8
            self._new[path] = _Look(_STAMP(status), entry)
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
