"""Numbers and texts as people read them."""

from __future__ import annotations


def plain(text: str) -> str:
    """`text` without what would steer a terminal: paths, and what a server says, may hold anything."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\ufffd" for c in text)


def many(number: int, one: str, several: str | None = None) -> str:
    """`1 session`, `2 sessions`."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def size(count: int) -> str:
    """Bytes, rounded: `12 kB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:,} {unit}"
        count = round(count / 1000)
    return f"{count:,} GB"


def span(seconds: int) -> str:
    """Time, rounded down: `90 s`, `75 min`, `30 h`, `1,127 days`."""
    if seconds < 120:
        return f"{seconds:,} s"
    if seconds < 120 * 60:
        return f"{seconds // 60:,} min"
    if seconds < 48 * 3600:
        return f"{seconds // 3600:,} h"
    return f"{seconds // 86_400:,} days"
