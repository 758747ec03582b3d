"""A copy of the memory folder for the agent to work on: whatever becomes of it, the folder stays as it is.

    with open_staging(root, staging_dir, history, run_id=run_id) as staging:
        sync(staging.path, render(outputs), present=staging.copied)
        changes = staging.seal()               # from here on: what the agent sees
        staging.write_diff(max_bytes=…)
        …                                      # the agent works in `staging.path`
        findings = check_artifacts(staging.path, before=staging.before(), limits=limits)
        report = staging.publish("Consolidate", now=now)

Leaving the block without `publish` discards the copy. A killed process leaves a folder that `recover` clears.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from stillroom.config import StageTwo
from stillroom.errors import InvalidArtifacts, WorkspaceError
from stillroom.system import LOCK_FILE, lock
from stillroom.workspace.artifacts import Artifact
from stillroom.workspace.copying import copy
from stillroom.workspace.diff import write_workspace_diff
from stillroom.workspace.git import Content
from stillroom.workspace.history import Change, History, compare, gather
from stillroom.workspace.journal import Checkpoint, Journal, keep, nothing
from stillroom.workspace.layout import HANDBOOK, LINES, SUMMARY, may_publish
from stillroom.workspace.publish import PublishReport, carry_out
from stillroom.workspace.remembered import Remembered
from stillroom.workspace.runs import LOCK, SPARE, TREE, locked, make_ours, retire
from stillroom.workspace.scanning import Scan, scan
from stillroom.workspace.syncing import SyncReport, plan
from stillroom.workspace.tree import DEFAULTS, Entry, naming, shown
from stillroom.workspace.validate import Before

_RUN_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,80}", re.ASCII)


class Outlook(msgspec.Struct, frozen=True):
    """Whether there is anything to do."""

    #: What code would write.
    sync: SyncReport
    #: How the folder differs from the baseline already.
    changes: list[Change]

    @property
    def clean(self) -> bool:
        return self.sync.clean and not self.changes


class Staging(msgspec.Struct):
    """One run's copy of the folder."""

    root: Path
    run: Path
    history: History
    #: The folder's files as they were copied.
    copied: dict[str, Entry]
    limits: StageTwo
    checkpoint: Checkpoint
    #: Of the files of the copy.
    memory: Remembered
    _lock: int
    _baseline: dict[str, Entry] = {}
    _head: str | None = None
    _seen: Scan | None = None
    _changes: list[Change] = []
    _contents: dict[str, Content] = {}
    _open: bool = True

    @property
    def path(self) -> Path:
        """Where the agent works."""
        return self.run / TREE

    @property
    def seen(self) -> Mapping[str, Entry]:
        """What the agent is shown."""
        return self._sealed().files

    @property
    def changes(self) -> list[Change]:
        """How what the agent is shown differs from the baseline."""
        self._sealed()
        return list(self._changes)

    def seal(self) -> list[Change]:
        """Remember the copy as the agent will find it, and tell what changed since the baseline."""
        self._head = self.history.head()
        self._baseline = self.history.baseline()
        known = {path: entry for path, entry in self._baseline.items() if self.copied.get(path) == entry}
        self._contents, self._seen = gather(self.path, known, limits=self.limits, memory=self.memory)
        self._changes = [each for each in compare(self._baseline, self._seen.files) if each.path != LINES]
        self.checkpoint("sealed")
        return self.changes

    def diff(self, *, max_bytes: int) -> str:
        """The unified diff of `changes`."""
        return self.history.diff_of(
            self.changes, self._baseline, self.seen, lambda path: self._contents[path], max_bytes=max_bytes
        )

    def write_diff(self, *, max_bytes: int) -> Path:
        """Write the diff file for the agent to read: where there is no handbook yet, the list of files alone, as a diff
        would be a copy of all of them."""
        if not self.before().handbook.strip():
            changes = [change for change in self.changes if change.path not in (HANDBOOK, SUMMARY)]
            return write_workspace_diff(self.path, changes, None)
        return write_workspace_diff(self.path, self.changes, self.diff(max_bytes=max_bytes))

    def before(self) -> Before:
        """What the validator has to know about the time before the agent."""
        handbook = self._contents.get(HANDBOOK)
        known = handbook.data if handbook is not None else None
        if known is None and HANDBOOK in self.seen:
            known = self.history.repository.blobs([self.seen[HANDBOOK].blob])[self.seen[HANDBOOK].blob]
        gone = frozenset(path for status, path in self.changes if status == "D")
        return Before(files=self.seen, handbook=known or b"", deleted=gone)

    def shown_files(self) -> dict[str, Content]:
        """Everything that the agent is shown, with its contents."""
        known = [entry for path, entry in self.seen.items() if path not in self._contents]
        blobs = self.history.repository.blobs(sorted({entry.blob for entry in known})) if known else {}
        return {
            path: self._contents.get(path) or Content(blobs[entry.blob], entry.executable)
            for path, entry in self.seen.items()
        }

    def publish(self, message: str, *, now: int) -> PublishReport:
        """Bring the agent's result into the folder and make it the baseline.

        A file that a person changed since it was copied stays theirs, and is reported; the baseline takes what the
        agent saw of it, so that the next diff shows the edit. Killed at any point, `recover` completes or discards it.
        """
        seen = self._sealed()
        if self.history.head() != self._head:
            raise WorkspaceError("the history went on since this run began", hint="run `stillroom run` again")
        written, after = gather(self.path, seen.files, limits=self.limits, memory=self.memory)
        if refused := after.links + after.odd + after.too_large:
            raise InvalidArtifacts(f"the result holds `{shown(refused[0])}`, which is no file that can be published")
        final = {path: entry for path, entry in seen.files.items() if not may_publish(path)}
        final.update({path: entry for path, entry in after.files.items() if may_publish(path)})
        ignored = tuple(shown(path) for _, path in compare(seen.files, after.files) if not may_publish(path))
        contents = {seen.files[path].blob: content for path, content in self._contents.items()}
        contents.update({after.files[path].blob: written[path] for path in written if may_publish(path)})
        journal = Journal.plan(
            run_id=self.run.name,
            root=self.root,
            message=message,
            now=now,
            head=self._head,
            baseline=self._baseline,
            copied=self.copied,
            seen=seen.files,
            final=final,
        )
        keep(self.run, journal, contents, checkpoint=self.checkpoint)
        report = carry_out(self.run, self.history, checkpoint=self.checkpoint, limits=self.limits)
        self._close()
        return PublishReport(report.commit, report.written, report.deleted, report.kept_for_user, ignored)

    def discard(self) -> None:
        """Give the copy up. The folder was never touched."""
        if self._open:
            self._close()

    def _close(self) -> None:
        self._open = False
        self.memory.save()
        with locked(self.run.parent / LOCK, wait=True):
            os.close(self._lock)  # Windows removes no open file
            retire(self.run)

    def _sealed(self) -> Scan:
        if self._seen is None:
            self.seal()
        assert self._seen is not None
        return self._seen

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open and not (self.run / Journal.NAME).exists():
            self.discard()
        elif self._open:
            # Half published: what is left belongs to `recover`, once nobody holds the lock.
            self._open = False
            os.close(self._lock)


