"""Sessions that their clients said are over, in `ended.jsonl` under the home. A hook imports this.

The hook of a session's end adds a line, and so does a recorder that is closed; every pass reads the newest lines. What
is said later in such a session makes it go on: the mark then counts no more.
"""

from __future__ import annotations

import os

from stillroom.system import APPEND, READ, read_at

FILE = "ended.jsonl"
#: The newest lines, some thousand sessions: a pass reads no more. A file of twice that becomes `ended.jsonl.1`.
_TAIL_BYTES = 128 * 1024


def mark_ended(home: str, thread_id: str, *, at_ms: int) -> None:
    """This session is over. Raises `OSError`."""
    import json

    line = json.dumps({"at_ms": at_ms, "thread_id": thread_id}).encode("ascii") + b"\n"
    path = f"{home}/{FILE}"
    file = os.open(path, APPEND, 0o600)
    try:
        if os.fstat(file).st_size >= 2 * _TAIL_BYTES:
            os.replace(path, f"{path}.1")  # noqa: PTH105 - no pathlib in the hook
            os.close(file)
            file = os.open(path, APPEND, 0o600)
        os.write(file, line)  # in one write: processes don't mix theirs
    finally:
        os.close(file)


def ended_sessions(home: str) -> dict[str, int]:
    """When each of the newest ended, in milliseconds. A line that can't be read is passed over."""
    import json

    found: dict[str, int] = {}
    for line in _tail(home).splitlines():
        try:
            entry = json.loads(line)
            thread_id, at_ms = entry["thread_id"], entry["at_ms"]
        except (ValueError, LookupError, TypeError, RecursionError):
            continue
        if isinstance(thread_id, str) and type(at_ms) is int:
            found[thread_id] = max(found.get(thread_id, 0), at_ms)
    return found


def _tail(home: str) -> bytes:
    try:
        file = os.open(f"{home}/{FILE}", READ)
    except OSError:
        return b""
    try:
        size = os.fstat(file).st_size
        return read_at(file, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
    finally:
        os.close(file)
