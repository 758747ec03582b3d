"""A gateway in a thread of its own, an upstream that sends exactly what it is told, and a client that hides nothing."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stillroom.budget import RolloutBudgetConfig
from stillroom.clock import SystemClock
from stillroom.config import GATEWAY, DatabaseLimits
from stillroom.service.gateway import Gateway
from stillroom.service.ledgers import Ledgers
from stillroom.service.upstream import Upstream
from stillroom.store.budgets import SharedBudget

CONFIG = RolloutBudgetConfig(limit_tokens=100_000, reminder_at_remaining_tokens=(50_000,))


class Served(NamedTuple):
    """A gateway that runs."""

    port: int
    told: list[str]
    database: Path

    def used(self, tree: str) -> dict[str, float]:
        """Weighted tokens of each thread of a tree."""
        with SharedBudget.attach(self.database, tree_id=tree) as budget:
            return {thread.thread_id: thread.used for thread in budget.status().threads}


@contextmanager
def gateway(tmp_path: Path, upstream: str, config: RolloutBudgetConfig = CONFIG, **numbers: float) -> Iterator[Served]:
    """Serve until the block ends."""
    database = tmp_path / "state.sqlite3"
    ledgers = Ledgers(database, config, limits=DatabaseLimits(), clock=SystemClock())
    told: list[str] = []
    chosen = msgspec.structs.replace(GATEWAY, **numbers)
    started, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()
    port = 0

    async def serve() -> None:
        nonlocal port
        made = Gateway(Upstream(upstream, chosen), ledgers, default_tree="nameless", numbers=chosen, tell=told.append)
        server = await loop.create_server(made.connect, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        started.set()
        await stop.wait()
        server.close()
        await made.aclose()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert started.wait(10)
    try:
        yield Served(port, told, database)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
        ledgers.close()


class Got(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def post(port: int, path: str, body: object, headers: Mapping[str, str] | None = None, *, method: str = "POST") -> Got:
    """One request on a connection of its own."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        client.request(method, path, sent, {"content-type": "application/json", **(headers or {})})
        answer = client.getresponse()
        return Got(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        client.close()


@contextmanager
def raw_upstream(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that reads a request's head and then does what it is told with the connection."""
    server = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def run() -> None:
        while not over.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                if connection.recv(65_536):
                    answer(connection)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        over.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(10)


def chunked(*pieces: bytes, headers: str = "content-type: text/event-stream", end: bool = True) -> bytes:
    """An answer in chunks, each of them a piece."""
    head = f"HTTP/1.1 200 OK\r\n{headers}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return head + body + (b"0\r\n\r\n" if end else b"")
