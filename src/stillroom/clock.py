"""Where "now" comes from. Tests and `--now` put another clock in; nothing else in Stillroom asks the system."""

from __future__ import annotations

import time
from typing import Protocol

DAY_SECONDS = 24 * 3600


class Clock(Protocol):
    """Tells the time of the world. Durations for metrics use `time.perf_counter` instead."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""
        ...

    def now(self) -> int:
        """Whole seconds since the Unix epoch, rounded down."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def now(self) -> int:
        return self.now_ms() // 1000


class FixedClock:
    """A clock that stands still until it is told to move: `--now`, and every test."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def now(self) -> int:
        return self._now_ms // 1000

    def advance(self, *, seconds: float) -> None:
        """Move forward (or back, with a negative number, as a real clock does when it jumps)."""
        self._now_ms += round(seconds * 1000)
