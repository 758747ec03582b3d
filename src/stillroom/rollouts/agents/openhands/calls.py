"""OpenHands' tool calls and how they ended."""

from __future__ import annotations

from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import number_of, text_of
from stillroom.rollouts.agents.made import (
    Made,
    add_patch,
    function_call,
    output,
    patch_call,
    update_patch,
    web_call,
)
from stillroom.rollouts.item import UNREADABLE

# Other tools call what they are asked to do a command, too.
_SHELLS = frozenset({"TerminalAction", "ExecuteBashAction"})
# The exit code of a command that still runs.
_RUNNING = -1
_arguments = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Text(msgspec.Struct):
    """A part of a content, of any type."""

    type: Any = None
    text: Any = None


class Action(msgspec.Struct):
    """What a call asks for; which fields there are depends on `kind`."""

    kind: Any = None
    command: Any = None
    path: Any = None
    file_path: Any = None
    file_text: Any = None
    content: Any = None
    old_str: Any = None
    new_str: Any = None
    old_string: Any = None
    new_string: Any = None
    patch: Any = None
    url: Any = None
    message: Any = None


class ToolCall(msgspec.Struct):
    """The call as the model wrote it."""

    arguments: Any = None


class _Metadata(msgspec.Struct):
    exit_code: Any = None


class Observation(msgspec.Struct):
    """How a call ended."""

    kind: Any = None
    content: list[Text] | str = []
    is_error: Any = None
    exit_code: Any = None
    metadata: _Metadata | None = None


def joined(parts: list[Text] | str, *, by: str = "\n") -> str:
    """The text of a content."""
    return parts if isinstance(parts, str) else by.join(filter(None, (text_of(part.text) for part in parts)))


def read_call(tool: str, action: Action, call: ToolCall, *, call_id: str, cwd: str | None) -> Made:
    """The item that asks for what the client was asked for."""
    path = text_of(action.path) or text_of(action.file_path)
    written = action.file_text if action.command == "create" else action.content
    old = action.old_str if isinstance(action.old_str, str) else action.old_string
    new = action.new_str if isinstance(action.new_str, str) else action.new_string
    if isinstance(action.patch, str):
        return patch_call(action.patch, call_id)
    if path and isinstance(written, str):
        return patch_call(add_patch(path, written, cwd=cwd), call_id)
    if path and isinstance(new if action.command == "insert" else old, str):
        return patch_call(update_patch(path, [(text_of(old), text_of(new))], cwd=cwd), call_id)
    if isinstance(action.url, str):
        return web_call(call_id, query=None, url=action.url)
    given = text_of(call.arguments).encode("utf-8", "replace")
    if text_of(action.kind) in _SHELLS or not isinstance(action.command, str):
        return function_call(tool, given, call_id)
    return function_call(f"{tool}.{action.command}", _without_command(given), call_id)


def read_result(call: Made | None, seen: Observation, *, call_id: str) -> Made:
    """How the call ended: by the exit code of a command, and only without one by what the client calls it."""
    text = joined(seen.content)
    code = number_of(seen.exit_code)
    if code is None and seen.metadata is not None:
        code = number_of(seen.metadata.exit_code)
    if code == _RUNNING:
        return output(call, call_id, text, ok=None)
    if code is not None:
        return output(call, call_id, text, exit_code=code, ok=code == 0)
    return output(call, call_id, text, ok=seen.is_error is not True)


def _without_command(arguments: bytes) -> bytes:
    try:
        given = _arguments.decode(arguments)
    except UNREADABLE:
        return arguments
    given.pop("command", None)
    return msgspec.json.encode(given)
