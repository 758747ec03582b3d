"""The shape of the model's answer, and its reading: three fields, whatever stands around them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from stillroom.errors import InvalidReply

SCHEMA_NAME = "stillroom_memory"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "raw_memory": {"type": "string"},
        "rollout_summary": {"type": "string"},
        # `anyOf`, because not every provider takes a list of types.
        "rollout_slug": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["raw_memory", "rollout_summary", "rollout_slug"],
    "additionalProperties": False,
}


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the model answered. Further fields are left out."""

    raw_memory: str
    rollout_summary: str
    #: May be missing: Codex reads such an answer too.
    rollout_slug: str | None = None


_reply = msgspec.json.Decoder(Reply)
#: Models and servers break lines within strings.
_json = json.JSONDecoder(strict=False)
_THOUGHT_END = "</think>"
_OBJECT = re.compile(r"\{\s*\"")
#: So many beginnings of an object are looked at: in a text without an end each one is read up to it.
_MOST_OBJECTS = 64


def parse_reply(text: str) -> Reply:
    """Read the answer, be it in a fence, after a lead-in, or after what the model thought. Raises `InvalidReply` for
    prose, and for a missing or wrong field."""
    try:
        return _reply.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        failure = error
    found = list(_replies(text.rpartition(_THOUGHT_END)[2]))
    if not found:
        shown = " ".join(text[:60].split())
        message = f"the answer is not the JSON that was asked for ({failure}): it begins `{shown}`"
        raise InvalidReply(message) from failure
    return found[-1]  # what stands ahead of it was a draft


def _replies(text: str) -> Iterator[Reply]:
    at = 0
    for _ in range(_MOST_OBJECTS):
        begin = _OBJECT.search(text, at)
        if begin is None:
            return
        at = begin.start() + 1  # an object may stand within another
        try:
            value, end = _json.raw_decode(text, begin.start())
            reply = msgspec.convert(value, Reply)
        except (ValueError, RecursionError, msgspec.ValidationError):
            continue
        at = end
        yield Reply(
            raw_memory=_sendable(reply.raw_memory),
            rollout_summary=_sendable(reply.rollout_summary),
            rollout_slug=_sendable(reply.rollout_slug) if reply.rollout_slug else None,
        )


def _sendable(text: str) -> str:
    """Half of a surrogate pair can be stored nowhere."""
    return text.encode("utf-8", "replace").decode()
