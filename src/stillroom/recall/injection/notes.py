"""Reads the notes in `extensions/ad_hoc/notes/`: a session is given them as they are, before any consolidation."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from stillroom.errors import WorkspaceError
from stillroom.offline.folder.pointing import points
from stillroom.recall.injection.labels import Label, of_line
from stillroom.recall.injection.prepared import NOTES as FOLDER
from stillroom.recall.injection.prepared import is_note
from stillroom.recall.injection.statements import NOTES, Statement
from stillroom.workspace.tree import opened, parent, read_file

#: The newest ones; more of them, or longer ones, have no room in any session.
_MOST_NOTES = 400
_MOST_BYTES = 16_000
_SKIPPED = re.compile(r"\s*(?:#{1,6}\s|---\s*$|```|~~~|<!--)")
_BULLET = re.compile(r"\s{0,3}(?:[-*+]|\d{1,3}[.)])\s+")


class Note(NamedTuple):
    """One statement of a note, and for which project it is; an empty label: for every project."""

    label: Label
    statement: Statement
    #: Whether the note points at a project ("in this repo").
    points: bool


def read_notes(root: Path, clean: Callable[[str], str]) -> list[Note]:
    """The statements of all notes, the newest file first. No link is followed."""
    found: list[Note] = []
    try:
        with opened(root) as top, parent(top, f"{FOLDER}/x.md", create=False) as (folder, _):
            names = sorted(filter(is_note, os.listdir(folder)), reverse=True)[:_MOST_NOTES]
            for name in names:
                try:
                    got = read_file(folder, name, max_bytes=_MOST_BYTES)
                except OSError:  # a link
                    continue
                if got is not None:
                    found += _statements(name, clean(got.data.decode("utf-8", "replace")))
    except (OSError, WorkspaceError):
        return found
    return found


def _statements(name: str, text: str) -> Iterator[Note]:
    rows = list(_joined(text))
    if not rows:
        return
    label, is_pointing = of_line(f"- {rows[0]}"), any(map(points, rows))
    for row in rows:
        yield Note(label, Statement(f"- {row} ({name})", kind=NOTES, title="Notes", file=f"{FOLDER}/"), is_pointing)


def _joined(text: str) -> Iterator[str]:
    """Bullets and paragraphs, each on one line."""
    held: list[str] = []
    for row in [*text.split("\n"), ""]:
        is_new = not row.strip() or _SKIPPED.match(row) or _BULLET.match(row)
        if is_new and held:
            yield " ".join(held)
            held = []
        if row.strip() and not _SKIPPED.match(row):
            held.append(" ".join(_BULLET.sub("", row, count=1).split()))


__all__ = ["Note", "read_notes"]
