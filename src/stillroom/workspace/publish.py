"""Brings a result into the memory folder so that a crash leaves the old folder or the new one, and no edit is lost.

First everything that is needed is on disk: the contents, then the journal. Then each file is put in place if it is
still what was copied; what a person changed meanwhile stays. Then the history: a commit of what a person had changed
before, as the agent saw it, and the result on top, both or none. The journal goes last: with it, all this can be done
again from the start, and comes out the same.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from stillroom.config import StageTwo
from stillroom.workspace.git import Content, Draft
from stillroom.workspace.history import History
from stillroom.workspace.journal import Checkpoint, Contents, Journal, Operation
from stillroom.workspace.layout import may_publish
from stillroom.workspace.trailers import EDITS, RUN, with_trailers
from stillroom.workspace.tree import (
    TEMPORARY_PREFIX,
    Entry,
    blob_id,
    drop,
    names,
    naming,
    opened,
    parent,
    read_file,
    shown,
    write_new,
)

#: A link where a folder should be: which error it is depends on the system.
_NOT_A_FOLDER = frozenset({errno.ELOOP, errno.EMLINK, errno.EISDIR})
#: What file systems without hard links say.
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS})
#: So many files are made durable one by one. Of more, those that code writes are written out by the system all at once
#: when they are in place: one that the power switch left torn there is written again by the next sync.
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
    """Do what the journal says, as far as it is not done, and remove the journal."""
    journal, places = Journal.load(run)
    written: list[str] = []
    deleted: list[str] = []
    kept: list[str] = []
    with Contents(run, places) as contents:
        with opened(journal.root) as root:
            clear_temporary(root)
            many = len(journal.operations) > _FILES_SYNCED_SINGLY
            for operation in journal.operations:
                durable = not many or may_publish(operation.path)
                with naming(operation.path, "put into the folder"):
                    done = _apply(root, operation, contents, checkpoint, limits, durable=durable)
                if done and operation.after is None:
                    _remove_empty_folders(root, operation.path)
                (kept if not done else written if operation.after else deleted).append(operation.path)
            clear_temporary(root)
            os.fsync(root)
        if many:
            os.sync()
        checkpoint("folder written")
        commit = _commit(journal, kept, contents, history)
    checkpoint("committed")
    (run / Journal.NAME).unlink()
    checkpoint("journal removed")
    return PublishReport(
        commit, tuple(map(shown, written)), tuple(map(shown, deleted)), kept_for_user=tuple(map(shown, kept))
    )


def clear_temporary(root: int) -> None:
    """Delete what a killed process left on its way into the folder."""
    for name in names(root):
        if name.startswith(TEMPORARY_PREFIX):
            drop(root, name)


def _apply(
    root: int, operation: Operation, contents: Contents, checkpoint: Checkpoint, limits: StageTwo, *, durable: bool
) -> bool:
    """Put one path in place; False when it is neither what it was nor what it becomes, and therefore a person's."""
    path, before, after = operation
    try:
        with parent(root, path, create=after is not None) as (folder, name):
            status, current = _look(folder, name, limits)
            if current == after and (after is not None or status is None):
                return True
            if current != before or (before is None and status is not None):
                return False
            if after is None:
                os.unlink(name, dir_fd=folder)
            else:
                temporary = f"{TEMPORARY_PREFIX}{after.blob[:16]}"
                write_new(root, temporary, contents.data(after), executable=after.executable, durable=durable)
                checkpoint(f"temporary {shown(path)}")
                if not _put(root, temporary, folder, name, status, after):
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


def _put(root: int, temporary: str, folder: int, name: str, status: os.stat_result | None, after: Entry) -> bool:
    if status is None:
        try:
            os.link(temporary, name, src_dir_fd=root, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            drop(root, temporary)
            return False
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            os.replace(temporary, name, src_dir_fd=root, dst_dir_fd=folder)
            return True
        drop(root, temporary)
        return True
    mode = stat.S_IMODE(status.st_mode) & 0o777
    mode = mode | (mode & 0o444) >> 2 if after.executable else mode & ~0o111
    os.chmod(temporary, mode, dir_fd=root)
    # The last look before it is replaced: an editor may have saved since the content was compared.
    if _stamp(os.stat(name, dir_fd=folder, follow_symlinks=False)) != _stamp(status):
        drop(root, temporary)
        return False
    os.replace(temporary, name, src_dir_fd=root, dst_dir_fd=folder)
    return True


def _look(folder: int, name: str, limits: StageTwo) -> tuple[os.stat_result | None, Entry | None]:
    """Status and entry of what is there: no status for nothing, no entry for anything but a file of ours to judge."""
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None, None
    if not stat.S_ISREG(status.st_mode):
        return status, None
    got = read_file(folder, name, max_bytes=limits.max_file_bytes)
    return status, None if got is None else Entry(blob_id(got.data), got.executable)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode


def _remove_empty_folders(root: int, path: str) -> None:
    """Folders that a deletion emptied go too, but not those at the top."""
    steps = path.split("/")[:-1]
    while len(steps) > 1:
        try:
            with parent(root, "/".join(steps), create=False) as (folder, name):
                os.rmdir(name, dir_fd=folder)
        except OSError:
            return
        steps.pop()


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
