"""What killed runs left: a result that is half published is completed, a copy is cleared away."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from stillroom.config import StageTwo
from stillroom.errors import WorkspaceError
from stillroom.workspace.history import History
from stillroom.workspace.journal import Journal, nothing
from stillroom.workspace.publish import PublishReport, carry_out
from stillroom.workspace.runs import LOCK, is_run, locked, retire
from stillroom.workspace.tree import DEFAULTS


class RecoveryReport(msgspec.Struct, frozen=True):
    """What was found of earlier runs."""

    #: Published half, now whole.
    completed: Mapping[str, PublishReport] = {}
    discarded: tuple[str, ...] = ()
    #: Another process is at work on them.
    in_use: tuple[str, ...] = ()
    #: Can't be completed yet, and why.
    blocked: Mapping[str, str] = {}


def recover(staging_dir: Path, history: History, *, limits: StageTwo = DEFAULTS) -> RecoveryReport:
    """Complete the publishing that a killed process began; clear away what others left. Runs still at work stay.

    Doing it twice is doing it once. The folder is the one that the run was about, whatever is configured now.
    """
    completed: dict[str, PublishReport] = {}
    discarded: list[str] = []
    in_use: list[str] = []
    blocked: dict[str, str] = {}
    if not staging_dir.is_dir() or not (staging_dir / LOCK).exists():
        return RecoveryReport()
    with locked(staging_dir / LOCK, wait=True):
        for run in sorted(filter(is_run, staging_dir.iterdir())):
            with locked(run / LOCK, wait=False) as mine:
                if not mine:
                    in_use.append(run.name)
                    continue
                if (run / Journal.NAME).exists():
                    try:
                        history.repository.unlock()
                        completed[run.name] = carry_out(run, history, checkpoint=nothing, limits=limits)
                    except WorkspaceError as error:
                        blocked[run.name] = str(error)
                        continue
                else:
                    discarded.append(run.name)
            retire(run)  # nobody begins a run meanwhile, and Windows removes no open file
    return RecoveryReport(completed, tuple(discarded), tuple(in_use), blocked)


class LeftBehind(msgspec.Struct, frozen=True):
    """Runs whose process is gone."""

    #: Their result is being brought into the folder: that has to be completed.
    half_published: tuple[str, ...] = ()
    #: Copies that nobody needs.
    abandoned: tuple[str, ...] = ()


def left_behind(staging_dir: Path) -> LeftBehind:
    """What `recover` would complete or clear. Changes nothing."""
    half: list[str] = []
    abandoned: list[str] = []
    if not staging_dir.is_dir() or not (staging_dir / LOCK).exists():
        return LeftBehind()
    for run in sorted(filter(is_run, staging_dir.iterdir())):
        if not (run / LOCK).exists():
            abandoned.append(
                run.name
            )  # or one that began just now; with the lock of the folder that is looked at again
            continue
        with locked(run / LOCK, wait=False) as mine:
            if mine:
                (half if (run / Journal.NAME).exists() else abandoned).append(run.name)
    return LeftBehind(tuple(half), tuple(abandoned))
