"""The home and the memory folder: who may read them, and whether there is room."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from stillroom.config import Settings
from stillroom.errors import WorkspaceError
from stillroom.insight.doctor.finding import Found, Severity, found, ok
from stillroom.system import READ_ITSELF, Room, is_anothers, open_to_others

#: What a consolidation may need: two copies of the folder, a version of it, the database's log.
_LITTLE_ROOM_BYTES = 200 * 1024 * 1024
#: Less, and SQLite itself soon fails.
_NO_ROOM_BYTES = 5 * 1024 * 1024
#: A person writes it, and it holds no key.
_NOT_OURS = frozenset({"config.toml"})
_TOLD = 3


def check_places(settings: Settings) -> Iterator[Found]:
    """Owner, mode and room of the two folders."""
    home, root = settings.home, settings.root
    if not home.exists():
        yield found("home", "note", "there is none yet", where=str(home), remedy="stillroom run --backfill")
        return
    if not home.is_dir():
        yield found("home", "error", "it is no folder", where=str(home), remedy="move the file away")
        return
    yield from _folder("home", home)
    yield from _files(home)
    if root.is_symlink():
        remedy = f"set `memories.root` to `{root.resolve()}`"
        yield found("memory", "error", "the memory folder is a link", where=str(root), remedy=remedy)
    elif root.is_dir():
        yield from _folder("memory", root)
    yield from _room(home)


def _folder(check: str, path: Path) -> Iterator[Found]:
    status = path.stat()
    if is_anothers(status):
        remedy = f"sudo chown -R \"$USER\" '{path}'"
        yield found(check, "error", f"it belongs to user {status.st_uid}", where=str(path), remedy=remedy)
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK) or not stat.S_IMODE(status.st_mode) & 0o200:
        what = "it is read-only" if os.access(path, os.R_OK | os.X_OK) else "it can't be read"
        yield found(check, "error", what, where=str(path), remedy=f"chmod u+rwx '{path}'")
    elif open_to_others(status):
        yield _open_to_others(check, [path], mode=0o700)
    else:
        yield ok(check, "yours alone", where=str(path))


def _files(home: Path) -> Iterator[Found]:
    readable = []
    for entry in sorted(os.scandir(home), key=lambda entry: entry.name):
        if entry.name in _NOT_OURS or not entry.is_file(follow_symlinks=False):
            continue
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:  # a file of SQLite's that went
            continue
        if open_to_others(status) and not is_anothers(status):
            readable.append(Path(entry.path))
    if readable:
        yield _open_to_others("home", readable, mode=0o600)


def _open_to_others(check: str, paths: list[Path], *, mode: int) -> Found:
    told = ", ".join(path.name for path in paths[:_TOLD]) + (" …" if len(paths) > _TOLD else "")
    places = " ".join(f"'{path}'" for path in paths)
    return found(
        check,
        "warning",
        f"other users of this machine may read {'it' if mode == 0o700 else told}",
        where=str(paths[0]),
        remedy=f"chmod {mode:o} {places}",
        mend=partial(_close, paths, mode),
    )


def _close(paths: list[Path], mode: int) -> str:
    for path in paths:
        try:
            # A home may be a link that its owner made; a file in it may not become one meanwhile.
            file = os.open(path.resolve() if mode == 0o700 else path, READ_ITSELF)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise WorkspaceError(f"`{path}`: {error.strerror}") from error
        try:
            os.fchmod(file, mode)
        finally:
            os.close(file)
    return f"mode {mode:o}"


def _room(home: Path) -> Iterator[Found]:
    try:
        disk = Room(home)
    except OSError as error:
        yield found("disk", "warning", f"its room can't be asked for: {error.strerror}", where=str(home))
        return
    told = f"{disk.free_bytes / 1e6:,.0f} MB are free"
    if disk.is_read_only:
        remedy = "mount it for writing, or set STILLROOM_HOME"
        yield found("disk", "error", "the file system is read-only", where=str(home), remedy=remedy)
    elif disk.free_bytes < _LITTLE_ROOM_BYTES:
        severity: Severity = "error" if disk.free_bytes < _NO_ROOM_BYTES else "warning"
        yield found("disk", severity, f"only {told}", where=str(home), remedy=f"df -h '{home}'  # make some room")
    else:
        yield ok("disk", told, where=str(home))


__all__ = ["check_places"]
