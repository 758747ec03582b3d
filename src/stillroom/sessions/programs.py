"""What the frameworks that programs are built with store alike: contents of messages, and what a tool gave back."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from stillroom.sessions.conversation import UNREADABLE, number_of, text_of
from stillroom.sessions.normalize import NormalizedItem, output
from stillroom.sessions.scaffolding import without_blocks

# Of all kinds of parts only these are words; others quote documents, results and thoughts.
_WORDS = frozenset({"text", "input_text", "output_text", "text-content", "refusal", ""})
_SCAFFOLDING = r"system[-_]reminder"
# How tools that run commands tell the code in their text: in a line at either end.
_CODE = re.compile(r"\[?(?:exit[ _]?code|return[ _]?code)\]?\s?[:=]?\s?(-?\d{1,10})\]?", re.IGNORECASE)
_COMMAND = re.compile(rb'"arguments":"\s*\{[^{}\[\]]{0,400}?\\"(?:command|cmd)\\"')
_LINE_CHARS = 80


class _Told(msgspec.Struct):
    """How programs call an exit code."""

    exit_code: Any = None
    exit_code_camel: Any = msgspec.field(default=None, name="exitCode")
    return_code: Any = None
    returncode: Any = None


class Content(NamedTuple):
    """What stands in a message."""

    texts: list[str]
    images: int = 0


def content_of(value: Any) -> Content:
    """Of a text, or of a list of parts of whatever kind; parts that are neither text nor image are passed over."""
    texts: list[str] = []
    images = 0
    for part in value if isinstance(value, list) else [value]:
        text = part if isinstance(part, str) else ""
        if isinstance(part, dict):
            kind = text_of(part.get("type")) or text_of(part.get("kind"))
            images += "image" in kind or text_of(part.get("media_type")).startswith("image/")
            if kind in _WORDS:
                text = next(filter(None, (text_of(part.get(name)) for name in ("text", "content", "refusal"))), "")
        if text.strip():
            texts.append(text)
    return Content(texts, images)


def prompt_of(content: Content) -> list[str]:
    """What is said in a prompt, without reminders that a program put into it."""
    texts = (without_blocks(text, _SCAFFOLDING) for text in content.texts)
    return [text for text in texts if text.strip()]


def returned(call: NormalizedItem | None, call_id: str, value: Any, *, ok: bool | None) -> NormalizedItem:
    """What a tool gave back, of whatever type.

    An exit code that it tells counts more than `ok`. That a tool did well says nothing of the command that it ran.
    """
    text = value if isinstance(value, str) else "\n".join(content_of(value).texts) or _encoded(value)
    code = exit_code_of(value if isinstance(value, dict) else text, call)
    return output(call, call_id, text, exit_code=code, ok=None if ok and _runs_command(call) else ok)


def exit_code_of(value: Any, call: NormalizedItem | None) -> int | None:
    """The exit code in a tool's result: a field of an object, or a line at either end of a command's output."""
    is_object = isinstance(value, dict) or (isinstance(value, str) and value.lstrip()[:1] == "{")
    if is_object:
        try:
            told = msgspec.json.decode(value, type=_Told) if isinstance(value, str) else msgspec.convert(value, _Told)
        except UNREADABLE:
            return None
        return next((code for each in msgspec.structs.astuple(told) if (code := number_of(each)) is not None), None)
    if isinstance(value, str) and _runs_command(call):
        lines = value[:_LINE_CHARS].partition("\n")[0], value[-_LINE_CHARS:].rstrip().rpartition("\n")[2]
        match = next(filter(None, (_CODE.fullmatch(line.strip()) for line in lines)), None)
        return int(match[1]) if match else None
    return None


def _runs_command(call: NormalizedItem | None) -> bool:
    return call is not None and _COMMAND.search(call.raw[:2000]) is not None


def _encoded(value: Any) -> str:
    try:
        return "" if value is None else msgspec.json.encode(value).decode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        return ""
