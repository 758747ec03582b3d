"""Sessions as Codex records them, made up, of any size."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

_ORIGIN_MS = 1_780_000_000_000
_FILLER = "The build printed nothing unusual; every test of the module passed and the cache stayed warm. "


def sample_rollout(
    codex_home: Path,
    *,
    size_bytes: int = 61_000,
    number: int = 0,
    started_at_ms: int = _ORIGIN_MS,
    cwd: str = "/home/dev/project",
    source: str = "cli",
    memory_mode: str | None = None,
    messages: tuple[str, ...] = ("Run the tests with `make check`; never with plain pytest.",),
) -> Path:
    """Write one rollout of about `size_bytes` under `codex_home/sessions` and return its path.

    `number` makes the thread id, so that many of them differ and stay the same from run to run.
    """
    thread_id = str(uuid.UUID(int=(0x0190 << 112) | (7 << 76) | (2 << 62) | number))
    started = datetime.fromtimestamp(started_at_ms / 1000, UTC)
    folder = codex_home / "sessions" / f"{started:%Y/%m/%d}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-{started:%Y-%m-%dT%H-%M-%S}-{thread_id}.jsonl"
    meta: dict[str, Any] = {
        "id": thread_id,
        "timestamp": _stamp(started_at_ms),
        "cwd": cwd,
        "originator": "codex_cli_rs",
        "cli_version": "0.171.0",
        "source": source,
        "model_provider": "openai",
    }
    if memory_mode is not None:
        meta["memory_mode"] = memory_mode
    lines = [_line(started_at_ms, "session_meta", meta)]
    for at, text in enumerate(messages):
        lines.append(_line(started_at_ms + at, "event_msg", {"type": "user_message", "message": text}))
        lines.append(_line(started_at_ms + at, "response_item", _message("user", "input_text", text)))
    written, turn = sum(map(len, lines)), 0
    while written < size_bytes:
        turn += 1
        for item in _turn(turn, size=min(4000, size_bytes - written)):
            lines.append(_line(started_at_ms + turn * 1000, "response_item", item))
            written += len(lines[-1])
    path.write_bytes(b"".join(lines))
    return path


def _turn(turn: int, *, size: int) -> list[dict[str, Any]]:
    output = (_FILLER * (size // len(_FILLER) + 1))[: max(size - 900, 20)]
    return [
        {
            "type": "function_call",
            "name": "shell",
            "arguments": msgspec.json.encode({"command": ["bash", "-lc", f"make check STEP={turn}"]}).decode(),
            "call_id": f"call_{turn}",
        },
        {
            "type": "function_call_output",
            "call_id": f"call_{turn}",
            "output": f"Exit code: 0\nWall time: 0.1 seconds\nOutput:\n{output}",
        },
        _message("assistant", "output_text", f"Step {turn} passed with `make check`."),
    ]


def _message(role: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def _line(at_ms: int, kind: str, payload: dict[str, Any]) -> bytes:
    return msgspec.json.encode({"timestamp": _stamp(at_ms), "type": kind, "payload": payload}) + b"\n"


def _stamp(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
