"""What Kimi Code stores, and its predecessor stored: messages, who is behind them, and results."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from stillroom.rollouts.agents.decoder import text_of

_EXITED = re.compile(r"\n?Command failed with exit code: (-?\d{1,10})\.\s*\Z")
_IN_BACKGROUND = "task_id: "
_END_CHARS = 200


class Part(msgspec.Struct):
    """A part of a message, of any kind."""

    type: Any = None
    text: Any = None


class Origin(msgspec.Struct, rename="camel"):
    """Who is behind a message in the user's place."""

    kind: Any = None
    trigger: Any = None
    phase: Any = None
    skill_name: Any = None
    skill_args: Any = None
    command_name: Any = None
    command_args: Any = None


class Function(msgspec.Struct):
    """What is called, where a call names it apart."""

    name: Any = None
    arguments: Any = None


class Call(msgspec.Struct):
    """A call, in the message that asks for it."""

    id: Any = None
    name: Any = None
    arguments: Any = None
    function: Function | None = None


class Message(msgspec.Struct):
    """A message, of any role."""

    role: Any = None
    content: list[Part] | str | None = None
    id: Any = None
    origin: Origin | None = None
    calls: list[Call] | None = msgspec.field(default=None, name="toolCalls")
    call_id: Any = msgspec.field(default=None, name="toolCallId")
    is_error: Any = msgspec.field(default=None, name="isError")


class Ended(NamedTuple):
    """What a command's result tells."""

    output: str
    exit_code: int | None


def texts_of(content: Any) -> list[str]:
    """The texts of a message or of a result, in whichever form they are stored."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [text for part in parts if isinstance(part, Part) and part.type == "text" and (text := text_of(part.text))]


def is_prompt(origin: Origin | None) -> bool:
    """Whether a person typed it, or a command that stands for it."""
    if origin is None or origin.kind in (None, "user"):
        return True
    return origin.kind in ("skill_activation", "plugin_command") and origin.trigger in (None, "user-slash")


def command_of(origin: Origin) -> str:
    """The slash command that a person typed; "" if they typed none."""
    name = text_of(origin.skill_name) or text_of(origin.command_name)
    given = text_of(origin.skill_args) or text_of(origin.command_args)
    return f"/{name} {given}".rstrip() if name else ""


def called_of(call: Call) -> tuple[str, bytes]:
    """The tool and the JSON text of its arguments."""
    named = call.function or Function(call.name, call.arguments)
    return text_of(named.name), text_of(named.arguments).encode("utf-8", "replace") or b"{}"


def ended(text: str, *, failed: bool) -> Ended:
    """The exit code stands behind the output of a command that failed; of one that was stopped there is none."""
    if not failed:
        return Ended(text, None if text.startswith(_IN_BACKGROUND) else 0)
    match = _EXITED.search(text, max(len(text) - _END_CHARS, 0))
    return Ended(text[: match.start()], int(match[1])) if match else Ended(text, None)
