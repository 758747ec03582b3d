"""Small logs under the home that can't grow without end: what went wrong in the hook, and what sessions were given."""

from __future__ import annotations

import os
import time

from stillroom.integrations.bounds import MAX_LOG_BYTES, MAX_SESSIONS_BYTES
from stillroom.recall.injection.quick_json import dumps
from stillroom.recall.injection.session_log import FILE, tail
from stillroom.system import APPEND

FAILURES = "hook.log"


def log_failure(home: str, said: str) -> None:
    """One line in `hook.log`. A home that can't be written loses the line: a session must not suffer for it."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = " ".join(said.split())[:1000]
    try:
        append_line(home + "/" + FAILURES, f"{moment} {line}", MAX_LOG_BYTES)
    except OSError:
        pass


def log_session(home: str, entry: dict[str, str | int]) -> None:
    """What a session was given, for whoever later asks which version of the folder it saw."""
    append_line(home + "/" + FILE, dumps(entry), MAX_SESSIONS_BYTES)


def was_given(home: str, thread_id: str) -> bool:
    """Whether this thread was given memory before, as far as the log goes back."""
    return f'"thread_id":"{thread_id}"'.encode() in tail(home)


def append_line(path: str, line: str, max_bytes: int) -> None:
    """Add a line in one write, so that processes don't mix theirs; a full file becomes `PATH.1`."""
    file = os.open(path, APPEND, 0o600)
    try:
        if os.fstat(file).st_size >= max_bytes:
            os.replace(path, path + ".1")  # noqa: PTH105 - no pathlib in the hook
            os.close(file)
            file = os.open(path, APPEND, 0o600)
        os.write(file, line.encode("utf-8", "backslashreplace") + b"\n")
    finally:
        os.close(file)
