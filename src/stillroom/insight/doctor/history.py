"""The history of the memory folder, and the program that it needs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.errors import WorkspaceError
from stillroom.insight.doctor.finding import Found, found, ok
from stillroom.insight.doctor.packages import how_to_install
from stillroom.undoing.alone import alone
from stillroom.workspace.history import History
from stillroom.workspace.layout import has_artifacts

#: The first git that takes the configuration of nobody (`GIT_CONFIG_GLOBAL`).
_OLDEST_GIT = (2, 32)
_GIT_SECONDS = 5
#: Every object of a history of this size is read in half a second.
_READ_WHOLE_BYTES = 32 * 1024 * 1024


def check_history(settings: Settings, clock: Clock) -> Iterator[Found]:
    """git, and the history: there where it should be, and whole."""
    path = settings.history
    if (wrong := _git()) is not None:
        yield wrong
        return
    history = History(path, limits=settings.stage_two)
    begin = partial(_begin_anew, settings, clock)
    if not path.exists() and not path.is_symlink():
        if not has_artifacts(settings.root):
            yield ok("history", "there is none yet, as there is no memory")
            return
        what = "it is gone: the next pass begins a new one with the folder as it is; `undo` can't go back beyond that"
        yield found("history", "warning", what, where=str(path), remedy="stillroom doctor --fix", mend=begin)
        return
    if not history.repository.loads():
        what = "it can't be read: a new one begins with the folder as it is, and this one is kept beside it"
        yield found("history", "error", what, where=str(path), remedy="stillroom doctor --fix", mend=begin)
    elif _size(path) <= _READ_WHOLE_BYTES and not history.repository.is_whole():
        what = "something of it is missing or damaged: a new one begins, and this one is kept beside it"
        yield found("history", "error", what, where=str(path), remedy="stillroom doctor --fix", mend=begin)
    else:
        yield ok("history", "whole", where=str(path))
    for aside in sorted(path.parent.glob(f"{path.name}.broken-*")):
        what = f"an unusable history was kept ({_size(aside) / 1e6:,.1f} MB); it holds what the memory said then"
        yield found("history", "note", what, where=str(aside), remedy=f"rm -r '{aside}'  # when you don't need it")


def _begin_anew(settings: Settings, clock: Clock) -> str:
    """As a pass would: what can't be used is kept beside, and the folder as it is becomes the baseline."""
    history = History(settings.history, limits=settings.stage_two)
    with alone(settings.home, wait_seconds=0):
        aside = history.set_aside_if_damaged(now=clock.now()) if history.git_dir.exists() else None
        unusable = history.ensure(settings.root, now=clock.now())
        history.note_folder(settings.root)
    moved = unusable or aside
    return "a new one begins with the folder as it is" + (f"; the old one is `{moved}`" if moved else "")


def _git() -> Found | None:
    program = shutil.which("git")
    if program is None:
        return found("git", "error", "the program `git` is not on the PATH", remedy=how_to_install("git"))
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "HOME": os.devnull}
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, timeout=_GIT_SECONDS, env=environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return found("git", "error", f"it can't be started: {error}", where=program, remedy=how_to_install("git"))
    said = done.stdout.decode("utf-8", "replace").strip()
    version = re.search(r"(\d+)\.(\d+)", said)
    if done.returncode or version is None:
        return found("git", "error", f"`git --version` says `{said[:80]}`", where=program, remedy=how_to_install("git"))
    if (int(version[1]), int(version[2])) < _OLDEST_GIT:
        oldest = ".".join(map(str, _OLDEST_GIT))
        return found("git", "error", f"{said} is older than {oldest}", where=program, remedy=how_to_install("git"))
    return None


def _size(folder: Path) -> int:
    """Bytes below a folder. Follows no link."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(place, name).lstat().st_size
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    raise WorkspaceError(f"`{folder}` can't be read: {error.strerror}") from error
    return total


__all__ = ["check_history"]
