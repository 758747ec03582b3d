"""Work under a lease: renewed while it goes on, stopped when it is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from stillroom.consolidate.engine import ConsolidatorStopped
from stillroom.errors import StoreError

_log = logging.getLogger(__name__)


async def run_under_lease(work: Awaitable[None], beat: Callable[[], bool], *, every_seconds: float) -> None:
    """Await `work`, calling `beat` at the start and every so often. `beat` says False: the work is cancelled.

    Raises what the work raises, or `ConsolidatorStopped` for a lost lease. Cancelling it cancels the work and waits.
    """
    working = asyncio.ensure_future(work)
    beating = asyncio.ensure_future(_beat(beat, every_seconds))
    try:
        await asyncio.wait({working, beating}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ConsolidatorStopped("the lease was lost: another process took the consolidation over")
        working.result()
    finally:
        for task in (working, beating):
            task.cancel()
        await asyncio.gather(working, beating, return_exceptions=True)


async def _beat(beat: Callable[[], bool], every_seconds: float) -> None:
    while True:
        if not await asyncio.to_thread(_beats, beat):
            return
        await asyncio.sleep(every_seconds)


def _beats(beat: Callable[[], bool]) -> bool:
    try:
        return beat()
    except StoreError as error:
        # A database that is busy now is asked again at the next beat; the lease lasts for many of them.
        _log.warning("the lease of the consolidation could not be renewed: %s", error)
        return True
