"""The state database for commands that take something back: nobody else uses it, nothing is left half done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stillroom.cli.output import print_lines
from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.store import Store
from stillroom.undoing.alone import alone
from stillroom.undoing.finishing import finish


@contextmanager
def store_alone(settings: Settings, clock: Clock) -> Iterator[Store]:
    """Open it once no pass runs. What a killed command began is finished first, and told."""
    with (
        alone(settings.home),
        Store.open(settings.database, clock=clock, limits=settings.database_limits) as store,
    ):
        if told := finish(settings, store):
            print_lines([("yellow", told)])
        yield store
