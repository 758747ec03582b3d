"""What sessions were told: the hook adds a line to `sessions.jsonl` under the home for each. Imported by the hook."""

from __future__ import annotations

import os

from stillroom.system import READ, read_at

FILE = "sessions.jsonl"
#: Of the file's end: some hundred sessions.
TAIL_BYTES = 128 * 1024


def tail(home: str) -> bytes:
    """The last lines, of which the first may be torn; nothing if there are none."""
    try:
        file = os.open(f"{home}/{FILE}", READ)
    except OSError:
        return b""
    try:
        size = os.fstat(file).st_size
        return read_at(file, TAIL_BYTES, max(0, size - TAIL_BYTES))
    finally:
        os.close(file)
