"""Passes work side by side; taking something back is done alone.

A pass holds a shared lock for as long as it works, an undo or a forgetting an exclusive one. It ends with the process
that holds it, however that ends. What a killed one left begun is then finished by whoever comes next.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stillroom.errors import WorkspaceError
from stillroom.system import LOCK_FILE, lock

FILE = "taking-back.lock"
#: A pass without a model ends within a second or two; for one with a model nobody waits.
WAIT_SECONDS = 10.0
_LOOK_SECONDS = 0.1


@contextmanager
def beside_others(home: Path) -> Iterator[bool]:
    """Work as a pass; False: something is being taken back right now."""
    with _locked(home, shared=True) as mine:
        yield mine


@contextmanager
def alone(home: Path, *, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Work while no pass does. Raises `WorkspaceError` when one goes on for longer than this."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    until = time.monotonic() + wait_seconds
    while True:
        with _locked(home, shared=False) as mine:
            if mine:
                yield
                return
        if time.monotonic() >= until:
            raise WorkspaceError(
                "a pass is at work, or something else is being taken back; nothing was changed",
                hint="try again when it is over; `stillroom pause` keeps the next one from starting",
            )
        time.sleep(_LOOK_SECONDS)


@contextmanager
def _locked(home: Path, *, shared: bool) -> Iterator[bool]:
    """The lock for the block; False: somebody else has it."""
    try:
        file = os.open(home / FILE, LOCK_FILE, 0o600)
    except OSError:  # no home yet, or a read-only one: whoever wants to write there will be told
        yield True
        return
    try:
        yield lock(file, shared=shared)
    finally:
        os.close(file)
