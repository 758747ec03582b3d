"""Finishes what a killed command began to take back."""

from __future__ import annotations

from typing import assert_never

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.store import Store
from stillroom.undoing import unfinished
from stillroom.undoing.alone import alone
from stillroom.undoing.cleaning import settle
from stillroom.undoing.forgetting import finish_forgetting
from stillroom.undoing.undo import finish_undo
from stillroom.undoing.unfinished import Forgetting, Undoing


def finish_if_begun(settings: Settings, clock: Clock) -> str | None:
    """What was finished, in words; None: nothing was begun. Raises `WorkspaceError` when somebody else is at it, and
    `StoreError`: then nothing else should be done either."""
    if not (settings.home / unfinished.FILE).exists():
        return None
    with (
        alone(settings.home, wait_seconds=0),
        Store.open(settings.database, clock=clock, limits=settings.database_limits) as store,
    ):
        return finish(settings, store)


def finish(settings: Settings, store: Store) -> str | None:
    """The same for whoever works alone already."""
    work = unfinished.begun(settings.home)
    match work:
        case None:
            return None
        case Forgetting():
            settle(settings)
            done = finish_forgetting(settings, store, work)
            told = f"{done.threads:,} session{'' if done.threads == 1 else 's'} that a killed `forget` had begun with"
            return f"forgot {told}" + ("" if done.is_complete else "; something is left: `stillroom forget` says what")
        case Undoing():
            settle(settings)
            finish_undo(settings, store, work)
            return "took back what a killed `undo` had begun to"
        case _:
            assert_never(work)
