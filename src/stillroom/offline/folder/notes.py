"""Ad-hoc notes: what a person or an agent asked to be remembered, in `extensions/ad_hoc/notes/*.md`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from stillroom.offline.text.words import shorten, unique
from stillroom.rollouts.redact import redact

NOTES = "extensions/ad_hoc/notes"
TAG = "[ad-hoc note]"
_MAX_NOTES = 400
_MAX_NOTE_BYTES = 16_000
_MAX_LINES = 12
_LINE_CHARS = 400


@dataclass(frozen=True, slots=True)
class Note:
    """One line of a note."""

    file: str
    text: str

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
        lines = [re.sub(r"^\s*(?:[-*+]|\d+[.)])\s+", "", line).strip() for line in text.splitlines()]
        kept = [line for line in lines if line and not line.startswith(("#", "---", "```", "<"))][:_MAX_LINES]
        found += [Note(path.name, shorten(line, _LINE_CHARS)) for line in unique(kept)]
    return found
