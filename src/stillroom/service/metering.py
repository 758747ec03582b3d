"""Reads what a response used while it passes by, plain or compressed, without holding it up."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from stillroom.service.dialects import Dialect
from stillroom.service.unpacking import TooLarge, Unreadable, unpacker

_END = {"response.completed", "response.incomplete", "response.failed", "message_stop"}

#: What ends an event.
_BLANKS = (b"\n\n", b"\r\n\r\n")
#: A chunk that tells the usage has some hundred bytes.
_MOST_CHUNK_BYTES = 64 * 1024


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
        #: None: nothing can be read, or no longer.
        self._unpacker = unpacker(encoding, max_bytes=max_bytes)
        self._max_bytes = max_bytes
        self._held = bytearray()
        self._too_long = False

    def feed(self, piece: bytes) -> None:
        """Look at the next piece."""
        if self._unpacker is None:
            return
        try:
            data = self._unpacker.feed(piece)
        except (Unreadable, TooLarge):
            self._unpacker = None
            self._held.clear()
            return
        # Where no event ends, the long beginning of one is not looked at again.
        if self._streamed and data and _has_blank(self._held[-3:] + data):
            data, self._held = self._read_events(bytes(self._held) + data), bytearray()
        elif data:
            self.between_events = False
        self._too_long = self._too_long or len(self._held) + len(data) > self._max_bytes
        if self._too_long:
            self._held.clear()
        else:
            self._held += data

    def finish(self) -> None:
        """The body is over."""
        if self._streamed:
            self._read_events(bytes(self._held) + b"\n\n")
        elif self._held and isinstance(body := _decode(bytes(self._held)), dict):
            self._take(body.get("usage"))
        self._held.clear()
        self.ended = True

    def _read_events(self, data: bytes) -> bytes:
        """Read all whole events, one at least; what is left over."""
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        end = data.rfind(b"\n\n")
        self.between_events = end == len(data) - 2
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
    """Takes out of a streamed chat the chunk that only tells the usage. What is too long for one is not held up."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        """The events that are whole, without that chunk."""
        data = self._held + piece
        end = max(data.rfind(blank) + len(blank) if blank in data else 0 for blank in _BLANKS)
        whole, self._held = data[:end], data[end:]
        if b'"usage"' in whole:
            whole = b"".join(event for event in _split_events(whole) if not _tells_usage_only(event))
        if len(self._held) > _MOST_CHUNK_BYTES:
            whole, self._held = whole + self._held, b""
        return whole

    def finish(self) -> bytes:
        """What is left."""
        rest, self._held = self._held, b""
        return rest


def _has_blank(data: bytes | bytearray) -> bool:
    return b"\n\n" in data or b"\n\r\n" in data


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
