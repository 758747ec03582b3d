"""Lists a folder of the memory: what is in it, not what is below (spec §3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from stillroom.config import LOOKUP, Lookup
from stillroom.errors import RecallError
from stillroom.folders import listed
from stillroom.recall.browse.paging import page_length, take_page
from stillroom.recall.browse.paths import components, opened_path, quoted, readable
from stillroom.sessions.truncate import BYTES_PER_TOKEN

#: What an entry costs beside its path when it is sent as JSON.
_ENTRY_BYTES = 40


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One file or folder."""

    path: str
    entry_type: Literal["file", "directory"]


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a folder's entries, in the order of their paths."""

    path: str | None
    entries: tuple[Entry, ...]
    #: Where the next page begins; none: this is the last.
    next_cursor: str | None
    #: Whether there is a next page.
    truncated: bool


def list_memories(
    root: Path,
    *,
    path: str | None = None,
    cursor: str | None = None,
    max_results: int | None = None,
    limits: Lookup = LOOKUP,
) -> Listing:
    """What is in the folder `path`; a file lists itself. Links, special files and hidden names are not shown."""
    page = take_page(
        _entries(root, path),
        cursor=cursor,
        max_results=page_length(max_results, limits.max_list_results),
        max_bytes=limits.max_answer_tokens * BYTES_PER_TOKEN,
        size=lambda entry: len(entry.path.encode()) + _ENTRY_BYTES,
    )
    return Listing(
        path=path and readable(path),
        entries=page.results,
        next_cursor=page.next_cursor,
        truncated=page.next_cursor is not None,
    )


def _entries(root: Path, path: str | None) -> Iterator[Entry]:
    at = "/".join(components(path))
    with opened_path(root, path) as node:
        if not node.is_folder:
            yield Entry(path=readable(at), entry_type="file")
            return
        try:
            with listed(node.descriptor) as listing:
                shown = [entry for entry in listing if not entry.name.startswith(".")]
        except OSError as error:
            raise RecallError(f"{quoted(path or '.')} can't be listed: {error.strerror}") from error
        prefix = f"{at}/" if at else ""
        for entry in sorted(shown, key=lambda entry: entry.name):
            if entry.is_file(follow_symlinks=False):
                yield Entry(path=readable(prefix + entry.name), entry_type="file")
            elif entry.is_dir(follow_symlinks=False):
                yield Entry(path=readable(prefix + entry.name), entry_type="directory")
