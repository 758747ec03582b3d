"""A thread as a page that a person reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import assert_never

from stillroom.recording.exporting.pieces import Called, Piece, Returned, Said
from stillroom.recording.lines import timestamp
from stillroom.thread import Thread

_HEADINGS = {"user": "User", "assistant": "Assistant", "agent": "Another agent", "harness": "The client"}
_FENCES = re.compile(r"`{3,}")
# Calls whose result may still come; a client has a handful at a time.
_PENDING_CALLS = 1000


def markdown(thread: Thread, pieces: Iterable[Piece], *, agent: str) -> Iterator[bytes]:
    """The page in parts: what is known of the thread, then everything that was said and done, in order."""
    facts = {
        "Agent": " ".join(filter(None, (agent, thread.cli_version))),
        "Folder": thread.cwd,
        "Branch": thread.git_branch,
        "Started as": thread.source,
        "Parent": thread.parent_thread_id,
        "Began": timestamp(thread.created_at_ms),
        "Last activity": timestamp(thread.updated_at_ms),
    }
    title = " ".join((thread.title or thread.preview or thread.thread_id).split())
    told = "".join(f"- {name}: {value}\n" for name, value in facts.items() if value)
    yield f"# {title}\n\n- Thread: `{thread.thread_id}`\n{told}".encode()
    tools: dict[str, str] = {}
    for piece in pieces:
        yield _piece(piece, tools).encode("utf-8", "replace")


def _piece(piece: Piece, tools: dict[str, str]) -> str:
    match piece:
        case Said():
            return f"\n## {_HEADINGS[piece.who]}{_clock(piece.at_ms)}\n\n{piece.text.rstrip()}\n"
        case Called():
            tools[piece.call_id] = piece.tool
            if len(tools) > _PENDING_CALLS:
                del tools[next(iter(tools))]
            kind, text = ("sh", piece.command) if piece.command is not None else ("json", piece.arguments)
            return f"\n### `{piece.tool}`{_clock(piece.at_ms)}\n\n{_fenced(text, kind)}"
        case Returned():
            tool = tools.pop(piece.call_id or "", "a call")
            return f"\n{_ended(piece)} of `{tool}`:\n\n{_fenced(piece.text, 'text')}"
        case _:
            assert_never(piece)


def _ended(piece: Returned) -> str:
    if piece.exit_code is not None:
        return f"Exit code {piece.exit_code}"
    return {True: "Success", False: "Failure", None: "Result"}[piece.ok]


def _fenced(text: str, kind: str) -> str:
    """A block that nothing inside of it can end."""
    fence = "`" * max([2, *map(len, _FENCES.findall(text))]) + "`"
    return f"{fence}{kind}\n{text.rstrip()}\n{fence}\n"


def _clock(at_ms: int | None) -> str:
    return f" · {datetime.fromtimestamp(at_ms / 1000).astimezone():%H:%M:%S}" if at_ms is not None else ""
