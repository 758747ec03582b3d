"""A rollout as Codex itself reads it: its first line names the thread, every other is one `ResponseItem`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from stillroom.recording.lines import encoded, line, meta_payload
from stillroom.recording.names import file_id
from stillroom.sessions.item import UNREADABLE, Item
from stillroom.sessions.meta import Git
from stillroom.thread import Thread

# What Codex's own tools say of a call that failed without an exit code; its readers know it by these words.
_FAILED = "execution error: "


def codex(thread: Thread, items: Iterable[Item], *, agent: str, redact: Callable[[str], str]) -> Iterator[bytes]:
    """The lines of the rollout. Codex wants a UUID for an id: another id stands beside it."""
    thread_id = file_id(thread.thread_id)
    meta = meta_payload(
        thread_id,
        at_ms=thread.created_at_ms,
        cwd=thread.cwd,
        agent=agent,
        source=msgspec.json.decode(thread.source) if thread.source.startswith("{") else thread.source,
        version=thread.cli_version,
        model_provider=thread.model_provider,
        parent_thread_id=file_id(thread.parent_thread_id) if thread.parent_thread_id else None,
        git=Git(thread.git_sha, thread.git_branch, thread.git_origin_url)
        if thread.git_sha or thread.git_branch
        else None,
        more={"original_thread_id": None if thread_id == thread.thread_id else thread.thread_id},
    )
    yield line("session_meta", meta, at_ms=thread.created_at_ms)
    at_ms = thread.created_at_ms
    for item in items:
        at_ms = item.timestamp_ms if item.timestamp_ms is not None else at_ms
        raw = redact(_strict(item).decode("utf-8", "replace")).encode()
        yield line("response_item", raw, at_ms=at_ms)
    if thread.updated_at_ms > at_ms:
        yield line("event_msg", encoded({"type": "task_complete"}), at_ms=thread.updated_at_ms)


def _strict(item: Item) -> bytes:
    """An item without what only Stillroom's readers take: outputs that are objects, agents' words without a name."""
    if item.type == "agent_message":
        return encoded({"author": "", "recipient": "", **_object(item.raw)})
    if item.type not in ("function_call_output", "custom_tool_call_output"):
        return item.raw
    fields = _object(item.raw)
    output = fields.get("output")
    if not isinstance(output, dict):
        return item.raw
    content = output.get("content", output.get("output"))
    text = content if isinstance(content, str) else encoded(output if content is None else content).decode()
    fields["output"] = _FAILED + text if output.get("success") is False else text
    return encoded(fields)


def _object(raw: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except UNREADABLE:
        return {}
    return value if isinstance(value, dict) else {}
