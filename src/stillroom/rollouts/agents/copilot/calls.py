"""Copilot CLI's tool calls and how they ended."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import UNREADABLE, number_of, text_of
from stillroom.rollouts.agents.made import (
    Made,
    add_patch,
    function_call,
    output,
    patch_call,
    update_patch,
    web_call,
)

_SHELLS = frozenset({"bash", "powershell"})
# What the client writes behind a command's output, and behind any output a hook's words.
_SHELL_END = re.compile(r"\n?<shellId: [^\n>]{1,200} completed with exit code -?\d{1,10}>\s*\Z")
_HOOK = re.compile(r"\n\nTool \"[^\"\n]{1,200}\" (?:succeeded|failed)\. Additional guidance from \w{1,60} hooks:\n")


class Request(msgspec.Struct, rename="camel"):
    """A call, in the message that asks for it."""

    tool_call_id: Any = None
    name: Any = None
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    #: Of tools of an MCP server.
    mcp_server_name: Any = None


class _Result(msgspec.Struct):
    content: Any = None


class _Error(msgspec.Struct):
    message: Any = None


class _Execution(msgspec.Struct, rename="camel"):
    exit_code: Any = None


class Completed(msgspec.Struct, rename="camel"):
    """How a call ended."""

    tool_call_id: Any = None
    success: Any = None
    result: _Result | None = None
    error: _Error | None = None
    shell_execution: _Execution | None = None


class _Arguments(msgspec.Struct):
    path: str | None = None
    file_text: str | None = None
    old_str: str | None = None
    new_str: str = ""
    url: str | None = None
    query: str | None = None


def read_call(request: Request, *, call_id: str, cwd: str | None) -> Made:
    """The item that asks for what was asked for; nothing that a model wrote raises."""
    name, given = text_of(request.name), bytes(request.arguments)
    try:
        read = msgspec.json.decode(given, type=_Arguments)
    except UNREADABLE:
        return function_call(name, given, call_id)
    if name == "edit" and read.path and read.old_str is not None:
        return patch_call(update_patch(read.path, [(read.old_str, read.new_str)], cwd=cwd), call_id)
    if name == "create" and read.path and read.file_text is not None:
        return patch_call(add_patch(read.path, read.file_text, cwd=cwd), call_id)
    if name in ("web_fetch", "web_search"):
        return web_call(call_id, query=read.query, url=read.url)
    if text_of(request.mcp_server_name):
        name = f"mcp__{name}"  # so that it is seen that the words come from outside
    return function_call(name, given, call_id)


def read_result(call: Made | None, done: Completed, *, call_id: str) -> Made:
    """How a call ended: a command by its exit code, although the client calls a failed one a success."""
    text = text_of(done.result.content) if done.result is not None else ""
    if not text and done.error is not None:
        text = text_of(done.error.message)
    hooks = list(_HOOK.finditer(text))
    if hooks:
        text = text[: hooks[-1].start()]
    code = number_of(done.shell_execution.exit_code) if done.shell_execution is not None else None
    if code is not None:
        return output(call, call_id, _SHELL_END.sub("", text), exit_code=code, ok=code == 0)
    return output(call, call_id, text, ok=done.success is True)
