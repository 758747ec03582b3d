"""Keeps a conversation within the model's window: the oldest tool calls and answers are shortened, and say so."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart

#: Shorter texts stay: a path, a query, a small answer.
_SHORT_CHARS = 500


def keep_within(messages: list[ModelMessage], *, max_bytes: int) -> list[ModelMessage]:
    """The same conversation, its oldest tool calls and answers shortened once all of it is over `max_bytes`.

    Then half of it goes at once, so that a provider's cache of the beginning stays good for many requests. Calls and
    answers keep their pairs; the last message stays whole.
    """
    total = sum(_size(part) for message in messages for part in message.parts)
    if total <= max_bytes:
        return messages
    excess = total - max_bytes // 2
    kept: list[ModelMessage] = []
    for message in messages[:-1]:
        parts: list[Any] = []
        for part in message.parts:
            short = _shortened(part) if excess > 0 else part
            excess -= _size(part) - _size(short)
            parts.append(short)
        shorter: Any = parts  # of the kinds that the message had
        kept.append(replace(message, parts=shorter))
    return [*kept, *messages[-1:]]


def _shortened(part: Any) -> Any:
    match part:
        case ToolReturnPart(content=str() as content) if len(content) > _SHORT_CHARS:
            return replace(part, content=f"{_mark(content)} Call again if you need it.")
        case ToolCallPart() if _size(part) > _SHORT_CHARS:
            arguments = {
                name: _mark(value) if isinstance(value, str) and len(value) > _SHORT_CHARS else value
                for name, value in part.args_as_dict().items()
            }
            return replace(part, args=arguments)
        case _:
            return part


def _mark(text: str) -> str:
    return f"[{len(text.encode('utf-8', 'replace')):,} bytes taken out to save room.]"


def _size(part: Any) -> int:
    content = getattr(part, "content", None) or getattr(part, "args", None) or ""
    text = content if isinstance(content, str) else json.dumps(content, default=repr)
    return len(text.encode("utf-8", "replace"))
