"""What an agent tells its hook: one JSON object on stdin, read once, bounded and tolerantly."""

from __future__ import annotations

import os

from stillroom.integrations.bounds import MAX_EVENT_BYTES, MAX_THREAD_ID_CHARS
from stillroom.recall.injection.quick_json import loads

AGENTS = ("claude-code", "codex")
EVENTS = ("session-start", "session-end", "stop")


class Event:
    """One call of the hook. Every field that the agent did not send, or sent in another shape, is its default."""

    __slots__ = ("agent", "cwd", "name", "source", "sub_agent", "thread_id", "transcript")

    def __init__(self, agent: str, name: str, payload: dict[str, object]) -> None:
        self.agent = agent
        self.name = name
        #: Codex: `startup resume clear compact fork`; Claude Code the same.
        self.source = _text(payload, "source") or "startup"
        self.thread_id = _word(_text(payload, "session_id"))
        self.cwd = _text(payload, "cwd") or _working_folder()
        self.transcript = _text(payload, "transcript_path")
        #: Both agents name the sub-agent in whose turn a hook runs.
        self.sub_agent = bool(payload.get("agent_id"))


def read_event(agent: str, name: str, descriptor: int = 0) -> Event:
    """The event on `descriptor`. Nothing at all, as from `/dev/null`, is an event without fields.

    Raises `ValueError` when what is there is no JSON object.
    """
    raw = _read(descriptor)
    payload = loads(raw) if raw.strip() else {}
    if not isinstance(payload, dict):
        raise ValueError("the event is no JSON object")
    return Event(agent, name, payload)


def _working_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - pathlib costs more than the whole hook
    except FileNotFoundError:  # deleted; the shell still knows what it was called
        return os.environ.get("PWD") or os.sep


def _read(descriptor: int) -> bytes:
    if os.isatty(descriptor):  # a person tries the hook by hand
        return b""
    parts, left = [], MAX_EVENT_BYTES
    while left > 0 and (part := os.read(descriptor, min(left, 65_536))):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _text(payload: dict[str, object], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) and "\0" not in value else ""


def _word(text: str) -> str:
    """`text` if it can stand on a command line as one word, else nothing."""
    fit = len(text) <= MAX_THREAD_ID_CHARS and text.replace("-", "").replace("_", "").isalnum() and text.isascii()
    return text if fit and not text.startswith("-") else ""
