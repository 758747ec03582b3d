"""Work under a lease: renewed while it goes on, stopped when it is lost."""

from __future__ import annotations

import asyncio

import pytest

from stillroom.consolidate.engine import ConsolidatorStopped
from stillroom.consolidate.lease import run_under_lease
from stillroom.errors import StoreError


@pytest.mark.anyio
async def test_a_lost_lease_cancels_the_work() -> None:
    beats = iter([True, True, False])
    cancelled = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with asyncio.timeout(10):
        with pytest.raises(ConsolidatorStopped, match="took the consolidation over"):
            await run_under_lease(work(), lambda: next(beats), every_seconds=0)
    assert cancelled.is_set()


@pytest.mark.anyio
async def test_a_busy_database_is_asked_again_and_the_work_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    answers = iter([StoreError("locked"), True])

    def beat() -> bool:
        answer = next(answers, True)
        if isinstance(answer, StoreError):
            raise answer
        loop.call_soon_threadsafe(asked.set)
        return answer

    async def work() -> None:
        await asked.wait()

    async with asyncio.timeout(10):
        await run_under_lease(work(), beat, every_seconds=0)
    assert "could not be renewed: locked" in caplog.text


@pytest.mark.anyio
async def test_what_the_work_raises_is_raised() -> None:
    async def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await run_under_lease(work(), lambda: True, every_seconds=60)
