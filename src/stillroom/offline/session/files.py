"""Files that a session really changed."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from stillroom.offline.session import shell
from stillroom.offline.session.turns import Turn
from stillroom.offline.text.pattern import late
from stillroom.rollouts.events import Ran

_UNDOES = late(r"^git\s+(?:checkout(?:\s+\S+)?\s+--\s|restore\b|checkout\s+\.)")


def changed(turns: Sequence[Turn], undone: Collection[int]) -> dict[str, int]:
    """Paths with the last turn that changed them; what was reverted is left out."""
    found: dict[str, int] = {}
    for turn in turns:
        if turn.number in undone:
            continue
        for step in turn.steps:
            if not isinstance(step, Ran) or step.ok is False:
                continue
            for edit in step.edits:
                if edit.action == "delete" and edit.path in found:
                    del found[edit.path]
                else:
                    found[edit.path] = turn.number
            for part in shell.parts(step.command or ""):
                _undo(part.head, found)
    return found


def _undo(command: str, found: dict[str, int]) -> None:
    if re.match(r"^git\s+reset\s+.*--hard", command) or re.match(
        r"^git\s+(?:checkout|restore)\s+(?:--\s+)?\.\s*$", command
    ):
        found.clear()
        return
    if not _UNDOES.match(command):
        return
    for word in shell.words(command)[2:]:
        path = word.rstrip("/").removeprefix("./")
        for known in list(found):
            if known == path or known.endswith("/" + path) or known.startswith(path + "/"):
                del found[known]
