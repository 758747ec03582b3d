"""Cut a text in the middle to a number of tokens, four bytes to a token (spec §1.11)."""

from __future__ import annotations

BYTES_PER_TOKEN = 4


def middle_truncate(text: str, token_limit: int) -> str:
    """Keep both ends of `text`, `token_limit` tokens in all, with a marker between.

    A text that fits is returned as it is. The marker comes on top of the limit.
    """
    budget = BYTES_PER_TOKEN * token_limit
    # No character has more than four bytes, and most texts are ASCII.
    if len(text) <= budget // 4 or (len(text) <= budget and text.isascii()):
        return text
    data = _encode(text)
    if len(data) <= budget:
        return text
    head = data[: floor_boundary(data, budget // 2)]
    tail = data[ceil_boundary(data, len(data) - (budget - budget // 2)) :]
    return head.decode() + marker(len(data) - budget) + tail.decode()


def marker(removed_bytes: int) -> str:
    """What stands where text was taken out."""
    return f"…{-(-removed_bytes // BYTES_PER_TOKEN)} tokens truncated…"


def floor_boundary(data: bytes | bytearray, at: int) -> int:
    """The last character boundary of UTF-8 `data` that is not after `at`."""
    at = min(at, len(data))
    while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def ceil_boundary(data: bytes | bytearray, at: int) -> int:
    """The first character boundary of UTF-8 `data` that is not before `at`."""
    at = max(at, 0)
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at += 1
    return at


def _encode(text: str) -> bytes:
    # A lone surrogate can't be sent anywhere; it becomes "?".
    return text.encode("utf-8", "replace")
