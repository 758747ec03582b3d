"""Times as session files write them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def parse_timestamp(text: bytes) -> int | None:
    """Milliseconds since the epoch of an ISO 8601 time, without a zone in UTC; None if it is none."""
    # Many lines share a second; the rest is `.mmmZ`.
    if len(text) == 24 and text[19] == 46 and text[23] == 90 and text[20:23].isdigit():
        second = _second_ms(text[:19])
        return None if second is None else second + int(text[20:23])
    return _parse(text)


@lru_cache(maxsize=1024)
def _second_ms(prefix: bytes) -> int | None:
    return _parse(prefix + b"Z")


def _parse(text: bytes) -> int | None:
    try:
        time = datetime.fromisoformat(text.decode("ascii"))
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        return round(time.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def parse_local_time(text: str) -> int | None:
    """The same of a time without a zone that a client wrote by the clock on the wall of this machine."""
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return None
