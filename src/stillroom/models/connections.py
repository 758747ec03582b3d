"""HTTP/1.1 to one server over connections that are kept alive, each used by one thread at a time.

The standard library's client in threads of our own: a request costs it 0.5 ms of CPU, where the async stack of `httpx2`
takes 2-3 ms and 80 ms to import (`docs/decisions/0001-phase-1-speaks-http.md`).
"""

from __future__ import annotations

import asyncio
import http.client
import select
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

from stillroom.errors import ConfigError
from stillroom.models.proxies import Proxy

_READ_BYTES = 64 * 1024
T = TypeVar("T")


class Response(NamedTuple):
    """What the server sent. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ConnectionFailed(Exception):
    """No whole response arrived."""


class ReplyTooLarge(Exception):
    """The server went on after the limit."""


@dataclass(slots=True)
class _Exchange:
    """One request on its way, so that another thread can stop it."""

    lock: threading.Lock = field(default_factory=threading.Lock)  #: of the two fields below
    connection: http.client.HTTPConnection | None = None
    aborted: bool = False

    def begin(self, connection: http.client.HTTPConnection) -> None:
        with self.lock:
            self.connection = connection
            aborted = self.aborted
        if aborted:
            raise ConnectionFailed("stopped")

    def abort(self) -> None:
        """Wake the thread that waits for the server."""
        with self.lock:
            self.aborted = True
            sock = self.connection.sock if self.connection is not None else None
        if sock is not None:
            try:
                # Of the plain socket: the TLS layer's own state belongs to the waiting thread.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            except OSError:  # it has just ended
                pass


class Connections:
    """Posts to one URL, at most `concurrency` at a time; more wait for their turn."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        concurrency: int,
        connect_timeout_seconds: float,
        max_reply_bytes: int,
        proxy: Proxy | None = None,
    ) -> None:
        self._parts = urlsplit(url)
        # A tunnel sends the proxy's headers by itself, ahead of everything else.
        self._headers = {**headers, **(proxy.headers if proxy and self._parts.scheme == "http" else {})}
        self._connect_timeout = connect_timeout_seconds
        self._max_reply_bytes = max_reply_bytes
        self._proxy = proxy
        self._tls = tls_context() if self._parts.scheme == "https" else None
        self._target = _target(self._parts, proxy)
        self._idle: list[http.client.HTTPConnection] = []
        self._threads = ThreadPoolExecutor(max_workers=concurrency, thread_name_prefix="model")

    async def post(self, body: bytes, *, begin: Callable[[], None], read: Callable[[Response], T]) -> T:
        """Send `body`, wait for the whole response, and return what `read` makes of it. Raises `ConnectionFailed` or
        `ReplyTooLarge`.

        `begin` and `read` are called right before and after, in the thread that waits: they may block. When it is
        cancelled the connection is cut, so that no thread is left waiting.
        """
        exchange = _Exchange()

        def work() -> T:
            begin()
            return read(self._post(exchange, body))

        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            exchange.abort()
            raise

    async def aclose(self) -> None:
        """Close what is idle, and wait for the threads."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        while self._idle:
            self._idle.pop().close()

    def _post(self, exchange: _Exchange, body: bytes) -> Response:
        connection, fresh = self._take()
        try:
            exchange.begin(connection)
            if fresh:
                connection.connect()
                exchange.begin(connection)  # it has a socket only now
                # Connecting is bounded here; the rest by whoever waits, who cuts the connection.
                connection.sock.settimeout(None)
            connection.request("POST", self._target, body, self._headers)
            response = connection.getresponse()
            content = self._read(response)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            server = f"{self._parts.hostname}:{self._parts.port}" if self._parts.port else self._parts.hostname
            raise ConnectionFailed(f"`{server}`: {type(error).__name__}: {error}".rstrip(": ")) from error
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Response(response.status, headers, content)

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        body = bytearray()
        while chunk := response.read(_READ_BYTES):
            body += chunk
            if len(body) > self._max_reply_bytes:
                raise ReplyTooLarge(f"the reply is longer than {self._max_reply_bytes:,} bytes")
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        return bytes(body)

    def _take(self) -> tuple[http.client.HTTPConnection, bool]:
        """An idle connection that the server has not closed, or a new one; and whether it is new."""
        while self._idle:
            connection = self._idle.pop()
            if connection.sock is not None and not select.select([connection.sock], [], [], 0)[0]:
                return connection, False
            connection.close()
        return self._open(), True

    def _open(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._tls is None:
            near = (self._proxy.host, self._proxy.port) if self._proxy else (host, port)
            return http.client.HTTPConnection(*near, timeout=self._connect_timeout)
        if self._proxy is None:
            return http.client.HTTPSConnection(host, port, timeout=self._connect_timeout, context=self._tls)
        tunnel = http.client.HTTPSConnection(
            self._proxy.host, self._proxy.port, timeout=self._connect_timeout, context=self._tls
        )
        tunnel.set_tunnel(host, port, headers=self._proxy.headers)
        return tunnel


def _target(parts: SplitResult, proxy: Proxy | None) -> str:
    """The request line's target: whole for a proxy that reads it, else the path."""
    if proxy is not None and parts.scheme == "http":
        return parts.geturl()
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def tls_context() -> ssl.SSLContext:
    """The machine's certificates; where Python has been told of none (python.org's macOS builds), `certifi`'s."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile is not None or paths.capath is not None:
        return ssl.create_default_context()
    try:
        import certifi
    except ImportError as error:
        raise ConfigError("no certificates were found", hint="set SSL_CERT_FILE, or pip install certifi") from error
    return ssl.create_default_context(cafile=certifi.where())
