"""Posts to one URL over connections that are kept alive."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Mapping
from urllib.parse import SplitResult, quote, urlsplit

from stillroom.errors import ConfigError
from stillroom.models.http1 import BrokenResponse, Connection, ReplyTooLarge, Response
from stillroom.models.proxies import Proxy
from stillroom.stopping import Stop

__all__ = ["ConnectionFailed", "Connections", "ReplyTooLarge", "Response", "TimedOut"]

_DEFAULT_PORTS = {"http": 80, "https": 443}
_TARGET_CHARS = "%/:=&?~+!$,;'@()*[]"


class ConnectionFailed(Exception):
    """No whole response arrived."""


class TimedOut(ConnectionFailed):
    """The server took the request, and was not done in time."""


class Connections:
    """As many as there are threads that post at a time. Everything blocks."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        connect_timeout_seconds: float,
        max_reply_bytes: int,
        proxy: Proxy | None = None,
    ) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._port = parts.port or _DEFAULT_PORTS[parts.scheme]
        self._tls = tls_context() if parts.scheme == "https" else None
        self._proxy = proxy
        self._connect_timeout = connect_timeout_seconds
        self._max_reply_bytes = max_reply_bytes
        # A tunnel sends the proxy's headers by itself, ahead of everything else.
        to_proxy = proxy.headers if proxy is not None and self._tls is None else {}
        self._head = _head("POST", _target(parts, proxy), _authority(parts), {**headers, **to_proxy})
        self._idle: list[Connection] = []

    def post(self, body: bytes, *, seconds: float, stop: Stop) -> Response:
        """Send `body` and wait for the whole response, so many seconds in all.

        Raises `ConnectionFailed` (`TimedOut`) or `ReplyTooLarge`; `Stopped` at once when it is stopped.
        """
        deadline = time.monotonic() + seconds
        request = b"%sContent-Length: %d\r\n\r\n%b" % (self._head, len(body), body)
        connection = self._take()
        try:
            with stop.waking(connection.cut):
                if connection.sock is None:
                    self._connect(connection, deadline, stop)
                response = connection.exchange(request, deadline=deadline)
        except (OSError, BrokenResponse) as error:
            connection.close()
            stop.check()
            if isinstance(error, TimeoutError) and time.monotonic() >= deadline:
                raise TimedOut(f"no complete reply within {seconds:g} s") from error
            said = str(error) if isinstance(error, BrokenResponse) else f"{type(error).__name__}: {error}"
            raise ConnectionFailed(f"`{self._host}:{self._port}`: {said}".rstrip(": ")) from error
        except BaseException:
            connection.close()
            raise
        if connection.reusable:
            self._idle.append(connection)
        else:
            connection.close()
        return response

    def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> Connection:
        """An idle connection that the server has not closed, or a new one."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return Connection(max_reply_bytes=self._max_reply_bytes)
            if connection.is_idle:
                return connection
            connection.close()

    def _connect(self, connection: Connection, deadline: float, stop: Stop) -> None:
        near = (self._proxy.host, self._proxy.port) if self._proxy else (self._host, self._port)
        timeout = min(self._connect_timeout, max(deadline - time.monotonic(), 0.001))
        sock = connection.sock = socket.create_connection(near, timeout)
        stop.check()  # what was asked ahead of it woke nobody
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return
        if self._proxy is not None:
            far = f"{self._host}:{self._port}"
            connection.open_tunnel(_head("CONNECT", far, far, self._proxy.headers) + b"\r\n", deadline=deadline)
        sock.settimeout(timeout)
        secured = self._tls.wrap_socket(sock, server_hostname=self._host, do_handshake_on_connect=False)
        connection.sock = secured
        stop.check()
        secured.do_handshake()


def _head(method: str, target: str, authority: str, headers: Mapping[str, str]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {authority}", "Accept-Encoding: identity"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join((*lines, "")).encode("latin-1")


def _authority(parts: SplitResult) -> str:
    host = (parts.hostname or "").encode("idna").decode()
    if ":" in host:
        host = f"[{host}]"
    return f"{host}:{parts.port}" if parts.port else host


def _target(parts: SplitResult, proxy: Proxy | None) -> str:
    """The request line's target: whole for a proxy that reads it, else the path."""
    if proxy is not None and parts.scheme == "http":
        return quote(parts.geturl(), safe=_TARGET_CHARS)
    return quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=_TARGET_CHARS)


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
