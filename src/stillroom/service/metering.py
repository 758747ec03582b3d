"""Reads what a response used while it passes by, plain or compressed, without holding it up."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Callable
from typing import Any

import msgspec

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

from stillroom.service.dialects import Dialect

#: What can be read of what a client may ask for.
READABLE = ("gzip", "deflate", "zstd")

UNREADABLE = (zlib.error, zstd.ZstdError, EOFError)
_END = {"response.completed", "response.incomplete", "response.failed", "message_stop"}

#: What ends an event.
_BLANKS = (b"\n\n", b"\r\n\r\n")

Expand = Callable[[bytes], bytes]


def expander(encoding: str) -> Expand | None:
    """What undoes this content encoding, piece by piece; None when it is not known."""
    match encoding.strip().lower():
        case "" | "identity":
            return bytes
        case "gzip" | "x-gzip":
            return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress
        case "deflate":
            return zlib.decompressobj().decompress
        case "zstd":
            return zstd.ZstdDecompressor().decompress
        case _:
            return None


class Meter:
    """The usage of one response. Feed it every piece; it never fails, it only may learn nothing."""

    def __init__(self, dialect: Dialect, *, streamed: bool, encoding: str, max_bytes: int) -> None:
        #: What has been reported so far, in the provider's words.
        self.usage: dict[str, Any] = {}
        #: The response said that it is over: nothing more will be reported.
        self.ended = False
        #: Nothing is open: what comes next begins an event.
        self.between_events = True
        self._dialect = dialect
        self._streamed = streamed
        self._expand = expander(encoding)
        self._max_bytes = max_bytes
        self._held = b""
        self._too_long = False

    def feed(self, piece: bytes) -> None:
        """Look at the next piece."""
        if self._expand is None:
            return
        try:
            data = self._held + self._expand(piece)
        except UNREADABLE:
            self._expand = None
            return
        if self._streamed:
            data = self._read_events(data)
        self._too_long = self._too_long or len(data) > self._max_bytes
        self._held = b"" if self._too_long else data

    def finish(self) -> None:
        """The body is over."""
        if self._streamed:
            self._read_events(self._held + b"\n\n")
        elif self._held and isinstance(body := _decode(self._held), dict):
            self._take(body.get("usage"))
        self._held = b""
        self.ended = True

    def _read_events(self, data: bytes) -> bytes:
        """Read all whole events; what is left over."""
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        end = data.rfind(b"\n\n")
        self.between_events = end == len(data) - 2 if data else self.between_events
        if end < 0:
            return data
        whole, rest = data[:end], data[end + 2 :]
        if self._too_long:  # the beginning of the first event is gone
            _, _, whole = whole.partition(b"\n\n")
            self._too_long = False
        # Most events are a few letters of text: nothing in them is worth a parse.
        if b'"usage"' in whole or b"_stop" in whole or b"[DONE]" in whole or b"response." in whole:
            for event in whole.split(b"\n\n"):
                self._read_event(event)
        return rest

    def _read_event(self, event: bytes) -> None:
        if not (b'"usage"' in event or b"message_stop" in event or b"[DONE]" in event):
            return
        data = b"\n".join(line[5:].strip() for line in event.split(b"\n") if line.startswith(b"data:"))
        if data == b"[DONE]":
            self.ended = True
            return
        body = _decode(data)
        if not isinstance(body, dict):
            return
        kind = body.get("type")
        holder = body.get({"responses": "response", "messages": "message"}.get(self._dialect, ""))
        self._take(holder.get("usage") if isinstance(holder, dict) else body.get("usage"))
        self.ended = self.ended or (isinstance(kind, str) and kind in _END)

    def _take(self, usage: object) -> None:
        """Later counts replace earlier ones: they grow."""
        if isinstance(usage, dict):
            self.usage.update({key: value for key, value in usage.items() if value is not None})
        elif usage is not None:
            self.usage["input_tokens"] = usage  # for whoever judges it: it is no count


class UsageChunkFilter:
    """Takes out of a streamed chat the chunk that only tells the usage."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """The events that are whole, without that chunk."""
        data = self._held + piece
        end = max(data.rfind(blank) + len(blank) if blank in data else 0 for blank in _BLANKS)
        whole, self._held = data[:end], data[end:]
        if b'"usage"' not in whole:
            return whole
        return b"".join(event for event in _split_events(whole) if not _tells_usage_only(event))

    def finish(self) -> bytes:
        """What is left."""
        rest, self._held = self._held, b""
        return rest


def _split_events(data: bytes) -> list[bytes]:
    """The events with the blank lines that end them."""
    blank = b"\r\n\r\n" if b"\r\n\r\n" in data else b"\n\n"
    return [part + blank for part in data.split(blank) if part]


def _tells_usage_only(event: bytes) -> bool:
    data = b"\n".join(line[5:].strip() for line in event.splitlines() if line.startswith(b"data:"))
    body = _decode(data) if b'"usage"' in data else None
    return isinstance(body, dict) and body.get("choices") == [] and body.get("usage") is not None


def _decode(data: bytes) -> object:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return json.loads(data)  # it reads half a character (`"\ud83d"`), where a text was cut
    except (ValueError, RecursionError):
        return None
