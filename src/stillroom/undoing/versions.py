"""The versions of the memory folder that `history.git` keeps, and how they differ."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from stillroom.config import Settings
from stillroom.errors import HistoryError
from stillroom.pattern import late
from stillroom.workspace.artifacts import is_written_by_code
from stillroom.workspace.git import BRANCH, Content
from stillroom.workspace.history import History, compare, gather
from stillroom.workspace.layout import LINES
from stillroom.workspace.trailers import LEFT, UNDOES
from stillroom.workspace.tree import Entry, shown

#: What a person may call a version: letters that git gave it, or so many back from the newest.
_NAME = late(r"(?:[0-9a-f]{4,40}|HEAD)(?:~[0-9]{0,6}|\^)*", re.ASCII)
_RUN = late(r"^Stillroom-Run: (\S+)$", re.MULTILINE)
_UNDOES = late(rf"^{UNDOES}: (\S+)$", re.MULTILINE)
CONSOLIDATION = "Consolidate "
REMOVAL = "Remove "
EDIT = "Edit "


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """The folder as it was once, and how it came to be."""

    commit: str
    at: int  #: seconds
    subject: str
    #: `A|M|D path`, against the version before.
    changed: tuple[str, ...]
    #: The run that made it; None: no consolidation did.
    run: str | None = None
    #: The run that it took back, with everything after it.
    undoes: str | None = None
    #: What the memory does not rest on any more, each with its project and the reason.
    left: tuple[str, ...] = ()

    @property
    def is_consolidation(self) -> bool:
        return self.run is not None and self.subject.startswith(CONSOLIDATION)

    @property
    def is_undoable(self) -> bool:
        """A consolidation, or what a person did with `rm` or `edit`."""
        return self.run is not None and self.subject.startswith((CONSOLIDATION, REMOVAL, EDIT))


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How two versions differ."""

    #: None: nothing at all.
    before: str | None
    #: None: the folder as it is now.
    after: str | None
    #: A unified diff.
    diff: str
    #: Files that differ and are left out of it: what code writes says again what the sessions said.
    left_out: tuple[str, ...] = ()


def open_history(settings: Settings) -> History:
    """The history. Raises `HistoryError` when there is none, or it can't be read."""
    history = History(settings.history, limits=settings.stage_two)
    if not settings.history.exists():
        raise HistoryError("there is no history yet", hint="the first consolidation begins it: `stillroom run`")
    if not history.repository.loads():
        raise HistoryError(
            f"`{settings.history}` can't be read", hint="the next consolidation puts it aside and begins a new one"
        )
    return history


def versions(history: History, *, limit: int | None = None, since: str | None = None) -> list[Version]:
    """The versions, newest first; with `since`, those after that one."""
    most = () if limit is None else (f"--max-count={limit}",)
    span = BRANCH if since is None else f"{since}..{BRANCH}"
    told = history.repository.run(
        "log", *most, "--root", "--no-renames", "--name-status", "--format=%x01%H %ct%n%B%x02", span
    )
    return [_version(part.decode("utf-8", "replace")) for part in told.split(b"\x01")[1:]]


def resolve(history: History, name: str) -> str:
    """The commit that a person means. Raises `HistoryError`."""
    hint = "`stillroom log` lists the versions"
    if not _NAME.fullmatch(name):
        raise HistoryError(f"`{shown(name)}` is no version", hint=hint)
    try:
        commit = history.repository.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
        history.repository.run("merge-base", "--is-ancestor", commit, BRANCH)
    except HistoryError as error:
        raise HistoryError(f"there is no version `{shown(name)}`", hint=hint) from error
    return commit


def parent_of(history: History, commit: str) -> str | None:
    """The version before; None before the first."""
    known = history.repository.run("rev-list", "--parents", "-n", "1", commit).decode("ascii").split()
    return known[1] if len(known) > 1 else None


def change_of(history: History, commit: str, *, everything: bool) -> Difference:
    """What a version changed against the one before."""
    before = parent_of(history, commit)
    old = {} if before is None else history.repository.entries(before)
    new = history.repository.entries(commit)
    told = (
        path for path, entry in new.items() if old.get(path) != entry and (everything or not is_written_by_code(path))
    )
    blobs = history.repository.blobs(new[path].blob for path in told)
    contents = {
        path: Content(blobs[entry.blob], entry.executable) for path, entry in new.items() if entry.blob in blobs
    }
    diff, left = _differ(history, old, new, contents, everything=everything)
    return Difference(before=before, after=commit, diff=diff, left_out=left)


def change_since(history: History, commit: str, folder: Path, *, everything: bool) -> Difference:
    """How the folder differs by now from what it was then. Nothing is written into the history."""
    old = history.repository.entries(commit)
    contents, present = gather(folder, old, limits=history.limits)
    diff, left = _differ(history, old, present.files, contents, everything=everything)
    return Difference(before=commit, after=None, diff=diff, left_out=left)


def _differ(
    history: History,
    old: Mapping[str, Entry],
    new: Mapping[str, Entry],
    contents: Mapping[str, Content],
    *,
    everything: bool,
) -> tuple[str, tuple[str, ...]]:
    changes = [change for change in compare(old, new) if change.path != LINES]
    left = () if everything else tuple(path for _, path in changes if is_written_by_code(path))
    told = [change for change in changes if change.path not in left]
    diff = history.diff_of(told, old, new, contents.__getitem__, max_bytes=sys.maxsize)
    return diff, tuple(map(shown, left))


def _version(part: str) -> Version:
    head, _, rest = part.partition("\n")
    message, _, names = rest.partition("\x02")
    commit, _, at = head.partition(" ")
    run, undoes = _RUN.search(message), _UNDOES.search(message)
    return Version(
        commit=commit,
        at=int(at),
        subject=message.strip().partition("\n")[0],
        changed=tuple(_changes(names.splitlines())),
        run=run[1] if run else None,
        undoes=undoes[1] if undoes else None,
        left=tuple(line.removeprefix(LEFT) for line in message.splitlines() if line.startswith(LEFT)),
    )


def _changes(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        status, tab, path = line.partition("\t")
        if tab and path != LINES:
            yield f"{status} {path}"
