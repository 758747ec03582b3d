"""The shape of the model's answer, and its strict reading: three fields, no other, nothing around them."""

from __future__ import annotations

from typing import Any

import msgspec

from stillroom.errors import InvalidReply

SCHEMA_NAME = "stillroom_memory"

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "rollout_summary": {"type": "string"},
        # `anyOf`, because not every provider takes a list of types.
        "rollout_slug": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "raw_memory": {"type": "string"},
    },
    "required": ["rollout_summary", "rollout_slug", "raw_memory"],
    "additionalProperties": False,
}


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the model answered."""

    raw_memory: str
    rollout_summary: str
    #: May be missing: Codex reads such an answer too.
    rollout_slug: str | None = None


_reply = msgspec.json.Decoder(Reply)


def parse_reply(text: str) -> Reply:
    """Read the answer. Raises `InvalidReply` for prose, fences, a missing, unknown or wrong field."""
    try:
        return _reply.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        shown = " ".join(text[:60].split())
        raise InvalidReply(f"the answer is not the JSON that was asked for ({error}): it begins `{shown}`") from error
