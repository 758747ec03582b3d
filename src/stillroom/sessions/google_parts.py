"""Parts of messages as Google's API has them, which Gemini CLI and its descendants store: texts, calls, results."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from stillroom.sessions.conversation import UNREADABLE, text_of
from stillroom.sessions.normalize import (
    QUESTION,
    NormalizedItem,
    add_patch,
    answers,
    function_call,
    output,
    patch_call,
    questions_of,
    update_patch,
    web_call,
)

_SHELL = "run_shell_command"
_EDITS = frozenset({"replace", "edit"})
_SEARCHES = frozenset({"google_web_search", "web_search"})
_QUESTIONS = frozenset({"ask_user", "ask_user_question"})
# What the client puts around a command's output: its fields stand at both ends, those behind it in this order.
_BEFORE = re.compile(r"(?s:Command: .{0,20000}?\nDirectory: [^\n]{0,4096}\n)?Output: ")
_AFTER = re.compile(
    r"(?:\nError: (?P<error>[^\n]*))?(?:\nExit Code: (?P<code>-?\d{1,10}|\(none\)))?(?:\nSignal: (?P<signal>[^\n]*))?"
    r"(?:\nBackground PIDs: [^\n]*)?(?:\nProcess Group PGID: [^\n]*)?\Z"
)
# Where one may begin. To look for all of them at every letter takes longer than all else that is done with a result.
_FIELD = re.compile(r"\n(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): ")
# The fields behind an output are no longer than this.
_FIELDS_CHARS = 2000
_WRAPPED = re.compile(r"\A\s*<untrusted_context>\n(.*)\n</untrusted_context>\s*\Z", re.DOTALL)
_NOTHING = ("", "(none)", None)


class Called(msgspec.Struct):
    """A `functionCall`."""

    id: Any = None
    name: Any = None
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Response(msgspec.Struct):
    output: Any = None
    error: Any = None


class Returned(msgspec.Struct):
    """A `functionResponse`."""

    id: Any = None
    name: Any = None
    response: _Response = msgspec.field(default_factory=_Response)


class Part(msgspec.Struct, rename="camel"):
    """A part of a message, of any kind."""

    text: Any = None
    thought: Any = None
    function_call: Called | None = None
    function_response: Returned | None = None
    inline_data: msgspec.Raw | None = None


class _Input(msgspec.Struct):
    file_path: str | None = None
    content: str | None = None
    old_string: str | None = None
    new_string: str = ""
    query: str | None = None
    url: str | None = None


class _Answered(msgspec.Struct):
    answers: dict[str, Any] = {}


class Shell(NamedTuple):
    """What a command's result tells."""

    output: str
    exit_code: int | None
    #: It was stopped, or never ran.
    broken: bool


def read_call(called: Called, *, call_id: str, cwd: str | None) -> NormalizedItem:
    """The item that asks for what was asked for; nothing that a model wrote raises."""
    name, given = text_of(called.name), bytes(called.args)
    if name in _QUESTIONS:
        return function_call(QUESTION, given, call_id)
    try:
        read = msgspec.json.decode(given, type=_Input)
    except UNREADABLE:
        read = _Input()
    if read.file_path and name in _EDITS and read.old_string is not None:
        edits = [(read.old_string, read.new_string)]
        return patch_call(update_patch(read.file_path, edits, cwd=cwd), call_id)
    if read.file_path and name == "write_file" and read.content is not None:
        return patch_call(add_patch(read.file_path, read.content, cwd=cwd), call_id)
    if name in _SEARCHES or name == "web_fetch":
        return web_call(call_id, query=read.query, url=read.url)
    if name.startswith("mcp_") and not name.startswith("mcp__"):
        name = f"mcp__{name[4:]}"  # so that it is seen that the words come from outside
    return function_call(name, given, call_id)


def read_result(
    call: NormalizedItem | None, returned: Returned, *, call_id: str, failed: bool, exit_code: int | None = None
) -> NormalizedItem:
    """How a call ended: a command by its exit code, whatever the client calls its end."""
    response = returned.response
    text = text_of(response.output) or text_of(response.error)
    failed = failed or response.error is not None
    if returned.name == _SHELL:
        shell = read_shell(text)
        code = exit_code if exit_code is not None else shell.exit_code
        if code is None and not failed and not shell.broken:
            code = 0  # the client names only the others
        return output(call, call_id, shell.output, exit_code=code, ok=False)
    if text_of(returned.name) in _QUESTIONS and not failed and call is not None and (told := _answers(call, text)):
        return answers(call_id, told)
    wrapped = _WRAPPED.match(text)
    return output(call, call_id, wrapped[1] if wrapped else text, ok=not failed)


def read_shell(text: str) -> Shell:
    """A command's output without the client's fields around it, and its exit code, if it is named."""
    if (wrapped := _WRAPPED.match(text)) is not None:
        text = wrapped[1]
    before = _BEFORE.match(text)
    if before is None:
        return Shell(text, None, broken=False)
    end = max(len(text.rstrip()), before.end())
    fields = _FIELD.finditer(text, max(end - _FIELDS_CHARS, before.end() - 1), end)
    after = next(filter(None, (_AFTER.match(text, field.start(), end) for field in fields)), None)
    if after is None:
        return Shell(text[before.end() : end], None, broken=False)
    code = after["code"]
    broken = after["signal"] not in _NOTHING or after["error"] not in _NOTHING
    return Shell(
        text[before.end() : max(after.start(), before.end())],
        int(code) if code is not None and code != "(none)" else None,
        broken,
    )


def _answers(call: NormalizedItem, text: str) -> dict[str, str]:
    """By question, where the client tells them by the questions' numbers."""
    try:
        told = msgspec.json.decode(text, type=_Answered).answers
    except UNREADABLE:
        return {}
    asked = questions_of(call)
    return {asked[int(key)]: text_of(value) for key, value in told.items() if key in map(str, range(len(asked)))}
