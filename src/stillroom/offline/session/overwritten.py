"""What a session's edits say of its wishes: which work was taken back, which value took the place of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stillroom.offline.session import shell
from stillroom.offline.session.checkout import Checkout, lines_of
from stillroom.offline.session.turns import Turn
from stillroom.offline.text import words


@dataclass(slots=True)
class _Work:
    """What one turn put into the files and took out, and what became of it."""

    added: set[tuple[str, str]] = field(default_factory=set)
    removed: set[tuple[str, str]] = field(default_factory=set)
    gone: set[tuple[str, str]] = field(default_factory=set)
    restored: set[tuple[str, str]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Overwritten:
    """The lines of an earlier turn that a later one replaced."""

    by: int
    lines: tuple[str, ...]
    gone: frozenset[str]  #: names and words of those lines that what stands there instead has not
    come: frozenset[str]  #: those that stand there instead
    whole: bool  #: nothing of the earlier turn's edits is left


def find(turns: Sequence[Turn]) -> tuple[dict[int, int], dict[int, Overwritten]]:
    """Turns whose edits a later turn took back, and turns whose edits a later turn replaced, with that turn."""
    work: dict[int, _Work] = {}
    owner: dict[tuple[str, str], int] = {}
    taker: dict[tuple[str, str], int] = {}
    undone: dict[int, int] = {}
    replaced: dict[int, Overwritten] = {}
    tree = Checkout()
    for turn in turns:
        own = work.setdefault(turn.number, _Work())
        for run in turn.runs:
            if run.ok is False or (run.exit_code or 0) != 0:
                continue
            for edit in run.edits:
                added, removed = lines_of(edit)
                if edit.action == "delete":
                    removed |= {line for line in owner if line[0] == edit.path}
                tree.edited(added, removed, turn=turn.number)
                for line in removed:
                    by = owner.pop(line, turn.number)
                    if by != turn.number:
                        work[by].gone.add(line)
                        back = bool(added) and added <= work[by].removed | work[by].added
                        _note(by, turn.number, work[by], line, added, back or not added, undone, replaced)
                    own.added.discard(line)
                for line in added:
                    by = taker.pop(line, turn.number)
                    if by != turn.number:
                        work[by].restored.add(line)
                        if not work[by].added and work[by].removed <= work[by].restored:
                            undone[by] = turn.number
                for number in [n for n, later in undone.items() if later != turn.number and n != turn.number]:
                    # What had been lost is written again.
                    work[number].gone -= added
                    if not work[number].added <= work[number].gone:
                        del undone[number]
                own.removed |= removed
                own.added |= added
                owner.update(dict.fromkeys(added, turn.number))
                taker.update(dict.fromkeys(removed, turn.number))
            for line in tree.ran(run):
                by = owner.pop(line, turn.number)
                work[by].gone.add(line)
                if by != turn.number and work[by].added <= work[by].gone:
                    undone[by] = turn.number
    return undone, replaced


def renamed(turns: Sequence[Turn]) -> list[tuple[int, str, str]]:
    """What commands moved: the turn, and the last part of the old and of the new name."""
    found: list[tuple[int, str, str]] = []
    for turn in turns:
        for run in turn.runs:
            if run.ok is False or not run.command or "mv " not in run.command:
                continue
            for part in shell.parts(run.command):
                named = [word for word in shell.words(part.head) if word[0] not in "-"]
                if named[:1] == ["mv"] or named[:2] == ["git", "mv"]:
                    old, new = _last_part(named[-2]), _last_part(named[-1])
                    if old != new:
                        found.append((turn.number, old, new))
    return found


def _last_part(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1].split(".", 1)[0]


def _note(
    by: int,
    later: int,
    work: _Work,
    line: tuple[str, str],
    added: set[tuple[str, str]],
    back: bool,
    undone: dict[int, int],
    replaced: dict[int, Overwritten],
) -> None:
    whole = work.added <= work.gone
    if whole and back:
        undone[by] = later
        replaced.pop(by, None)
    else:
        undone.pop(by, None)
        known = replaced.get(by)
        old, new = words.pieces(line[1]), words.pieces(" ".join(text for _, text in added))
        replaced[by] = Overwritten(
            later,
            (*(known.lines if known else ()), line[1]),
            old - new | (known.gone if known else frozenset()),
            new - old | (known.come if known else frozenset()),
            whole,
        )
