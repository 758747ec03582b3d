"""Brings a result into the memory folder so that a crash leaves the old folder or the new one, and no edit is lost.

First everything that is needed is on disk: the contents, then the journal, then each file under another name in the
folder. Then each is put in place if what is there is still what was copied; what a person changed meanwhile stays. Then
the history: a commit of what a person had changed before, as the agent saw it, and the result on top, both or none. The
journal goes last: with it, all this can be done again from the start, and comes out the same.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from stillroom import folders
from stillroom.config import StageTwo
from stillroom.workspace.git import Content, Draft
from stillroom.workspace.history import History
from stillroom.workspace.journal import Checkpoint, Contents, Journal, Operation
from stillroom.workspace.layout import HANDBOOK, LINES, SUMMARY
from stillroom.workspace.placing import clear_temporary, create, remove, replace
from stillroom.workspace.trailers import EDITS, RUN, with_trailers
from stillroom.workspace.tree import (
    TEMPORARY_PREFIX,
    Entry,
    blob_id,
    naming,
    opened,
    parent,
    read_file,
    shown,
    write_new,
)

#: A link where a folder should be: which error it is depends on the system.
_NOT_A_FOLDER = frozenset({errno.ELOOP, errno.EMLINK, errno.EISDIR})
#: So many files are made durable one by one; for more it is quicker to have the system write out everything once.
_FILES_SYNCED_SINGLY = 64


class PublishReport(msgspec.Struct, frozen=True):
    """What came of a result."""

    #: The new baseline; None when nothing differs from the old one.
    commit: str | None = None
    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    #: Changed by a person since they were copied, and left alone.
    kept_for_user: tuple[str, ...] = ()
    #: Changed by the agent, but not its to change.
    ignored: tuple[str, ...] = ()


def carry_out(run: Path, history: History, *, checkpoint: Checkpoint, limits: StageTwo) -> PublishReport:
    """Do what the journal says, as far as it is not done, and remove the journal.

    Raises `WorkspaceError`; on a full disk before anything of the folder is changed.
    """
    journal, places = Journal.load(run)
    many = len(journal.operations) > _FILES_SYNCED_SINGLY and hasattr(os, "sync")
    with Contents(run, places) as contents, opened(journal.root) as root:
        clear_temporary(root)
        try:
            # 1. Whatever needs room.
            history.repository.check_room(sum(size for _, size in places.values()))
            temporaries = _write(root, journal.operations, contents, limits, durable=not many)
            if many:
                os.sync()
            checkpoint("temporaries written")
            # 2. The folder.
            placed, kept = _place(root, journal.operations, temporaries, checkpoint, limits)
        finally:
            clear_temporary(root)
        if many:
            os.sync()
        else:
            _sync_folders(root, placed)
        checkpoint("folder written")
        # 3. The history.
        commit = _commit(journal, [operation.path for operation in kept], contents, history)
    checkpoint("committed")
    (run / Journal.NAME).unlink()
    checkpoint("journal removed")
    placed, kept = ([each for each in those if each.path != LINES] for those in (placed, kept))
    return PublishReport(
        commit=commit,
        written=tuple(shown(operation.path) for operation in placed if operation.after is not None),
        deleted=tuple(shown(operation.path) for operation in placed if operation.after is None),
        kept_for_user=tuple(shown(operation.path) for operation in kept),
    )


def _write(
    root: int, operations: Sequence[Operation], contents: Contents, limits: StageTwo, *, durable: bool
) -> dict[str, str]:
    """Temporary files for what is not in place yet, by path."""
    temporaries: dict[str, str] = {}
    for number, operation in enumerate(operations):
        if operation.after is None or _is_done(root, operation, limits):
            continue
        temporaries[operation.path] = temporary = f"{TEMPORARY_PREFIX}{number}"
        with naming(operation.path, "put into the folder"):
            data = contents.data(operation.after)
            write_new(root, temporary, data, executable=operation.after.executable, durable=durable)
    return temporaries


def _is_done(root: int, operation: Operation, limits: StageTwo) -> bool:
    try:
        with parent(root, operation.path, create=False) as (folder, name):
            return _look(folder, name, limits)[1] == operation.after
    except OSError:
        return False  # whatever stands in the way is judged when the file is to be put in its place


def _place(
    root: int,
    operations: Sequence[Operation],
    temporaries: Mapping[str, str],
    checkpoint: Checkpoint,
    limits: StageTwo,
) -> tuple[list[Operation], list[Operation]]:
    """Bring the folder about; what is in place, and what is a person's and stays."""
    placed: list[Operation] = []
    kept: list[Operation] = []
    for operation in sorted(operations, key=lambda each: each.path == LINES):
        if operation.path == LINES and any(each.path in (HANDBOOK, SUMMARY) for each in kept):
            kept.append(operation)  # a record speaks of the files that were made with it
            continue
        with naming(operation.path, "put into the folder"):
            done = _apply(root, operation, temporaries.get(operation.path), checkpoint, limits)
        if done and operation.after is None:
            _remove_empty_folders(root, operation.path)
        (placed if done else kept).append(operation)
    return placed, kept


