"""A pass that is told to end (`kill`, a closed terminal, a shutdown) ends like one that is interrupted by Ctrl-C.

Without this the threads at hand would stay leased for an hour, and each would lose a retry.
"""

from __future__ import annotations

import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")
#: Windows has no `SIGHUP`.
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Stopped(Exception):
    """A signal ended the work; everything that was begun is given back."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        #: What a shell says of a program that a signal ended.
        self.exit_code = 128 + number


async def until_stopped(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Await `work`; a signal cancels it and raises `Stopped`. One that is ignored (`nohup`) stays ignored."""
    import asyncio  # most commands await nothing

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        task.cancel()

    ours = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in ours:
            loop.add_signal_handler(number, stop, number)
    except NotImplementedError:  # Windows: there `kill` asks nobody
        ours = []
    try:
        return await work
    except asyncio.CancelledError:
        if received:
            raise Stopped(received[0]) from None
        raise
    finally:
        for number in ours:
            loop.remove_signal_handler(number)
