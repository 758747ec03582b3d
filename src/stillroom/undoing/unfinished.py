"""What is being taken back, in `unfinished.json` under the home until it is done: a killed one is finished by the next
command or pass.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from stillroom.errors import WorkspaceError, way_out
from stillroom.private_file import write_private
from stillroom.thread import Thread
from stillroom.undoing.traces import Traces

FILE = "unfinished.json"


class Forgetting(msgspec.Struct, frozen=True, kw_only=True, tag="forget"):
    """Sessions are being forgotten. What tells of them stands here, until it stands nowhere."""

    threads: tuple[Thread, ...]
    traces: Traces
    at: int  #: seconds


class Undoing(msgspec.Struct, frozen=True, kw_only=True, tag="undo"):
    """Versions are being taken back."""

    #: Of the version that will say so.
    run: str
    #: The oldest version that goes.
    first: str
    #: Give a person's edits up where they can't be told from what goes.
    discard_edits: bool
    at: int  #: seconds


class Redacting(msgspec.Struct, frozen=True, kw_only=True, tag="redact"):
    """The present rules are being applied to all that is kept."""

    at: int  #: seconds


Unfinished = Forgetting | Undoing | Redacting


def begin(home: Path, work: Unfinished) -> None:
    """Keep on disk what has to be done, before the first of it is. Raises `WorkspaceError`."""
    try:
        write_private(home / FILE, _encoded(work), durable=True)
    except OSError as error:
        raise WorkspaceError(
            f"`{home / FILE}` can't be written: {error.strerror}; nothing was changed", hint=way_out(error, home)
        ) from error


def begun(home: Path) -> Unfinished | None:
    """What was begun and not ended. Raises `WorkspaceError` when it can't be read."""
    try:
        data = (home / FILE).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WorkspaceError(f"`{home / FILE}` can't be read: {error.strerror}") from error
    try:
        return _decoded(data)
    except ValueError as error:
        raise WorkspaceError(
            f"`{home / FILE}` can't be read: {error}", hint="delete it, and say again what is to be taken back"
        ) from error


def end(home: Path) -> None:
    """It is done."""
    for path in (home / FILE, *home.glob(f".{FILE}.*")):  # a killed process may have left half of one
        path.unlink(missing_ok=True)


def _encoded(work: Unfinished) -> bytes:
    """In ASCII: names may hold bytes that are no UTF-8."""
    return json.dumps(msgspec.to_builtins(work)).encode("ascii")


def _decoded(data: bytes) -> Unfinished:
    work: Unfinished = msgspec.convert(json.loads(data), type=Unfinished)
    return work
