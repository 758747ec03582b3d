"""Starts `stillroom run` beside a session: detached, one at a time, and not more often than is of use."""

from __future__ import annotations

import os
import sys
import time

from stillroom.integrations.bounds import (
    AT_ONCE_FLOOR_SECONDS,
    LOCK_WAIT_SECONDS,
    MAX_LOG_BYTES,
    PASS_INTERVAL_MINUTES,
    START_FLOOR_SECONDS,
)
from stillroom.integrations.journal import log_failure
from stillroom.pass_lock import take_pass_lock
from stillroom.pausing import paused_since

STAMP = "pass.stamp"
LOG = "pass.log"
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Set for the pass and all that it starts: a hook under it does nothing, so that no pass ever starts another.
OFF = "STILLROOM_HOOK"


def start_pass(home: str, thread_id: str, *, over: bool = False) -> None:
    """Start a pass if one is due, and return at once: looking closer and starting are the child's work.

    A session that is over is extracted itself. The offline engine does that at once, as it costs nothing,
    so that the next session knows what was said in this one.

    The child leaves the session's process group and its streams, takes the lock that the pass then holds until it ends,
    and becomes `stillroom run`.
    """
    if not hasattr(os, "fork") or not (over or _worth_looking(home)):
        return
    if since := paused_since(home):
        log_failure(home, f"no pass is started: paused since {since} (`stillroom resume`)")
        return
    _detached(home, "starting a pass", lambda: _become_pass(home, thread_id, over=over))


def _detached(home: str, what: str, become: Callable[[], None]) -> None:
    """Call `become` in a process that has left the session's process group and its streams."""
    if os.fork():
        return
    try:
        os.setsid()
        _leave_streams(home)
        become()
    except Exception as error:  # noqa: BLE001 - a second copy of the hook must never get out of here
        log_failure(home, f"{what}: {type(error).__name__}: {error}")
    finally:
        os._exit(0)


def _worth_looking(home: str) -> bool:
    try:
        age = time.time() - os.stat(home + "/" + STAMP).st_mtime  # noqa: PTH116
    except OSError:
        return os.path.isdir(home)  # noqa: PTH112
    return not 0 <= age < START_FLOOR_SECONDS


def _leave_streams(home: str) -> None:
    """The agent waits for the last holder of its pipes: stdin is empty from now on, the rest goes to a log."""
    path = home + "/" + LOG
    try:
        if os.stat(path).st_size > MAX_LOG_BYTES:  # noqa: PTH116
            os.replace(path, path + ".1")  # noqa: PTH105
    except FileNotFoundError:
        pass
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for descriptor, ours in ((0, nothing), (1, log), (2, log)):
        os.dup2(ours, descriptor)
    os.closerange(3, 1024)


def _become_pass(home: str, thread_id: str, *, over: bool) -> None:
    at_once = over and is_offline(home)
    lock = _next_lock(home) if at_once else take_pass_lock(home)
    if lock is None or not (at_once or is_due(home, time.time())):
        return
    _touch(home + "/" + STAMP)
    os.set_inheritable(lock, True)
    # `-P`: the folder in which a program is started is no place to import from.
    command = [sys.executable, "-P", "-m", "stillroom", "run", "--home", home]
    if thread_id and not over:
        command += ["--trigger-thread", thread_id]
    os.chdir(home)
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    by = "the end of session" if over else "session"
    os.write(2, f"== {moment} started by {by} {thread_id or '(unnamed)'}\n".encode())
    os.execve(command[0], command, {**os.environ, OFF: "off"})


def _next_lock(home: str) -> int | None:
    """The lock of the next pass. None: one that began meanwhile, and sees the end of the session, does it.

    The pass that runs now may have looked before the session ended, so it is waited for.
    """
    began = time.time()
    while time.time() - began < LOCK_WAIT_SECONDS:
        age = time.time() - _stamped(home)
        if not 0 <= age < AT_ONCE_FLOOR_SECONDS and (lock := take_pass_lock(home)) is not None:
            if _stamped(home) < began:
                return lock
            os.close(lock)
            return None
        time.sleep(0.2)
    return None


def is_due(home: str, now: float) -> bool:
    """Whether the last start, and the last pass that the store knows of, are `pass_interval_minutes` ago."""
    interval = 60 * _interval_minutes(home)
    return all(not 0 <= now - last < interval for last in (_stamped(home), _recorded(home)))


def _stamped(home: str) -> float:
    try:
        return os.stat(home + "/" + STAMP).st_mtime  # noqa: PTH116
    except OSError:
        return 0.0


def _recorded(home: str) -> float:
    """The start of the last pass in the state database, one that a person started included."""
    import sqlite3
    from urllib.parse import quote

    try:
        db = sqlite3.connect(f"file:{quote(home)}/state.sqlite3?mode=ro", uri=True, timeout=1.0)
    except sqlite3.Error:
        return 0.0
    try:
        (last,) = db.execute("SELECT max(at) FROM passes").fetchone()
    except sqlite3.Error:  # what is wrong with it, the pass says in its log
        return 0.0
    finally:
        db.close()
    return float(last or 0)


def is_offline(home: str) -> bool:
    """Whether both phases are done by the offline engine, as far as the settings say."""
    memories = _memories(home)
    return memories is not None and all(
        memories.get(name, "offline") == "offline" for name in ("extract_model", "consolidation_model")
    )


def _memories(home: str) -> dict[str, object] | None:
    """What `config.toml` says under `[memories]`; None: it can't be read."""
    import tomllib

    try:
        with open(home + "/config.toml", "rb") as file:
            memories = tomllib.load(file).get("memories", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None
    return memories if isinstance(memories, dict) else None


def _interval_minutes(home: str) -> int:
    minutes = (_memories(home) or {}).get("pass_interval_minutes")
    return minutes if isinstance(minutes, int) and 1 <= minutes <= 1440 else PASS_INTERVAL_MINUTES


def _touch(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    os.utime(path)
