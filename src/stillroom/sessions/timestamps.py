"""Times as session files write them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def parse_timestamp(text: bytes) -> int | None:
    """Milliseconds since the epoch of an ISO 8601 time, without a zone in UTC; None if it is none."""
    # Many lines share a second; the rest is one of a thousand.
    if len(text) == 24 and (rest := _rest_ms(text[19:])) is not None:
        second = _second_ms(text[:19])
        return None if second is None else second + rest
    return _parse(text)


@lru_cache(maxsize=1024)
def _second_ms(prefix: bytes) -> int | None:
    return _parse(prefix + b"Z")


@lru_cache(maxsize=1024)
def _rest_ms(rest: bytes) -> int | None:
    """The milliseconds in `.mmmZ`; None if it is something else."""
    return int(rest[1:4]) if rest[:1] == b"." and rest[4:] == b"Z" and rest[1:4].isdigit() else None


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
