"""Whether cited lines exist: in the memory folder now, or in a version of it that the session can have read.

Nothing of a citation is trusted: paths are looked up below the folder only, and no link is followed.
"""

from __future__ import annotations

import os
import posixpath
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from stillroom.config import CITING, Citing, StageTwo
from stillroom.errors import FolderRefused, HistoryError
from stillroom.recall.usage.citations import CitationEntry
from stillroom.workspace.git import BRANCH
from stillroom.workspace.history import History
from stillroom.workspace.scanning import unseen
from stillroom.workspace.tree import opened, parent, read_file


class CitedLines:
    """Looks up what is cited, each file and each version once. For one pass: it sees the folder as it was then."""

    def __init__(self, root: Path, history: Path, *, limits: StageTwo, citing: Citing = CITING) -> None:
        self._root = root
        self._history = History(history)
        self._limits = limits
        self._lookups_left = citing.max_version_lookups
        self._now: dict[str, int | None] = {}
        self._then: dict[tuple[str, str], int | None] = {}

    def problem(self, entry: CitationEntry, *, at: Iterable[int]) -> str | None:
        """Why an entry does not count; None: its lines exist. `at` are times, in seconds, of versions to look in."""
        path = self._relative(entry.path)
        if path is None:
            return "no path inside of the memory folder"
        if entry.line_start < 1:
            return "lines begin at 1"
        if entry.line_end < entry.line_start:
            return "the range ends before it begins"
        if (lines := self._lines_now(path)) is not None and entry.line_end <= lines:
            return None
        exists = lines is not None
        for commit in dict.fromkeys(map(self._version, at)):
            if commit is None:
                continue
            lines = self._lines_then(commit, path)
            if lines is not None and entry.line_end <= lines:
                return None
            exists = exists or lines is not None
        return "the file has no such lines" if exists else "there is no such file"

    def _relative(self, path: str) -> str | None:
        """The path below the folder as the folder itself names it; None if it leads anywhere else."""
        path = path.removeprefix(f"{self._root}/")
        steps = path.split("/")
        # Names with a point in front are none of the memory's files.
        if not path.isprintable() or any(step.startswith(".") and step != "." for step in steps):
            return None
        path = posixpath.normpath(path) if path else "."
        return None if path == "." or path.startswith("/") or unseen(path) or _unsayable(path) else path

    def _lines_now(self, path: str) -> int | None:
        if path not in self._now:
            self._now[path] = self._read(path)
        return self._now[path]

    def _read(self, path: str) -> int | None:
        try:
            with opened(self._root) as root, parent(root, path, create=False) as (folder, name):
                found = read_file(folder, name, max_bytes=self._limits.max_file_bytes)
        except (OSError, FolderRefused):
            return None
        return _count(found.data) if found is not None else None

    def _version(self, at: int) -> str | None:
        """The newest version at a time."""
        times, commits = self._versions
        newest = bisect_right(times, at)
        return commits[newest - 1] if newest else None

    @cached_property
    def _versions(self) -> tuple[list[int], list[str]]:
        """All versions, oldest first. The history has one line; times that jumped back are taken as they come."""
        try:
            told = self._history.repository.run("log", "--reverse", "--format=%ct %H", BRANCH).decode("ascii")
        except HistoryError:  # there is none yet
            return [], []
        times: list[int] = []
        commits: list[str] = []
        for line in told.splitlines():
            time, _, commit = line.partition(" ")
            times.append(max(int(time), times[-1] if times else 0))
            commits.append(commit)
        return times, commits

    def _lines_then(self, commit: str, path: str) -> int | None:
        key = (commit, path)
        if key not in self._then:
            if self._lookups_left <= 0:
                return None
            self._lookups_left -= 1
            name = os.fsencode(f"{commit}:{path}\n")
            try:
                told = self._history.repository.run("cat-file", "--batch", stdin=name)
            except HistoryError:
                told = b""
            about, _, data = told.partition(b"\n")
            # `<id> blob <size>`, the content, a newline; anything else is no file.
            self._then[key] = _count(data[:-1]) if about.split(b" ")[1:2] == [b"blob"] else None
        return self._then[key]


def _count(data: bytes) -> int:
    return data.count(b"\n") + (not data.endswith(b"\n") if data else 0)


def _unsayable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return True
    return False
