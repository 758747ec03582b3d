"""Changes every place where Stillroom keeps texts: database, memory folder, history, logs. What can be made again goes.

Each step may be done twice; killed at any point, doing all of them again comes to the same end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from stillroom.config import Settings
from stillroom.errors import FolderRefused, WorkspaceError
from stillroom.private_file import write_private
from stillroom.workspace import held
from stillroom.workspace.history import History
from stillroom.workspace.journal import Checkpoint
from stillroom.workspace.mending import Mended, mend
from stillroom.workspace.recovery import recover
from stillroom.workspace.rewriting import Rewritten, rewrite
from stillroom.workspace.runs import forget_copies

#: What a session start, a search or a scan makes again. A `*` stands for what follows.
_MADE_AGAIN = (
    "recall.json",
    ".recall.json.*",
    "freshness.json",
    ".freshness.json.*",
    "coverage.json",
    ".coverage.json.*",
    "search.sqlite3*",
    "history.git/looks*",
)
#: Lines that programs wrote, for people to read.
LOGS = ("hook.log*", "pass.log*", "sessions.jsonl*")


class Cleaning(msgspec.Struct, frozen=True, kw_only=True):
    """How a content is changed."""

    #: A file's new content; None: it goes.
    content: Callable[[bytes], bytes | None]
    #: One line of a log.
    line: Callable[[str], str]
    #: A path that no version keeps.
    is_gone: Callable[[str], bool]
    #: What the history says of it.
    message: str
    now: int  #: seconds


class Cleaned(msgspec.Struct, frozen=True):
    """What was changed."""

    folder: Mended
    history: Rewritten


def settle(settings: Settings) -> None:
    """Complete what a killed consolidation began to publish, and throw away what it only prepared.

    Raises `WorkspaceError` when it can't be completed, or the folder can't be written: then nothing is taken back.
    """
    if settings.root.is_dir() and not os.access(settings.root, os.W_OK | os.X_OK):
        raise FolderRefused(
            f"`{settings.root}` can't be written; nothing was changed", hint=f"chmod u+rwx '{settings.root}'"
        )
    found = recover(settings.staging, History(settings.history), limits=settings.stage_two)
    for why in found.blocked.values():
        raise WorkspaceError(f"a killed pass can't be completed yet: {why}")
    if found.in_use:
        raise WorkspaceError("a consolidation is at work; nothing was changed", hint="try again when it is over")


def clean(settings: Settings, cleaning: Cleaning, *, checkpoint: Checkpoint) -> Cleaned:
    """Change everything but the database."""
    # 1. The folder, file by file: what a person edits meanwhile is looked at again.
    folder = Mended()
    if settings.root.is_dir():
        folder = mend(
            settings.root,
            lambda path, data: None if cleaning.is_gone(path) else cleaning.content(data),
            limits=settings.stage_two,
            checkpoint=checkpoint,
        )
    checkpoint("folder cleaned")
    # 2. Every version of it.
    history = _clean_history(settings, cleaning, checkpoint)
    # 3. Copies, and what is made again when it is wanted.
    forget_copies(settings.staging)
    held.forget(settings.review)
    for path in matching(settings.home, _MADE_AGAIN):
        path.unlink(missing_ok=True)
    checkpoint("copies deleted")
    # 4. Logs, line by line; what sessions were told names versions, which have other names now.
    for path in matching(settings.home, LOGS):
        _clean_log(path, cleaning.line, history.commits)
    checkpoint("logs cleaned")
    return Cleaned(folder, history)


def _clean_history(settings: Settings, cleaning: Cleaning, checkpoint: Checkpoint) -> Rewritten:
    """One that can't be read stays as it is: whoever looks for what is left will say so."""
    history = History(settings.history, limits=settings.stage_two)
    if not history.repository.loads():
        return Rewritten()
    return rewrite(
        history.repository,
        cleaning.content,
        is_gone=cleaning.is_gone,
        message=cleaning.message,
        now=cleaning.now,
        checkpoint=checkpoint,
    )


def _clean_log(path: Path, line: Callable[[str], str], commits: Mapping[str, str | None]) -> None:
    old = path.read_text(encoding="utf-8", errors="surrogateescape")
    new = "\n".join(map(line, old.split("\n")))
    for before, after in commits.items():
        new = new.replace(before, after or "")
    if new != old:
        write_private(path, new.encode("utf-8", "surrogateescape"))


def matching(home: Path, patterns: Iterable[str]) -> list[Path]:
    return [path for pattern in patterns for path in sorted(home.glob(pattern))]
