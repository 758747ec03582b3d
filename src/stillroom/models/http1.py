"""HTTP/1.1 on one connection: a request is sent, and its whole response read, by a deadline.

What one POST of phase 1 needs and no more, at a fraction of the time of the standard library's client, which makes an
e-mail message of the headers and has no deadline for a whole exchange (`docs/decisions/0001-phase-1-speaks-http.md`).
"""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Mapping
from typing import NamedTuple

_READ_BYTES = 64 * 1024
_MAX_HEAD_BYTES = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.([01]) (\d{3})(?: [^\r\n]*)?\r?\n")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_CHUNK_SIZE = re.compile(rb"[0-9a-fA-F]{1,15}")
_LENGTH = re.compile(r"[0-9]{1,15}")
_SWITCHING_PROTOCOLS = 101
_WITHOUT_BODY = (204, 304)


class Response(NamedTuple):
    """What the server sent. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class BrokenResponse(Exception):
    """What came is no whole response."""


class ReplyTooLarge(Exception):
    """The server went on after the limit."""


class Connection:
    """A socket and what has arrived on it, for one thread at a time; only `cut` may be called from another.

    Sending and receiving raise `OSError`, `TimeoutError` at the deadline (of `time.monotonic`), `BrokenResponse` and
    `ReplyTooLarge`; the connection is of no use then.
    """

    def __init__(self, *, max_reply_bytes: int) -> None:
        #: None until it is connected.
        self.sock: socket.socket | None = None
        #: Whether another request may be sent.
        self.reusable = False
        self._max_reply_bytes = max_reply_bytes
        self._buffer = bytearray()
        self._deadline = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether the server has neither closed it nor sent what nobody asked for."""
        return self.sock is not None and not select.select([self.sock], [], [], 0)[0]

    def exchange(self, request: bytes, *, deadline: float) -> Response:
        """Send a request and wait for the whole response."""
        self.reusable = False
        version, status, headers = self._send(request, deadline=deadline)
        body, has_end = self._read_body(status, headers)
        stays_open = version == b"1" and "close" not in headers.get("connection", "").lower()
        self.reusable = stays_open and has_end and not self._buffer
        return Response(status, headers, body)

    def open_tunnel(self, request: bytes, *, deadline: float) -> None:
        """Have a proxy pass on all that follows."""
        _, status, _ = self._send(request, deadline=deadline)
        if status != 200 or self._buffer:
            raise BrokenResponse(f"the proxy opens no tunnel: HTTP {status}")

    def cut(self) -> None:
        """Wake the thread that waits for the server."""
        if self.sock is not None:
            try:
                # Of the plain socket: the TLS layer's own state belongs to the waiting thread.
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)
            except OSError:  # it has just ended
                pass

    def close(self) -> None:
        if self.sock is not None:
            self.sock.close()

    def _send(self, request: bytes, *, deadline: float) -> tuple[bytes, int, dict[str, str]]:
        """The head of the response: the minor version, the status, the headers."""
        self._deadline = deadline
        left = memoryview(request)
        while left:
            left = left[self._waiting().send(left) :]
        while True:
            version, status, headers = self._read_head()
            if not 100 <= status < 200 or status == _SWITCHING_PROTOCOLS:  # else the response is still to come
                return version, status, headers

    def _read_head(self) -> tuple[bytes, int, dict[str, str]]:
        while (end := _END_OF_HEAD.search(self._buffer)) is None:
            self._check_frame()
            self._receive()
        head = self._take(end.end())
        first = _STATUS.match(head)
        if first is None:
            raise BrokenResponse("what answers does not speak HTTP/1")
        headers: dict[str, str] = {}
        for line in head[first.end() :].decode("latin-1").split("\n"):
            name, colon, value = line.partition(":")
            if colon:
                name, value = name.strip().lower(), value.strip()
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return first[1], int(first[2]), headers

    def _read_body(self, status: int, headers: Mapping[str, str]) -> tuple[bytes, bool]:
        """The body; and whether it has an end other than that of the connection."""
        if status in _WITHOUT_BODY:
            return b"", True
        if (coding := headers.get("transfer-encoding")) is not None:
            if coding.lower() != "chunked":
                raise BrokenResponse(f"the reply is coded as `{coding[:40]}`")
            return self._read_chunks(), True
        if (length := headers.get("content-length")) is not None:
            if not _LENGTH.fullmatch(length):
                raise BrokenResponse(f"the reply's length is `{length[:40]}`")
            self._check_size(int(length))
            return self._read_exactly(int(length)), True
        while self._receive(or_end=True):
            self._check_size(len(self._buffer))
        return self._take(len(self._buffer)), False

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := self._read_chunk_size():
            self._check_size(len(body) + size)
            body += self._read_exactly(size)
            if self._read_line():
                raise BrokenResponse("a part of the reply is longer than it says")
        while self._read_line():
            pass  # trailers
        return bytes(body)

    def _read_chunk_size(self) -> int:
        size = self._read_line().partition(b";")[0].strip()
        if not _CHUNK_SIZE.fullmatch(size):
            raise BrokenResponse("a part of the reply does not say how long it is")
        return int(size, 16)

    def _read_line(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            self._check_frame()
            self._receive()
        return self._take(end + 1).rstrip(b"\r\n")

    def _read_exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._receive()
        return self._take(size)

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken

    def _receive(self, *, or_end: bool = False) -> bool:
        """Wait for more; False at the end of the connection, if it may end here."""
        some = self._waiting().recv(_READ_BYTES)
        if not some and not or_end:
            raise BrokenResponse("the connection ended before the reply did")
        self._buffer += some
        return bool(some)

    def _waiting(self) -> socket.socket:
        """The socket, which waits no longer than until the deadline."""
        left = self._deadline - time.monotonic()
        if left <= 0 or self.sock is None:
            raise TimeoutError("timed out")
        self.sock.settimeout(left)
        return self.sock

    def _check_size(self, size: int) -> None:
        if size > self._max_reply_bytes:
            raise ReplyTooLarge(f"the reply is longer than {self._max_reply_bytes:,} bytes")

    def _check_frame(self) -> None:
        if len(self._buffer) > _MAX_HEAD_BYTES:
            raise ReplyTooLarge(f"the reply's headers are longer than {_MAX_HEAD_BYTES:,} bytes")
