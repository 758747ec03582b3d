"""Ends a job that blocks in a thread, from any other: nobody wants it any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopped(Exception):
    """The job was stopped from outside."""


class Stop:
    """Of one job. Whoever waits in it says how to be woken."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  #: of the two fields below
        self._asked = False
        self._wake: Callable[[], object] | None = None

    def ask(self) -> None:
        """Stop the job. Any thread, any number of times; it does not wait for the end."""
        with self._lock:
            self._asked = True
            if self._wake is not None:
                self._wake()

    def check(self) -> None:
        """Raise `Stopped` if somebody asked for it."""
        if self._asked:
            raise Stopped

    @contextmanager
    def waking(self, wake: Callable[[], object]) -> Iterator[None]:
        """Within the block, `ask` calls `wake`; when the block is left, it has. Raises `Stopped`."""
        with self._lock:
            self.check()
            self._wake = wake
        try:
            yield
        finally:
            with self._lock:
                self._wake = None

    def sleep(self, seconds: float) -> None:
        """Raises `Stopped` as soon as somebody asks for it."""
        woken = threading.Event()
        with self.waking(woken.set):
            woken.wait(seconds)
        self.check()
