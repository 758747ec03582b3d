"""Brings what code makes of the outputs into a folder: only what differs is written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from stillroom import folders
from stillroom.config import StageTwo
from stillroom.workspace.artifacts import RAW_MEMORIES, SUMMARIES, Artifact, is_written_by_code
from stillroom.workspace.scanning import scan
from stillroom.workspace.tree import DEFAULTS, TEMPORARY_PREFIX, Entry, drop, naming, opened, parent, write_new


class SyncReport(msgspec.Struct, frozen=True):
    """Paths that a sync changes, or changed."""

    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    unchanged: int = 0

    @property
    def clean(self) -> bool:
        return not self.written and not self.deleted


def plan(wanted: Mapping[str, Artifact], present: Mapping[str, Entry]) -> SyncReport:
    """What `sync` would change where these files are."""
    written = tuple(path for path, artifact in wanted.items() if present.get(path) != artifact.entry)
    summaries = (path for path in present if path != RAW_MEMORIES and is_written_by_code(path))
    deleted = tuple(sorted(path for path in summaries if path not in wanted and path.count("/") == 1))
    return SyncReport(written, deleted, len(wanted) - len(written))


def sync(
    folder: Path,
    wanted: Mapping[str, Artifact],
    *,
    present: Mapping[str, Entry] | None = None,
    limits: StageTwo = DEFAULTS,
) -> SyncReport:
    """Write what differs and delete stale summaries; with `present`, the files of an earlier scan, it doesn't look."""
    known = scan(folder, limits=limits).files if present is None else present
    report = plan(wanted, known)
    if report.clean:
        return report
    with opened(folder) as root, naming(SUMMARIES, "opened"), parent(root, f"{SUMMARIES}/x", create=True) as (below, _):
        for path in (*report.deleted, *report.written):
            descriptor, name = (root, path) if path == RAW_MEMORIES else (below, path.removeprefix(f"{SUMMARIES}/"))
            with naming(path, "written"):
                if path in wanted:
                    _put(root, descriptor, name, wanted[path].data, fresh=path not in known)
                else:
                    folders.unlink(descriptor, name)
    return report


def _put(root: int, descriptor: int, name: str, data: bytes, *, fresh: bool) -> None:
    """Write one file. A new one is created in its place: a torn one is written again by the next sync."""
    if fresh:
        try:
            write_new(descriptor, name, data, executable=False, durable=False)
        except FileExistsError:
            pass  # something that is no regular file, or came meanwhile
        else:
            return
    temporary = f"{TEMPORARY_PREFIX}sync"
    drop(root, temporary)
    write_new(root, temporary, data, executable=False, durable=False)
    folders.replace(root, temporary, descriptor, name)
