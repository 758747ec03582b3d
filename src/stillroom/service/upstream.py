"""The server behind the gateway: connections to it, kept alive."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from stillroom.addresses import is_loopback
from stillroom.config import Gateway
from stillroom.errors import ConfigError
from stillroom.models.connections import tls_context
from stillroom.service.http import CutShort, Head, Malformed, read_head, write_head


class Unreachable(Exception):
    """The upstream can't be reached, or broke off before it answered."""


class Silent(Exception):
    """The upstream took the request and said nothing."""


class Line:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.idle_since = 0.0

    def close(self) -> None:
        self.writer.close()


class Upstream:
    """One server. Many requests at once, each on a connection of its own."""

    def __init__(self, url: str, numbers: Gateway) -> None:
        """Raises `ConfigError` unless it is `https://…`, or `http://…` on this machine."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise ConfigError(f"`{url}`: {error}") from error
        local = parts.hostname is not None and is_loopback(parts.hostname)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise ConfigError(f"`{url}` is no upstream", hint="e.g. --upstream https://api.openai.com/v1")
        if parts.scheme == "http" and not local:
            raise ConfigError(f"`{url}` would send keys unencrypted", hint="use https://, or a server on this machine")
        self.url = url
        self._numbers = numbers
        self._host, self._port = parts.hostname, port or (443 if parts.scheme == "https" else 80)
        self._named = parts.netloc
        self._path = parts.path.rstrip("/")
        self._tls: ssl.SSLContext | None = tls_context() if parts.scheme == "https" else None
        self._idle: list[Line] = []

    def path_of(self, path: str) -> str:
        """The upstream's path for a path of ours: `/v1` at the end of one and the beginning of the other is one."""
        base, asked = self._path.split("/")[1:], path.split("/")[1:]
        common = next(n for n in range(min(len(base), len(asked)), -1, -1) if base[len(base) - n :] == asked[:n])
        return "/" + "/".join([*base, *asked[common:]])

    async def send(self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes) -> tuple[Line, Head]:
        """Send a request and wait for the head of the answer. Raises `Unreachable`, `Silent` or `Malformed`."""
        line = await self._take()
        head = write_head(f"{method} {self.path_of(path)} HTTP/1.1", [("host", self._named), *headers])
        try:
            async with asyncio.timeout(self._numbers.silence_timeout_seconds):
                line.writer.write(head + body)
                await line.writer.drain()
                while (answer := await read_head(line.reader)) and answer.words[1].startswith("1"):
                    pass
        except TimeoutError as error:
            line.close()
            raise Silent(f"no answer within {self._numbers.silence_timeout_seconds:g} s") from error
        except (OSError, CutShort) as error:
            line.close()
            raise Unreachable(f"it broke off: {error}") from error
        except BaseException:
            line.close()
            raise
        if answer is None:
            line.close()
            raise Unreachable("it closed the connection without an answer")
        if not answer.words[0].startswith("HTTP/1.") or not (answer.words[1].isdigit() and len(answer.words[1]) == 3):
            line.close()
            raise Malformed("it does not speak HTTP/1.1")
        return line, answer

    def give_back(self, line: Line, answer: Head) -> None:
        """The whole answer was read: the connection may serve another request."""
        if answer.words[0] == "HTTP/1.0" or "close" in answer.get("connection").lower():
            line.close()
            return
        line.idle_since = time.monotonic()
        self._idle.append(line)

    async def aclose(self) -> None:
        """Close what is idle."""
        while self._idle:
            line = self._idle.pop()
            line.close()
            with suppress(OSError):
                await line.writer.wait_closed()

    async def _take(self) -> Line:
        oldest = time.monotonic() - self._numbers.idle_connection_seconds
        while self._idle:
            line = self._idle.pop()
            if line.idle_since > oldest and not line.reader.at_eof() and not line.writer.is_closing():
                return line
            line.close()
        try:
            async with asyncio.timeout(self._numbers.connect_timeout_seconds):
                reader, writer = await asyncio.open_connection(
                    self._host, self._port, ssl=self._tls, limit=self._numbers.max_head_bytes
                )
        except TimeoutError as error:
            raise Unreachable(f"no connection within {self._numbers.connect_timeout_seconds:g} s") from error
        except OSError as error:
            raise Unreachable(f"no connection: {error}") from error
        return Line(reader, writer)
