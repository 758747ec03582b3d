"""Lines as Claude Code writes them, for tests that need one that no sample has."""

from __future__ import annotations

import json
from pathlib import Path

from stillroom.sessions.agents.claude_code.reader import open_items
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.stats import ReadStats

LIMIT = 8 * 1024 * 1024
FILE = "11111111-2222-4333-8444-555555555555.jsonl"


def line(kind: str, number: int, *, under: int | None = None, **fields: object) -> bytes:
    """A record with the id `number`, whose parent is the one before unless another is given."""
    parent = number - 1 if under is None else under
    record = {
        "parentUuid": f"u-{parent}" if parent else None,
        "isSidechain": False,
        "userType": "external",
        "entrypoint": "cli",
        "cwd": "/w",
        "sessionId": FILE.removesuffix(".jsonl"),
        "version": "2.1.332",
        "gitBranch": "main",
        "type": kind,
        "uuid": f"u-{number}",
        "timestamp": f"2026-11-29T11:00:{number % 60:02}.000Z",
        **fields,
    }
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def user(number: int, content: object, **fields: object) -> bytes:
    return line("user", number, message={"role": "user", "content": content}, **fields)


def assistant(number: int, *blocks: dict[str, object], model: str = "claude-x", **fields: object) -> bytes:
    message = {"id": f"m-{number}", "type": "message", "role": "assistant", "model": model, "content": blocks}
    return line("assistant", number, message=message, **fields)


def says(number: int, text: str) -> bytes:
    return assistant(number, {"type": "text", "text": text})


def calls(number: int, name: str, **given: object) -> bytes:
    return assistant(number, {"type": "tool_use", "id": f"t-{number}", "name": name, "input": given})


def returns(number: int, content: object, *, of: int, failed: bool = False, **fields: object) -> bytes:
    result = {"type": "tool_result", "tool_use_id": f"t-{of}", "content": content, "is_error": failed}
    return user(number, [result], **fields)


def attached(number: int, **attachment: object) -> bytes:
    return line("attachment", number, attachment=attachment)


def read(folder: Path, *lines: bytes, name: str = FILE, limit: int = LIMIT) -> tuple[list[Said | Ran], ReadStats]:
    """What happened in a session of these lines."""
    path = folder / name
    path.write_bytes(b"".join(lines))
    with open_items(path, max_line_bytes=limit) as items:
        return read_events(items), items.stats


def talk(events: list[Said | Ran]) -> list[tuple[str, str]]:
    return [(event.who, event.text) for event in events if isinstance(event, Said)]


def runs(events: list[Said | Ran]) -> list[Ran]:
    return [event for event in events if isinstance(event, Ran)]
