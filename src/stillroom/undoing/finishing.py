"""Finishes what a killed command began to take back."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.store import Store
from stillroom.undoing import unfinished
from stillroom.undoing.alone import alone
from stillroom.undoing.cleaning import settle
from stillroom.undoing.forgetting import finish_forgetting
from stillroom.undoing.unfinished import Forgetting, Redacting, Undoing
from stillroom.wording import many
from stillroom.workspace.journal import Journal


def is_begun(home: Path) -> bool:
    """Whether something is half taken back, or half brought into the memory folder, by a process that may be gone."""
    return (home / unfinished.FILE).exists() or any(Settings(home=home).staging.glob(f"*/{Journal.NAME}"))


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
    if work is None:
        return None
    settle(settings)
    match work:
        case Forgetting():
            forgotten = finish_forgetting(settings, store, work)
            count = many(forgotten.threads, "session")
            return _told(f"forgot {count} that a killed `forget` had begun with", complete=forgotten.is_complete)
        case Redacting():
            from stillroom.undoing.redacting import redact_all  # the rules take a twentieth of a second to load

            redacted = redact_all(settings, store, work)
            return _told("took out what a killed `redact` had begun with", complete=redacted.is_complete)
        case Undoing():
            from stillroom.undoing.undo import finish_undo  # what copies and judges a folder, likewise

            finish_undo(settings, store, work)
            return "took back what a killed `undo` had begun with"
        case _:
            assert_never(work)


def _told(what: str, *, complete: bool) -> str:
    return what if complete else f"{what}; something of it is left: say it again to be told what"
