"""Times as session files write them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def parse_timestamp(text: bytes) -> int | None:
    """Milliseconds since the epoch of an ISO 8601 time, without a zone in UTC; None if it is none."""
    # All times of one minute share a prefix; the rest is `SS.mmmZ`.
    if len(text) == 24 and text[23] == 90 and text[17:19].isdigit() and text[20:23].isdigit():
        minute = _minute_ms(text[:17])
        return None if minute is None else minute + int(text[17:19]) * 1000 + int(text[20:23])
    return _parse(text)


@lru_cache(maxsize=256)
def _minute_ms(prefix: bytes) -> int | None:
    return _parse(prefix + b"00Z")


def _parse(text: bytes) -> int | None:
    try:
        time = datetime.fromisoformat(text.decode("ascii"))
        if time.tzinfo is None:
            time = time.replace(tzinfo=UTC)
        return round(time.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
