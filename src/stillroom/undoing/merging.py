"""What the folder becomes when versions are taken back: what it was before them, with a person's edits since."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stillroom.undoing.versions import Version
from stillroom.workspace.artifacts import is_written_by_code
from stillroom.workspace.git import Content, Repository
from stillroom.workspace.layout import LINES, may_publish
from stillroom.workspace.texts import merge
from stillroom.workspace.tree import Entry

Files = dict[str, Content]
"""Contents by path, of what a consolidation may write."""


class Merge(msgspec.Struct):
    """Files on their way back, with edits put in one after the other."""

    repository: Repository
    files: Files
    #: Files in which an edit and what is taken back can't be told apart; they are as they were before both.
    conflicts: set[str] = msgspec.field(default_factory=set)

    def apply(self, old: Mapping[str, Content], new: Mapping[str, Content]) -> None:
        """Put the changes of one edit in: from `old` to `new`."""
        for path in sorted(old.keys() | new.keys()):
            if path == LINES:
                continue  # no person edits it
            base, other, current = old.get(path), new.get(path), self.files.get(path)
            if base == other or current == other:
                continue
            if current == base:
                merged = other
            elif current is None or base is None or other is None:
                self.conflicts.add(path)
                continue
            else:
                data = merge(current.data, base.data, other.data)
                if data is None:
                    self.conflicts.add(path)
                    continue
                merged = Content(data, other.executable)
            if merged is None:
                del self.files[path]
            else:
                self.files[path] = merged


def is_edit(version: Version) -> bool:
    """Whether a person made it: what they changed between two runs, or a folder that was taken as it was. What they
    removed stays out by its tombstone."""
    return not version.subject.startswith(("Consolidate ", "Undo ", "Forget ", "Redact ", "Remove "))


def publishable(repository: Repository, commit: str | None) -> Files:
    """What a consolidation may write, in a version; nothing before the first."""
    entries = {} if commit is None else repository.entries(commit)
    return contents(repository, {path: entry for path, entry in entries.items() if may_publish(path)})


def written_by_code(repository: Repository, commit: str | None) -> Files:
    """What code copied into a version."""
    entries = {} if commit is None else repository.entries(commit)
    return contents(repository, {path: entry for path, entry in entries.items() if is_written_by_code(path)})


def contents(repository: Repository, entries: Mapping[str, Entry]) -> Files:
    blobs = repository.blobs(entry.blob for entry in entries.values())
    return {path: Content(blobs[entry.blob], entry.executable) for path, entry in entries.items()}
