"""The history of the memory folder: one commit a consolidation, in a git directory outside of the folder.

The tip is the baseline: what was last consolidated. Looking (`changes`, `diff`) writes nothing into it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from stillroom.config import StageTwo
from stillroom.errors import HistoryError
from stillroom.workspace import patch
from stillroom.workspace.git import Content, Repository
from stillroom.workspace.scanning import Memory, Scan, scan
from stillroom.workspace.texts import Pair, hunks
from stillroom.workspace.tree import DEFAULTS, Entry

_FOLDER = "folder"

ChangeStatus = Literal["A", "M", "D"]


class Change(NamedTuple):
    """One path that differs from the baseline."""

    status: ChangeStatus
    path: str


def compare(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> list[Change]:
    """Differences of content or executable bit, by path. No renames."""
    changes = [Change("D", path) for path in old.keys() - new.keys()]
    for path, entry in new.items():
        known = old.get(path)
        if known is None:
            changes.append(Change("A", path))
        elif known != entry:
            changes.append(Change("M", path))
    return sorted(changes, key=lambda change: os.fsencode(change.path))


TAKEN = "Take the folder as it is"
"""A folder as it was found, at first or when it was taken over: who wrote what is in it, nobody noted."""


class History:
    """The baseline and what came before it."""

    def __init__(self, git_dir: Path, *, limits: StageTwo = DEFAULTS) -> None:
        self.repository = Repository(git_dir)
        self.limits = limits

    @property
    def git_dir(self) -> Path:
        return self.repository.git_dir

    @property
    def looks(self) -> Path:
        """Where it is kept how the folder's files looked when they were hashed."""
        return self.git_dir / "looks"

    @property
    def copied_looks(self) -> Path:
        """The same for the copy that a run works on, and the one that it leaves to the next."""
        return self.git_dir / "looks.copy"

    def ensure(self, folder: Path, *, now: int) -> Path | None:
        """Make sure that there is a baseline: without a usable one the folder as it is becomes it, unseen by any agent.

        Returns where a history that could not be used was put aside.
        """
        if self.repository.loads():
            self.repository.remove_stale_locks()
            return None
        aside = self._move_aside(now)
        self.repository.create()
        self.take(folder, now=now)
        return aside

    def take(self, folder: Path, *, now: int) -> str | None:
        """Keep the folder as it is, whoever wrote it: it becomes the baseline."""
        return self.commit(folder, TAKEN, now=now)

    def noted_folder(self) -> str | None:
        """The folder that this was last the history of; None when it was never noted."""
        try:
            return os.fsdecode((self.git_dir / _FOLDER).read_bytes())
        except FileNotFoundError:
            return None

    def note_folder(self, folder: Path) -> None:
        """Remember which folder this is the history of."""
        if self.noted_folder() != (name := str(folder.resolve())):
            temporary = self.git_dir / f"{_FOLDER}.new"
            temporary.write_bytes(os.fsencode(name))
            temporary.replace(self.git_dir / _FOLDER)

    def set_aside_if_damaged(self, *, now: int) -> Path | None:
        """Read all of the history, and put it aside if something is missing or damaged; where it is then."""
        return None if self.repository.is_whole() else self._move_aside(now)

    def head(self) -> str | None:
        """The baseline commit."""
        return self.repository.head()

    def baseline(self) -> dict[str, Entry]:
        """The files of the baseline."""
        return self.repository.entries("HEAD")

    def changes(self, folder: Path) -> list[Change]:
        """How the folder differs from the baseline."""
        return compare(self.baseline(), scan(folder, limits=self.limits).files)

    def diff(self, folder: Path, *, max_bytes: int) -> str:
        """The unified diff from the baseline to the folder, cut to `max_bytes` as the format wants it."""
        baseline = self.baseline()
        contents, present = gather(folder, baseline, limits=self.limits)
        changes = compare(baseline, present.files)
        return self.diff_of(changes, baseline, present.files, lambda path: contents[path], max_bytes=max_bytes)

    def diff_of(
        self,
        changes: Sequence[Change],
        baseline: Mapping[str, Entry],
        present: Mapping[str, Entry],
        content: Callable[[str], Content],
        *,
        max_bytes: int,
    ) -> str:
        """The same for `changes` between two lists of files; `content` is asked for what is new or modified."""
        old = self.repository.blobs(baseline[path].blob for status, path in changes if status != "A")
        edited = [path for status, path in changes if status == "M"]
        pairs = [Pair(old[baseline[path].blob], content(path).data) for path in edited]
        hunks_of = dict(zip(edited, hunks(pairs), strict=True))

        def parts() -> Iterator[bytes]:
            for status, path in changes:
                if status == "A":
                    yield patch.added(path, content(path).data, present[path])
                elif status == "D":
                    yield patch.deleted(path, old[baseline[path].blob], baseline[path])
                else:
                    yield patch.modified(path, hunks_of[path], baseline[path], present[path])

        return patch.bounded(parts(), max_bytes=max_bytes)

    def commit(self, folder: Path, message: str, *, now: int) -> str | None:
        """Make the folder the baseline; None when it already is."""
        head = self.head()
        changes = changes_to(folder, {} if head is None else self.baseline(), limits=self.limits)
        if head is not None and not changes:
            return None
        return self.repository.commit(changes, parent=head, message=message, now=now)

    def _move_aside(self, now: int) -> Path | None:
        if not self.git_dir.is_symlink() and not self.git_dir.exists():
            return None
        for attempt in range(1000):
            aside = self.git_dir.with_name(f"{self.git_dir.name}.broken-{now}" + (f"-{attempt}" if attempt else ""))
            if not aside.exists() and not aside.is_symlink():
                self.git_dir.rename(aside)
                return aside
        raise HistoryError(f"`{self.git_dir}` is unusable and can't be moved aside")


def gather(
    folder: Path, known: Mapping[str, Entry], *, limits: StageTwo, memory: Memory | None = None
) -> tuple[dict[str, Content], Scan]:
    """The folder's files, and the contents of those that `known` doesn't have like that."""
    contents: dict[str, Content] = {}

    def wanted(path: str, entry: Entry) -> bool:
        return known.get(path) != entry

    def visit(path: str, data: bytes, entry: Entry) -> None:
        if wanted(path, entry):
            contents[path] = Content(data, entry.executable)

    return contents, scan(folder, limits=limits, visit=visit, memory=memory, wanted=wanted)


def changes_to(folder: Path, known: Mapping[str, Entry], *, limits: StageTwo) -> dict[str, Content | None]:
    """What has to be written so that `known` becomes the folder."""
    contents, present = gather(folder, known, limits=limits)
    return {**contents, **dict.fromkeys(known.keys() - present.files.keys())}
