"""OpenCode's tool calls and how they ended."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import UNREADABLE, number_of, text_of
from stillroom.rollouts.agents.made import (
    QUESTION,
    Made,
    add_patch,
    answers,
    function_call,
    output,
    patch_call,
    questions_of,
    update_patch,
    web_call,
)

_WEB = frozenset({"webfetch", "websearch", "codesearch"})
_SHELLS = frozenset({"bash", "shell"})
_PATCHES = frozenset({"patch", "apply_patch"})
# What newer versions put behind the output of a command.
_EXITED = re.compile(r"Command exited with code -?\d+\.")


class _Block(msgspec.Struct):
    text: Any = None


class _Metadata(msgspec.Struct):
    exit: Any = None
    answers: Any = None
    content: Any = None


class State(msgspec.Struct):
    """A call and its result; which fields there are depends on `status`."""

    status: Any = None
    input: msgspec.Raw = msgspec.Raw(b"{}")
    output: Any = None
    error: Any = None
    metadata: msgspec.Raw = msgspec.Raw(b"{}")
    #: Of newer rows, instead of output and metadata.
    content: list[_Block] = []
    structured: msgspec.Raw = msgspec.Raw(b"{}")


class _Edit(msgspec.Struct, rename="camel"):
    old_string: str = ""
    new_string: str = ""


class _Input(msgspec.Struct, rename="camel"):
    file_path: str | None = None
    path: str | None = None
    content: str | None = None
    old_string: str | None = None
    new_string: str = ""
    edits: list[_Edit] = []
    patch_text: str | None = None
    url: str | None = None
    query: str | None = None


def read_call(tool: str, state: State, *, call_id: str, cwd: str | None) -> Made:
    """The item that asks for what the client was asked for; nothing that a model wrote raises."""
    given = bytes(state.input)
    if tool == "question":
        return function_call(QUESTION, given, call_id)
    try:
        read = msgspec.json.decode(given, type=_Input)
    except UNREADABLE:
        return function_call(tool, given, call_id)
    path = read.file_path or read.path
    if tool in _PATCHES and read.patch_text is not None:
        return patch_call(read.patch_text, call_id)
    if tool == "write" and path and read.content is not None:
        return patch_call(add_patch(path, read.content, cwd=cwd), call_id)
    if tool in ("edit", "multiedit") and path and (read.old_string is not None or read.edits):
        edits = [(edit.old_string, edit.new_string) for edit in read.edits] or [
            (read.old_string or "", read.new_string)
        ]
        return patch_call(update_patch(path, edits, cwd=cwd), call_id)
    if tool in _WEB:
        return web_call(call_id, query=read.query, url=read.url)
    return function_call(tool, given, call_id)


def read_result(call: Made, state: State, *, call_id: str) -> Made | None:
    """How the call ended, by what its record holds and not by what the client calls it; None: it has not ended."""
    if state.status not in ("completed", "error"):
        return None
    told = _metadata(state.metadata)
    structured = _metadata(state.structured)
    text = text_of(state.output) or text_of(_message(state.error)) or _joined(state, structured)
    if b'"name":"%s"' % QUESTION.encode() in call.raw and (answered := _answers(call, told)):
        return answers(call_id, answered)
    code = number_of(told.exit) if number_of(told.exit) is not None else number_of(structured.exit)
    if code is not None:
        return output(call, call_id, text, exit_code=code, ok=code == 0)
    # A command that was stopped has no exit code.
    stopped = any(b'"name":"%s"' % name.encode() in call.raw[:100] for name in _SHELLS)
    return output(call, call_id, text, ok=state.status == "completed" and not stopped)


def _metadata(raw: msgspec.Raw) -> _Metadata:
    try:
        return msgspec.json.decode(raw, type=_Metadata)
    except UNREADABLE:
        return _Metadata()


def _message(error: Any) -> Any:
    return error.get("message") if isinstance(error, dict) else error


def _joined(state: State, structured: _Metadata) -> str:
    texts = [text for block in state.content if (text := text_of(block.text)) and not _EXITED.fullmatch(text)]
    return "\n".join(texts) or text_of(structured.content)


def _answers(call: Made, told: _Metadata) -> dict[str, str]:
    """By question: the client keeps the answers in the order of the questions."""
    chosen: list[Any] = told.answers if isinstance(told.answers, list) else []
    return {
        asked: ", ".join(text_of(label) for label in labels)
        for asked, labels in zip(questions_of(call), chosen, strict=False)
        if isinstance(labels, list)
    }
