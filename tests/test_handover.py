from __future__ import annotations

import asyncio
import threading

import pytest

from stillroom.handover import take


@pytest.mark.anyio
async def test_what_was_taken_is_returned() -> None:
    given_back: list[int] = []
    assert await take(lambda: 3, give_back=given_back.append) == 3
    assert given_back == []


@pytest.mark.anyio
async def test_who_is_stopped_meanwhile_gives_it_back() -> None:
    begun, go_on = threading.Event(), threading.Event()
    given_back: list[int] = []

    def slow() -> int:
        begun.set()
        go_on.wait(10)
        return 3

    task = asyncio.ensure_future(take(slow, give_back=given_back.append))
    await asyncio.to_thread(begun.wait, 10)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert given_back == [3]
