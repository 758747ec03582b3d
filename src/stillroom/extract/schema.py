"""The shape of the model's answer, and its reading: three fields, whatever stands around them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from stillroom.errors import InvalidReply

_Kind = TypeVar("_Kind", bound=msgspec.Struct)

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


#: Models and servers break lines within strings.
_json = json.JSONDecoder(strict=False)
_THOUGHT_END = "</think>"
_OBJECT = re.compile(r"\{\s*\"")
#: So many beginnings of an object are looked at: in a text without an end each one is read up to it.
_MOST_OBJECTS = 64


def parse_reply(text: str) -> Reply:
    """`parse` of the answer in two texts."""
    return parse(text, Reply)


def parse(text: str, kind: type[_Kind]) -> _Kind:
    """Read the answer, be it in a fence, after a lead-in, or after what the model thought. Raises `InvalidReply` for
    prose, and for a missing or wrong field."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        failure = error
    found = list(_objects(text.rpartition(_THOUGHT_END)[2], kind))
    if not found:
        shown = " ".join(text[:60].split())
        message = f"the answer is not the JSON that was asked for ({failure}): it begins `{shown}`"
        raise InvalidReply(message) from failure
    return found[-1]  # what stands ahead of it was a draft


def _objects(text: str, kind: type[_Kind]) -> Iterator[_Kind]:
    at = 0
    for _ in range(_MOST_OBJECTS):
        begin = _OBJECT.search(text, at)
        if begin is None:
            return
        at = begin.start() + 1  # an object may stand within another
        try:
            value, end = _json.raw_decode(text, begin.start())
            found = msgspec.convert(_sendable(value), kind)
        except (ValueError, RecursionError, msgspec.ValidationError):
            continue
        at = end
        yield found


def _sendable(value: object) -> object:
    """Half of a surrogate pair can be stored nowhere."""
    text = json.dumps(value, ensure_ascii=False)
    return value if text.isascii() else json.loads(text.encode("utf-8", "replace"))
