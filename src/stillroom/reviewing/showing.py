"""What a person is shown of a result that is held: what was found wrong, and how the folder would change."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from stillroom.config import Settings
from stillroom.offline.folder.byhand import split_record
from stillroom.reviewing.deciding import accepted_as
from stillroom.workspace import held
from stillroom.workspace.finding import Finding
from stillroom.workspace.history import History
from stillroom.workspace.tree import shown

#: A diff beyond this is cut, and says so; the files themselves are in the review folder.
MAX_DIFF_CHARS = 1_000_000


class HeldReview(msgspec.Struct, frozen=True, kw_only=True):
    """A result that waits, and where its files are."""

    at: int  #: seconds
    engine: str
    inputs: int
    baseline: str | None
    #: The memory went on since: it can't be accepted any more, and the next pass throws it away.
    stale: bool
    findings: tuple[Finding, ...]
    #: Unified, of the memory folder as it is now against the result.
    diff: str
    folder: str


def held_review(settings: Settings) -> HeldReview | None:
    """What is held, if anything is. Changes nothing. Raises `HistoryError` or `WorkspaceError`."""
    about = held.load(settings.review)
    if about is None:
        return None
    folder = held.tree_of(settings.review)
    history = History(settings.history, limits=settings.stage_two)
    if accepted_as(history, about) is not None:
        return None  # a killed `--accept` had done it
    return HeldReview(
        at=about.at,
        engine=about.engine,
        inputs=len(about.selected),
        baseline=about.baseline,
        stale=held.is_stale(about, history.head()),
        findings=about.findings,
        diff=_diff(settings.root, folder),
        folder=str(folder),
    )


def _diff(root: Path, folder: Path) -> str:
    old = held.publishable(root) if root.is_dir() else {}
    text = "".join(_hunks(old, held.publishable(folder)))
    return text if len(text) <= MAX_DIFF_CHARS else text[:MAX_DIFF_CHARS] + "\n(the diff is cut here)\n"


def _hunks(old: dict[str, bytes], new: dict[str, bytes]) -> Iterator[str]:
    for path in sorted(old.keys() | new.keys()):
        before, after = (files.get(path, b"").decode("utf-8", "replace") for files in (old, new))
        # A handbook of an earlier release ends with the record of generated lines, which tells a person nothing.
        before, after = split_record(before)[0], split_record(after)[0]
        if before == after:
            continue
        name = shown(path)
        lines = difflib.unified_diff(
            before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm="", n=2
        )
        yield from (f"{line}\n" for line in lines)
