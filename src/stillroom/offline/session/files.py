"""Files that a session really changed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence

from stillroom.offline.session import shell
from stillroom.offline.session.turns import Turn
from stillroom.pattern import late
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
                _undo(part.head, found, turn.number)
                _move(part.head, found, turn.number)
    return found


def spares(turn: Turn, paths: Sequence[str]) -> bool:
    """Whether git put files back in `turn`, each by its name, and none of `paths`."""
    heads = [part.head for run in turn.runs for part in shell.parts(run.command or "")]
    named = [word for head in heads if _UNDOES.match(head) for word in shell.words(head)[2:] if word != "--"]
    return bool(named) and "." not in named and not _known(named, paths)


def _move(command: str, found: dict[str, int], now: int) -> None:
    """What `mv` and `git mv` made of the paths, and what `rm` left of them."""
    named = [word for word in shell.words(command) if not word.startswith("-")]
    named = named[1:] if named[:1] == ["git"] else named
    if named[:1] == ["rm"]:
        for path in _known(named[1:], found):
            del found[path]
    elif named[:1] == ["mv"] and len(named) > 2:
        *sources, target = named[1:]
        for source in sources:
            for path in _known([source], found):
                source, target = source.rstrip("/").removeprefix("./"), target.removeprefix("./")
                into = target.endswith("/") or len(sources) > 1 or "." not in posixpath.basename(target)
                new = posixpath.join(target, posixpath.basename(source)) if into and "." in source else target
                head, _, tail = path.rpartition(source)
                del found[path]
                found[head + new.rstrip("/") + tail] = now


def _known(named: Sequence[str], found: Collection[str]) -> list[str]:
    paths = [word.rstrip("/").removeprefix("./") for word in named]
    return [f for f in found if any(p and (f == p or f.endswith("/" + p) or f.startswith(p + "/")) for p in paths)]


def _undo(command: str, found: dict[str, int], now: int) -> None:
    """Without what a command of git put back: an attempt of this turn or the one before, not what had been settled."""
    if re.match(r"^git\s+reset\s+.*--hard", command) or re.match(
        r"^git\s+(?:checkout|restore)\s+(?:--\s+)?\.\s*$", command
    ):
        hit = list(found)
    elif _UNDOES.match(command):
        hit = _known(shell.words(command)[2:], found)
    else:
        return
    for path in hit:
        if found[path] >= now - 1:
            del found[path]