def look(root: Path, history: History, wanted: Mapping[str, Artifact], *, limits: StageTwo = DEFAULTS) -> Outlook:
    """What a run would find, with one scan of the folder; nothing is copied, and nothing in the folder written."""
    with Remembered.kept(history.looks) as memory:
        present = scan(root, limits=limits, memory=memory).files
    return Outlook(plan(wanted, present), compare(history.baseline(), present))


def open_staging(
    root: Path,
    staging_dir: Path,
    history: History,
    *,
    run_id: str,
    limits: StageTwo = DEFAULTS,
    checkpoint: Checkpoint = nothing,
) -> Staging:
    """Copy the folder's regular files; links, pipes and sockets are not. Nothing in the folder changes."""
    if not _RUN_ID.fullmatch(run_id) or run_id == SPARE:
        raise WorkspaceError(f"`{run_id}` can't be the name of a run")
    make_ours(staging_dir)
    run = staging_dir / run_id
    with locked(staging_dir / LOCK, wait=True):
        with naming(str(run), "created"):
            run.mkdir(mode=0o700)
        held = os.open(run / LOCK, LOCK_FILE, 0o600)
        lock(held, wait=True)
        if (staging_dir / SPARE).is_dir():
            (staging_dir / SPARE).rename(run / TREE)
    try:
        checkpoint("locked")
        target_memory = Remembered.load(history.copied_looks)
        with Remembered.kept(history.looks) as memory:
            copied = copy(root, run / TREE, memory=memory, target_memory=target_memory, limits=limits)
        checkpoint("copied")
    except BaseException:
        with locked(staging_dir / LOCK, wait=True):
            os.close(held)  # Windows removes no open file
            retire(run)
        raise
    return Staging(root, run, history, copied, limits, checkpoint, target_memory, held)
