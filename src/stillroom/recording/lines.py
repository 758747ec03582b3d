"""The lines of a rollout as they are written: valid JSON, without blobs, of bounded length, redacted where asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from stillroom.config import READING, StageOne
from stillroom.sessions.fragments import without_images
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.jsonl import Squeezer
from stillroom.sessions.meta import Git
from stillroom.spending import Usage

Redact = Callable[[str], str]

# A reader squeezes what is longer; what is written here is to be read whole. Half of it, as redaction may lengthen.
_MAX_PAYLOAD_BYTES = StageOne().max_line_bytes // 2
_TOO_LONG = "[record omitted: %d bytes]"


def line(kind: str, payload: bytes, *, at_ms: int) -> bytes:
    """One line, in the order of keys that Codex has: its first bytes tell what it is."""
    return b'{"timestamp":"%s","type":"%s","payload":%s}\n' % (timestamp(at_ms).encode(), kind.encode(), payload)


def timestamp(at_ms: int) -> str:
    """A time as rollouts have it: UTC, with milliseconds."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def item_payload(raw: bytes, *, redact: Redact | None) -> bytes:
    """A `ResponseItem` as it may be kept: blobs are their sizes, secrets are placeholders.

    One that stays too long for a line becomes a stub of its kind that says so, so that calls keep their results.
    """
    raw, _ = without_images(raw)
    if len(raw) > READING.blob_run_bytes:
        squeezer = Squeezer(limit=_MAX_PAYLOAD_BYTES)
        squeezer.feed(raw)
        raw = squeezer.finish() or _stub(raw)
    return raw if redact is None else redact(raw.decode("utf-8", "replace")).encode()


def meta_payload(
    thread_id: str,
    *,
    at_ms: int,
    cwd: str,
    agent: str,
    source: object,
    version: str | None = None,
    model_provider: str | None = None,
    parent_thread_id: str | None = None,
    nickname: str | None = None,
    git: Git | None = None,
    more: dict[str, object] | None = None,
) -> bytes:
    """The payload of `session_meta`: who the thread is, and which agent it is of (`originator`)."""
    optional = {
        "model_provider": model_provider,
        "parent_thread_id": parent_thread_id,
        "agent_nickname": nickname,
        "git": None if git is None else {name: value for name, value in msgspec.structs.asdict(git).items() if value},
        **(more or {}),
    }
    return encoded(
        {
            "id": thread_id,
            "session_id": thread_id,
            "timestamp": timestamp(at_ms),
            "cwd": cwd,
            "originator": agent,
            "cli_version": version or "",
            "source": source,
            **{name: value for name, value in optional.items() if value},
        }
    )


def usage_payload(last: Usage, total: Usage) -> bytes:
    """The payload of an `event_msg` that tells what a request used, and all of them together."""
    info = {"total_token_usage": _counts(total), "last_token_usage": _counts(last), "model_context_window": None}
    return encoded({"type": "token_count", "info": info, "rate_limits": None})


def encoded(value: Any) -> bytes:
    """Any value as JSON; what JSON has no word for becomes text. Nothing that an agent made raises."""
    try:
        return msgspec.json.encode(value, enc_hook=str)
    except (TypeError, ValueError, RecursionError, OverflowError):
        pass
    try:
        return json.dumps(value, default=str, skipkeys=True).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        return msgspec.json.encode(whole_text(repr(type(value))))


def whole_text(text: str) -> str:
    """Text without halves of surrogate pairs, which no file can hold."""
    return text.encode("utf-8", "replace").decode()


def _counts(usage: Usage) -> dict[str, int]:
    return {f"{name}_tokens": count for name, count in usage.by_type()}


def _stub(raw: bytes) -> bytes:
    """What is left of an item that is nothing but text of many small parts."""
    text = _TOO_LONG % len(raw)
    try:
        item = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except UNREADABLE:
        item = {}
    kept = {name: item[name] for name in ("type", "role", "call_id", "name") if name in item and len(item[name]) < 1000}
    return msgspec.json.encode({**kept, "content": [{"type": "input_text", "text": text}], "output": text})
