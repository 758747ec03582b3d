"""Marks the lines that name what their repository no longer has: a session should not look for it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stillroom.recall.freshness.anchors import Anchor, anchors
from stillroom.recall.freshness.stored import Fact, Freshness
from stillroom.recall.projects.repository import Repository
from stillroom.recall.telling.missing import first_of, short
from stillroom.recall.telling.packing import HEADING, Line


def mark_gone(
    lines: Sequence[Line],
    scopes: Sequence[tuple[list[int], list[str], list[str]]],
    repositories: Sequence[Repository],
    freshness: Freshness,
) -> None:
    """Put a note to every line of a project that names something broken or moved, and note which files are there. What
    several repositories know is gone when none of them has it."""
    states = {number: freshness.states(repository.place) for number, repository in enumerate(repositories)}
    if not any(states.values()):
        return
    for line in lines:
        if line.kind != HEADING and line.scope >= 0 and "\n" not in line.text:
            found = [states[number] for number in scopes[line.scope][0] if states[number]]
            line.annotate(_note(line.text, found))
            folders = [repositories[number].folder for number in scopes[line.scope][0] if states[number]]
            line.paths = _there(line.text, found, folders)


def _there(text: str, found: Sequence[dict[Anchor, Fact]], folders: Sequence[str]) -> list[str]:
    """The files below a folder that it names and that are there: a session's start looks again."""
    fresh = [
        anchor.text
        for anchor in anchors(text)
        if anchor.kind == "path" and "/" in anchor.text.strip("/") and not anchor.text.startswith("/")
        if any(anchor in states and states[anchor].state == "fresh" for states in found)
    ]
    return [path for path in fresh if any(os.path.lexists(f"{folder}/{path}") for folder in folders)]


def _note(text: str, found: Sequence[dict[Anchor, Fact]]) -> str:
    gone: list[str] = []
    moved: list[str] = []
    for anchor in anchors(text):
        facts = [states[anchor] for states in found if anchor in states]
        if any(fact.state == "fresh" for fact in facts):
            continue
        if there := next((fact.now for fact in facts if fact.state == "moved" and fact.now), None):
            moved.append(f"{short(anchor.text)} is {short(there)}")
        elif any(fact.state == "broken" for fact in facts):
            gone.append(short(anchor.text))
    parts = [f"gone: {first_of(gone)}"] if gone else []
    parts += [f"moved: {first_of(moved)}"] if moved else []
    return f" ({'; '.join(parts)})" if parts else ""
