"""What OpenCode knows of a session, in either of its stores, and the lines that its talk is read as.

A line is `{"part":…,"message":…}` for a part of a message (up to 1.18), `{"row":…,"message":…}` for a whole message
of the newer rows (`chunks.enclosed`).
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import number_of, text_of

# `opencode run` asks nobody: it denies the tools that would.
_ASKING = frozenset({"question", "plan_enter"})


class Time(msgspec.Struct):
    """Milliseconds."""

    created: Any = None
    updated: Any = None
    archived: Any = None


class Revert(msgspec.Struct, rename={"message_id": "messageID", "part_id": "partID"}):
    """From where the user took the talk back."""

    message_id: Any = None
    part_id: Any = None


class Session(msgspec.Struct, kw_only=True, rename={"parent_id": "parentID", "project_id": "projectID"}):
    """A session, as its file has it; rows are brought into the same form."""

    id: str
    project_id: Any = None
    parent_id: Any = None
    directory: Any = None
    title: Any = None
    version: Any = None
    agent: Any = None
    time: Time = msgspec.field(default_factory=Time)
    permission: Any = None
    revert: Revert | None = None

    @property
    def is_headless(self) -> bool:
        """Whether a script started it."""
        rules: list[Any] = self.permission if isinstance(self.permission, list) else []
        denied = {rule.get("permission") for rule in rules if isinstance(rule, dict) and rule.get("action") == "deny"}
        return denied >= _ASKING

    @property
    def created_ms(self) -> int:
        return number_of(self.time.created) or 0


class Message(msgspec.Struct, kw_only=True):
    """The fields of a message that tell how its parts are to be read. Ids are ordered by time."""

    id: str
    #: `user`, `assistant`, or the type of a newer row.
    role: str
    at: int | None = None
    cwd: str | None = None
    #: The assistant's words are the summary of a compaction.
    summary: bool = False
    #: The user went back behind it.
    undone: bool = False
    #: A fork took it over from another session, which still has it.
    taken: bool = False


class _Path(msgspec.Struct):
    cwd: Any = None


class Stored(msgspec.Struct):
    """A message as the client stores it, in a file or in a row."""

    id: Any = None
    role: Any = None
    time: Time = msgspec.field(default_factory=Time)
    path: _Path = msgspec.field(default_factory=_Path)
    summary: Any = None
    mode: Any = None


def message_of(stored: Stored, session: Session, *, message_id: str, origin: bool) -> Message:
    """What the decoder has to know of a message. `origin`: the session that this one was forked from is still there.

    A fork keeps the times of what it took over: they are earlier than its own.
    """
    at = number_of(stored.time.created)
    return Message(
        id=message_id,
        role=text_of(stored.role),
        at=at,
        cwd=text_of(stored.path.cwd) or text_of(session.directory) or None,
        summary=stored.summary is True or stored.mode == "compaction",
        undone=is_undone(session, message_id),
        taken=origin and at is not None and at < session.created_ms,
    )


def is_undone(session: Session, message_id: str) -> bool:
    """Whether a message is among those that the user took back."""
    if session.revert is None or not isinstance(session.revert.message_id, str):
        return False
    first = session.revert.message_id
    return message_id > first or (message_id == first and not session.revert.part_id)


def decoded(text: object) -> Any:
    """A column with JSON in it; None for what is none."""
    try:
        return json.loads(text) if isinstance(text, bytes) else None
    except (ValueError, RecursionError):
        return None
