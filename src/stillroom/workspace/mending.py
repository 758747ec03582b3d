"""Changes files of the live memory folder one by one, each only if nobody else changes it meanwhile.

For what must not wait for a consolidation: a copy of the folder would hold what is to go once more.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import msgspec

from stillroom import folders
from stillroom.config import StageTwo
from stillroom.workspace.journal import Checkpoint
from stillroom.workspace.placing import clear_temporary, remove, replace
from stillroom.workspace.scanning import scan
from stillroom.workspace.tree import TEMPORARY_PREFIX, drop, naming, opened, parent, read_file, shown, write_new

Change = Callable[[str, bytes], bytes | None]
"""A file's new content, or the same; None: the file goes."""

#: An editor that saves over and over is told of, not waited for.
_TRIES = 5


class Mended(msgspec.Struct, frozen=True):
    """What became of the folder."""

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    #: Changed by somebody else each time that it was looked at.
    restless: tuple[str, ...] = ()


def mend(folder: Path, change: Change, *, limits: StageTwo, checkpoint: Checkpoint) -> Mended:
    """Put every regular file of the folder through `change`. One that is too large, or is no file, is left alone.

    Raises `WorkspaceError`. Killed at any point, every file is as it was or as it becomes, and doing it again does the
    rest.
    """
    written: list[str] = []
    deleted: list[str] = []
    restless: list[str] = []
    with opened(folder) as root:
        clear_temporary(root)
        for path in scan(folder, limits=limits).files:
            with naming(path, "changed"):
                outcome = _mend(root, path, change, limits)
            if outcome is not None:
                {"written": written, "deleted": deleted, "restless": restless}[outcome].append(shown(path))
                checkpoint(f"mended {shown(path)}")
        folders.sync(root)
    return Mended(tuple(written), tuple(deleted), tuple(restless))


def _mend(root: int, path: str, change: Change, limits: StageTwo) -> str | None:
    temporary = f"{TEMPORARY_PREFIX}mended"
    for _ in range(_TRIES):
        try:
            with parent(root, path, create=False) as (folder, name):
                got = read_file(folder, name, max_bytes=limits.max_file_bytes)
                if got is None:
                    return None
                new = change(path, got.data)
                if new == got.data:
                    return None
                if new is not None:
                    write_new(root, temporary, new, executable=got.executable, durable=True)
                    if replace(root, temporary, folder, name, got.status, executable=got.executable):
                        return "written"
                    drop(root, temporary)
                elif remove(folder, name, got.status):
                    return "deleted"
        except FileNotFoundError:  # gone since it was listed
            drop(root, temporary)
            return None
        except OSError as error:
            drop(root, temporary)
            if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            return None  # a link by now
    return "restless"