def _apply(root: int, operation: Operation, temporary: str | None, checkpoint: Checkpoint, limits: StageTwo) -> bool:
    """Put one path in place; False when it is neither what it was nor what it becomes, and therefore a person's."""
    path, before, after = operation
    try:
        with parent(root, path, create=after is not None) as (folder, name):
            status, current = _look(folder, name, limits)
            if current == after and (after is not None or status is None):
                return True
            if current != before or (before is None and status is not None):
                return False
            checkpoint(f"compared {shown(path)}")
            if not _change(root, folder, name, temporary, status, after):
                return False
    except FileNotFoundError:
        # A folder on the way is gone, and the file with it.
        return after is None
    except (NotADirectoryError, FileExistsError):
        return False
    except OSError as error:
        if error.errno in _NOT_A_FOLDER:
            return False
        raise
    checkpoint(f"done {shown(path)}")
    return True


def _change(
    root: int, folder: int, name: str, temporary: str | None, status: os.stat_result | None, after: Entry | None
) -> bool:
    if status is None:
        return temporary is not None and create(root, temporary, folder, name)
    if after is None:
        return remove(folder, name, status)
    return temporary is not None and replace(root, temporary, folder, name, status, executable=after.executable)


def _look(folder: int, name: str, limits: StageTwo) -> tuple[os.stat_result | None, Entry | None]:
    """Status and entry of what is there: no status for nothing, no entry for anything but a file of ours to judge."""
    try:
        status = folders.status(folder, name)
    except FileNotFoundError:
        return None, None
    if not stat.S_ISREG(status.st_mode):
        return status, None
    got = read_file(folder, name, max_bytes=limits.max_file_bytes)
    return status, None if got is None else Entry(blob_id(got.data), got.executable)


def _remove_empty_folders(root: int, path: str) -> None:
    """Folders that a deletion emptied go too, but not those at the top."""
    steps = path.split("/")[:-1]
    while len(steps) > 1:
        try:
            with parent(root, "/".join(steps), create=False) as (folder, name):
                folders.remove_folder(folder, name)
        except OSError:
            return
        steps.pop()


def _sync_folders(root: int, placed: Iterable[Operation]) -> None:
    """Make it durable which names the folders hold."""
    for folder in {operation.path.rpartition("/")[0] for operation in placed}:
        try:
            with parent(root, f"{folder}/x" if folder else "x", create=False) as (descriptor, _):
                folders.sync(descriptor)
        except OSError:
            continue  # gone, with what was in it
    folders.sync(root)


def _commit(journal: Journal, kept: Iterable[str], contents: Contents, history: History) -> str | None:
    trailer = f"{RUN}: {journal.run_id}"
    head = history.head()
    if head != journal.head:
        # Committed before the crash; or the history was replaced since, and the next diff shows everything.
        said = [] if head is None else history.repository.message(head).splitlines()
        return head if trailer in said else None
    wanted = dict(journal.commit)
    for path in kept:
        wanted.pop(path, None)
        if path in journal.seen:
            wanted[path] = journal.seen[path]
    drafts = [
        Draft(with_trailers(message, {RUN: journal.run_id}), _read(changes, contents))
        for message, changes in ((EDITS, journal.edits), (journal.message, wanted))
        if changes
    ]
    return history.repository.commit_all(drafts, parent=journal.head, now=journal.now) if drafts else None


def _read(changes: Mapping[str, Entry | None], contents: Contents) -> dict[str, Content | None]:
    return {
        path: None if entry is None else Content(contents.data(entry), entry.executable)
        for path, entry in changes.items()
    }
