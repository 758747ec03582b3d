"""Taking something in a thread, when the taker may be stopped before the thread comes back with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

_Taken = TypeVar("_Taken")


async def take(call: Callable[[], _Taken], *, give_back: Callable[[_Taken], None]) -> _Taken:
    """What `call` returns, run in a thread. Cancelled meanwhile, it waits for it and gives it back first.

    A thread can't be cancelled: what it claims would be nobody's until the lease runs out.
    """
    taking = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        give_back(await taking)
        raise
