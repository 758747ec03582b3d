"""Where sessions are taken in, one process after the other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.recording.names import SESSIONS, find_rollouts, private_folders
from stillroom.store import Store
from stillroom.system import LOCK_FILE, lock

#: What the name of a half-written rollout begins with.
TEMPORARY = ".ingest-"
_LOCK = "ingest.lock"


@dataclass(frozen=True, slots=True)
class Place:
    """Where threads are taken in."""

    #: Of half-written rollouts.
    folder: Path
    #: What is there, by `file_id`.
    rollouts: dict[str, Path]
    #: None where no pass has been.
    store: Store | None


@contextmanager
def alone_in(settings: Settings, clock: Clock) -> Iterator[Place]:
    """The home, while no other process takes anything in; what a killed one left half-written is removed."""
    folder = settings.home / SESSIONS
    private_folders(folder)
    with ExitStack() as held:
        descriptor = os.open(settings.home / _LOCK, LOCK_FILE, 0o600)
        held.callback(os.close, descriptor)
        lock(descriptor, wait=True)
        for left in folder.glob(f"{TEMPORARY}*"):
            left.unlink(missing_ok=True)
        store = None
        if settings.database.exists():
            store = held.enter_context(Store.open(settings.database, clock=clock, limits=settings.database_limits))
        yield Place(folder, find_rollouts(settings.home), store)


__all__ = ["TEMPORARY", "Place", "alone_in"]
