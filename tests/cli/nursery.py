"""Starts commands by forking: `python nursery.py SOCKET`. A command needs a third of a second of imports, and a broken
home a thousand commands.

Each connection brings one command with its three streams, and gets its pid and then its exit code, a line each. What is
forked is a process like any other: it may be killed, has its own folder and environment, and ends as Python does.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import pkgutil
import signal
import socket
import sys
import threading
from typing import NoReturn

import die_at
import msgspec

from stillroom.cli import main as stillroom

#: With these come libraries that few commands load; those that do load them.
_HEAVY = ("adapters", ".testing", ".service", ".models", ".sandbox", ".consolidate", "__main__")


class Command(msgspec.Struct, frozen=True):
    """What is to be run."""

    words: list[str]
    environment: dict[str, str]
    folder: str
    #: Kill it ahead of that change to disk; 0: count them; None: neither.
    dying_at: int | None = None


def main() -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(sys.argv[1])
        listening.listen(64)
        _warm()
        gc.collect()
        gc.freeze()
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who keeps a command waits for it
        while os.getppid() != 1:
            connection, _ = listening.accept()
            if os.fork() == 0:
                break
            connection.close()
    command = _kept(connection)
    _run(command)


def _warm() -> None:
    for module in pkgutil.walk_packages(importlib.import_module("stillroom").__path__, "stillroom."):
        if not any(part in module.name for part in _HEAVY):
            importlib.import_module(module.name)


def _kept(connection: socket.socket) -> Command:
    """Read the command and fork for it; who keeps it tells how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    if (pid := os.fork()) != 0:
        for stream in streams:
            os.close(stream)
        connection.sendall(f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
        os._exit(0)
    connection.close()
    command = msgspec.json.decode(data, type=Command)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(command.folder)
    os.environ.clear()
    os.environ.update(command.environment)
    return command


def _run(command: Command) -> NoReturn:
    """Without the end of an interpreter: to take apart what was imported would copy all of it first."""
    code: object = 0
    try:
        if command.dying_at is None:
            stillroom(command.words)
        else:
            die_at.run(command.dying_at, command.words)
    except SystemExit as ended:
        code = ended.code
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else code is not None)


if __name__ == "__main__":
    main()
