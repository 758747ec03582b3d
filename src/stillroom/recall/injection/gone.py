"""Marks the statements that name what their repository no longer has: a session should not look for it."""

from __future__ import annotations

from collections.abc import Sequence

from stillroom.recall.freshness.anchors import Anchor, anchors
from stillroom.recall.freshness.stored import Fact, Freshness
from stillroom.recall.injection.prepared import Prepared
from stillroom.recall.injection.statements import INDEX

#: A mark is read with its line: it says which one, and how many more.
_NAME_CHARS = 48


def mark_gone(ready: Prepared, freshness: Freshness) -> None:
    """Put a mark to every statement of a project that names something broken or moved.

    What several repositories know is gone when none of them has it.
    """
    states = {number: freshness.states(repository.place) for number, repository in enumerate(ready.folders)}
    for scope, (known, _, _) in enumerate(ready.scopes):
        if found := [states[number] for number in known if states[number]]:
            for statement in ready.part(scope):
                if statement.kind != INDEX and "\n" not in statement.text:
                    statement.mark = _mark(statement.text, found)


def _mark(text: str, found: Sequence[dict[Anchor, Fact]]) -> str:
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
    parts = [f"gone: {_first_of(gone)}"] if gone else []
    parts += [f"moved: {_first_of(moved)}"] if moved else []
    return f" ({'; '.join(parts)})" if parts else ""


def _first_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def _short(name: str) -> str:
    """The end of a path tells more than its beginning. It comes from a repository, and stays on one line."""
    name = "".join(character if character.isprintable() and character not in "<>`" else "\ufffd" for character in name)
    return name if len(name) <= _NAME_CHARS else "…" + name[-_NAME_CHARS + 1 :]
