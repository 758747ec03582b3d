"""One record of a session that may feed memory."""

from __future__ import annotations

import msgspec

MESSAGES = frozenset({"message", "agent_message"})
"""Types of items in which somebody says something."""

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises of a text that is no JSON, or not the JSON that was looked for."""


class Item(msgspec.Struct, frozen=True, gc=False):
    """A `ResponseItem` as the agent stored it; `raw` is valid JSON in valid UTF-8."""

    #: `message`, `function_call`, … (spec §5.3).
    type: str
    #: Of messages only.
    role: str | None
    #: The payload: the bytes of the file, or rewritten where something was taken out.
    raw: bytes
    timestamp_ms: int | None
    #: In the file, from 1.
    line_no: int


def valid_utf8(raw: bytes) -> bytes:
    """The same bytes where they are UTF-8; else with what is none replaced."""
    if raw.isascii():
        return raw
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace").encode()
    return raw
