"""Moments as people write them."""

from __future__ import annotations

from datetime import UTC, datetime

from stillroom.errors import ConfigError


def parse_moment(text: str) -> int:
    """Milliseconds since 1970 of an ISO 8601 time (UTC when it has no offset) or of a number of seconds."""
    try:
        if text.isascii() and text.isdigit():
            moment = datetime.fromtimestamp(int(text), UTC)
        else:
            moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError) as error:
        raise ConfigError(f"`{text}` is no moment", hint="write it like 2026-11-30T09:00:00Z") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def moment(seconds: int | str | None) -> str:
    """A time of the values, as a clock on the wall shows it."""
    if not isinstance(seconds, int):
        return "-"
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):  # a file may claim any time
        return f"{seconds} s"
