"""Numbers as people read them."""

from __future__ import annotations


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
