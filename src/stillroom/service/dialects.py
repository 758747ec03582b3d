"""The three protocols that models are spoken to in: where a reminder goes, and what an error looks like."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

import msgspec
from msgspec import Raw

Dialect = Literal["responses", "chat", "messages"]

_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_ITEMS = msgspec.json.Decoder(list[Raw])
_encode = msgspec.json.encode


def dialect_of(method: str, path: str) -> Dialect | None:
    """The protocol of a request that a model answers; None for any other request."""
    if method != "POST":
        return None
    path = path.partition("?")[0].rstrip("/")
    if path.endswith("/chat/completions"):
        return "chat"
    if path.endswith("/messages"):
        return "messages"
    return "responses" if path.endswith("/responses") else None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request as it goes on."""

    body: bytes
    #: The reminder stands in it.
    reminded: bool = False
    #: We asked for a chunk with the usage; the client did not, and must not see it.
    hides_usage: bool = False


class _Looked(msgspec.Struct):
    type: str | None = None
    role: str | None = None


def prepare(body: bytes, dialect: Dialect, reminder: str | None) -> Prepared:
    """Put the reminder at the end, and ask for the usage of a streamed chat. What was there stays as it was, byte for
    byte, so that the provider's prompt cache still knows it. A body that can't be read goes on as it is."""
    try:
        members = _members(body)
        added = _remind(members, dialect, reminder) if reminder else {}
        usage = _usage_wanted(members) if dialect == "chat" else {}
    except (ValueError, RecursionError, msgspec.ValidationError):
        return Prepared(body)
    if not added and not usage:
        return Prepared(body)
    return Prepared(_encode({**members, **added, **usage}), reminded=bool(added), hides_usage=bool(usage))


def _usage_wanted(members: Mapping[str, Raw]) -> dict[str, Raw]:
    """The option that makes a streamed chat tell its usage, where it is missing."""
    if bytes(members.get("stream", Raw(b"false"))) != b"true":
        return {}
    given = members.get("stream_options", Raw(b"null"))
    options = {} if bytes(given) == b"null" else _members(given)
    if bytes(options.get("include_usage", Raw(b"false"))) == b"true":
        return {}
    return {"stream_options": Raw(_encode({**options, "include_usage": True}))}


def _remind(members: Mapping[str, Raw], dialect: Dialect, reminder: str) -> dict[str, Raw]:
    """The member that changes; empty where a reminder has no place."""
    match dialect:
        case "responses":
            return _as_last("input", _input_items(members), _developer_item(reminder))
        case "chat":
            items = _list(members, "messages")
            roles = {_looked(item).role for item in items}
            # The newer name is only known to servers whose clients use it.
            role = "developer" if "developer" in roles else "system"
            return _as_last("messages", items, {"role": role, "content": reminder})
        case "messages":
            return _in_last_message(_list(members, "messages"), reminder)
        case _:
            assert_never(dialect)


def _as_last(member: str, items: list[Raw], added: object) -> dict[str, Raw]:
    # What asks for a compaction must stay the last item.
    if not items or (_looked(items[-1]).type or "").startswith("compaction"):
        return {}
    return {member: Raw(_encode([*items, added]))}


def _developer_item(reminder: str) -> object:
    content = [{"type": "input_text", "text": reminder}]
    return {"type": "message", "role": "developer", "content": content}


def _input_items(members: Mapping[str, Raw]) -> list[Raw]:
    given = members.get("input")
    if given is not None and bytes(given).startswith(b'"'):
        return [Raw(_encode({"type": "message", "role": "user", "content": given}))]
    return _list(members, "input")


def _in_last_message(items: list[Raw], reminder: str) -> dict[str, Raw]:
    """Anthropic's system prompt stands ahead of everything: what comes last is the last block of the last message, the
    user's or, from Claude Code, a system message after it."""
    if not items or _looked(items[-1]).role not in ("user", "system"):
        return {}
    message = _members(items[-1])
    content = message.get("content", Raw(b"null"))
    text = {"type": "text", "text": reminder}
    blocks = [{"type": "text", "text": content}] if bytes(content).startswith(b'"') else _items(content)
    changed = Raw(_encode({**message, "content": [*blocks, text]}))
    return {"messages": Raw(_encode([*items[:-1], changed]))}


def _list(members: Mapping[str, Raw], name: str) -> list[Raw]:
    return _items(members.get(name, Raw(b"[]")))


def _looked(item: Raw) -> _Looked:
    try:
        return msgspec.json.decode(item, type=_Looked)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(bytes(item)), _Looked)


# `msgspec` leaves parts as they are, but does not read half a character (`"\ud83d"`), which clients in JavaScript send
# of a text that was cut. Then the standard library does, and writes the same values.


def _members(data: bytes | Raw) -> dict[str, Raw]:
    """The members of an object. Raises `ValueError` for anything else."""
    try:
        return _MEMBERS.decode(data)
    except msgspec.DecodeError:
        found = json.loads(bytes(data))
        if not isinstance(found, dict):
            raise ValueError("no object") from None
        return {key: Raw(json.dumps(value).encode()) for key, value in found.items()}


def _items(data: Raw) -> list[Raw]:
    """The items of an array. Raises `ValueError` for anything else."""
    try:
        return _ITEMS.decode(data)
    except msgspec.DecodeError:
        found = json.loads(bytes(data))
        if not isinstance(found, list):
            raise ValueError("no array") from None
        return [Raw(json.dumps(value).encode()) for value in found]


def exhausted_status(dialect: Dialect | None) -> int:
    """The status that ends a turn. Codex 0.171 takes a 402 for an outage and asks five times more, but not after a 400;
    Claude Code 2.1 takes a 400 for a request that it could mend, and tries eight, but not after a 402."""
    return 402 if dialect == "messages" else 400


def error_body(dialect: Dialect | None, *, kind: str, message: str, outcome: object = None) -> bytes:
    """An error in the shape that the protocol's clients read."""
    more = {} if outcome is None else {"outcome": outcome}
    if dialect == "messages":
        return _encode({"type": "error", "error": {"type": kind, "message": message, **more}})
    return _encode({"error": {"message": message, "type": kind, "param": None, "code": kind, **more}})


def error_event(dialect: Dialect, *, kind: str, message: str) -> bytes:
    """The same as the last event of a stream that can't go on."""
    if dialect == "responses":
        error = _encode({"type": "error", "code": kind, "message": message, "param": None})
        return b"event: error\ndata: " + error + b"\n\n"
    body = error_body(dialect, kind=kind, message=message)
    return (b"event: error\n" if dialect == "messages" else b"") + b"data: " + body + b"\n\n"
