"""Runs a command and dies, as by `kill -9`, ahead of the change to disk that it is told.

What counts is each file that is opened for writing, moved, removed or made, and each statement of SQLite's that writes.
With 0 it only prints how many there are, at its end.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
from typing import Any

from stillroom.cli import main as stillroom

_CHANGES = frozenset({"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"})
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_SQL = ("BEGIN IMMEDIATE", "COMMIT", "INSERT", "UPDATE", "DELETE", "VACUUM", "CREATE")


def run(last: int, words: list[str]) -> None:
    """Run the command in this process, which is no good for anything else then."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1
        if steps == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def statement(sql: str) -> None:
        if sql.lstrip().upper().startswith(_SQL):
            step()

    def audited(event: str, arguments: tuple[object, ...]) -> None:
        if event in _CHANGES or (event == "open" and _writes(arguments)):
            step()

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*arguments, **options)
        db.set_trace_callback(statement)
        return db

    connect, sqlite3.connect = sqlite3.connect, connected
    sys.dont_write_bytecode = True  # whether there is some already is no step of the command's
    sys.addaudithook(audited)
    try:
        stillroom(words)
    finally:
        print(f"\n{steps} steps", file=sys.stderr)


def _writes(arguments: tuple[object, ...]) -> bool:
    path, _, flags = arguments
    return isinstance(flags, int) and bool(flags & _WRITING) and path != os.devnull
