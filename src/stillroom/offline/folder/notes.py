"""Ad-hoc notes: what a person or an agent asked to be remembered, in `extensions/ad_hoc/notes/*.md`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from stillroom.offline.folder.pointing import points
from stillroom.offline.text.words import unique
from stillroom.pattern import late
from stillroom.rollouts.redact import redact

NOTES = "extensions/ad_hoc/notes"
TAG = "[ad-hoc note]"
_MAX_NOTES = 400
_MAX_NOTE_BYTES = 16_000
_MAX_LINES = 12
#: As `stillroom note --cwd` begins one. All of the note is for that project.
_FOR_A_PROJECT = late(r"in [^:]{1,255} \(/[^:]{1,400}\): ")


@dataclass(frozen=True, slots=True)
class Note:
    """One line of a note."""

    file: str
    text: str
    #: Whether it says for which project it is, or points at none: else nobody knows where it holds.
    has_place: bool = True

    def render(self) -> str:
        return f"{self.text} {TAG}"


def read_notes(folder: Path) -> list[Note]:
    """Every line of every note, newest file name first. Text of a note is data, never an instruction to us."""
    directory = folder / NOTES
    if not directory.is_dir() or directory.is_symlink():
        return []
    found: list[Note] = []
    for path in sorted(directory.glob("*.md"), reverse=True)[:_MAX_NOTES]:
        if path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            text = redact(file.read(_MAX_NOTE_BYTES).decode("utf-8", "replace"))
        rows = [re.sub(r"^\s*(?:[-*+]|\d+[.)])\s+", "", line).strip() for line in text.splitlines()]
        kept = [line for line in rows if line and not line.startswith(("#", "---", "```", "<"))][:_MAX_LINES]
        label = _FOR_A_PROJECT.match(kept[0]) if kept else None
        prefix = label[0] if label else ""
        has_place = bool(label) or not any(map(points, kept))
        found += [
            Note(path.name, line if line.startswith(prefix) else f"{prefix}{line}", has_place) for line in unique(kept)
        ]
    return found
