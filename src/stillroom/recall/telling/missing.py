"""Looks, when a session starts, whether the files that its lines name are in its checkout. Imports nothing.

A pass asked git about them; since then somebody may have moved or deleted one, or the session is on another branch.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stillroom.recall.telling.packing import Line, Tier

#: Files that a session's start looks for: a tenth of a millisecond.
_MOST_LOOKS = 50
#: A mark is read with its line: it says which one, and how many more.
_NAME_CHARS = 48


def mark_missing(lines: Sequence[Line], tier_of: Callable[[int], Tier], folder: str) -> None:
    """Put a note to each line of the session's own project of which a file was there at the last pass, and is not in
    `folder` now."""
    looks = _MOST_LOOKS
    for line in lines:
        if not line.paths or line.scope < 0 or tier_of(line.scope) != "own":
            continue
        missing = [path for path in line.paths[:looks] if not os.path.lexists(f"{folder}/{path}")]
        looks -= len(line.paths)
        if missing:
            line.annotate(f"{line.note} (not in this checkout: {first_of(list(map(short, missing)))})")
        if looks <= 0:
            return


def first_of(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def short(name: str) -> str:
    """The end of a path tells more than its beginning. It comes from a repository, and stays on one line."""
    name = "".join(character if character.isprintable() and character not in "<>`" else "\ufffd" for character in name)
    return name if len(name) <= _NAME_CHARS else "…" + name[-_NAME_CHARS + 1 :]
