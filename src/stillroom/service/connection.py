"""A client's connection whose work ends when it hangs up."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any


class Client(asyncio.StreamReaderProtocol):
    """A client's connection whose work ends when it hangs up: nobody should pay for what nobody reads."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
        tasks: set[asyncio.Task[None]],
    ) -> None:
        super().__init__(reader)
        self._reader, self._serve, self._tasks = reader, serve, tasks
        self._work: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        # asyncio only does this for sockets that name their protocol; without it a head waits 40 ms for its body.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop = asyncio.get_running_loop()
        writer = asyncio.StreamWriter(transport, self, self._reader, loop)
        self._work = loop.create_task(self._serve(self._reader, writer))
        self._tasks.add(self._work)
        self._work.add_done_callback(self._tasks.discard)

    def eof_received(self) -> bool:
        super().eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._work is not None:
            self._work.cancel()
