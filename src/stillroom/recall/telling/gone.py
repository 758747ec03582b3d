"""Marks the lines that name what their repository no longer has: a session should not look for it."""

from __future__ import annotations

from collections.abc import Sequence

from stillroom.recall.freshness.anchors import Anchor, anchors
from stillroom.recall.freshness.stored import Fact, Freshness
from stillroom.recall.projects.repository import Repository
from stillroom.recall.telling.packing import HEADING, Line

#: A mark is read with its line: it says which one, and how many more.
_NAME_CHARS = 48


def mark_gone(
    lines: Sequence[Line],
    scopes: Sequence[tuple[list[int], list[str], list[str]]],
    repositories: Sequence[Repository],
    freshness: Freshness,
) -> None:
    """Put a note to every line of a project that names something broken or moved. One that several repositories know
    is gone when none of them has it."""
    states = {number: freshness.states(repository.place) for number, repository in enumerate(repositories)}
    if not any(states.values()):
        return
    for line in lines:
        if line.kind != HEADING and line.scope >= 0 and "\n" not in line.text:
            found = [states[number] for number in scopes[line.scope][0] if states[number]]
            line.annotate(_note(line.text, found))


def _note(text: str, found: Sequence[dict[Anchor, Fact]]) -> str:
    gone: list[str] = []
    moved: list[str] = []
    for anchor in anchors(text):
        facts = [states[anchor] for states in found if anchor in states]
        if any(fact.state == "fresh" for fact in facts):
            continue
        if there := next((fact.now for fact in facts if fact.state == "moved" and fact.now), None):
            moved.append(f"{_short(anchor.text)} is {_short(there)}")
        elif any(fact.state == "broken" for fact in facts):
            gone.append(_short(anchor.text))
    parts = [f"gone: {_first(gone)}"] if gone else []
    parts += [f"moved: {_first(moved)}"] if moved else []
    return f" ({'; '.join(parts)})" if parts else ""


def _first(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _short(name: str) -> str:
    """The end of a path tells more than its beginning. It comes from a repository, and stays on one line."""
    name = "".join(character if character.isprintable() and character not in "<>`" else "\ufffd" for character in name)
    return name if len(name) <= _NAME_CHARS else "…" + name[-_NAME_CHARS + 1 :]
