"""Claude Code's tool calls and their results, as Codex records such calls and such results."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

import msgspec

from stillroom.rollouts.agents.claude_code.record import Block, Record, text_of
from stillroom.rollouts.agents.claude_code.speech import without_scaffolding
from stillroom.rollouts.agents.made import Made, add_patch, update_patch


class Form(Enum):
    """What kind of call it was: it tells how the result is to be read."""

    SHELL = "shell"
    PATCH = "patch"
    QUESTION = "question"
    OTHER = "other"


class Called(msgspec.Struct, frozen=True, gc=False):
    """A call as an item."""

    form: Form
    item: Made


class Returned(msgspec.Struct, frozen=True, gc=False):
    """A result as an item, with what the person said who refused the call."""

    item: Made
    refusal: str


_SHELLS = frozenset({"Bash", "PowerShell"})
_PATCHES = frozenset({"Edit", "MultiEdit", "Write"})
_SEARCHES = frozenset({"WebSearch", "web_search"})
_FETCHES = frozenset({"WebFetch", "web_fetch"})
_QUESTION = "AskUserQuestion"

_EXIT = re.compile(rb'"Exit code (-?\d{1,10})(?:\\n|(?="))')
_BACKGROUND = b'"Command running in background with ID'
# A search that finds nothing ends with 1, and the client calls that no error.
_INTERPRETED = b'"returnCodeInterpretation":"'
_INTERRUPTED = b'"interrupted":'
_REMINDER = b"<system-reminder>"
_REFUSED = b'"User rejected tool use"'
_REASONS = ("the user said:\n", "reason for the rejection: ")
_AFTER_REASON = "\n\nNote: The user's next message"
# What a reader of outputs takes for the client's header. A header ends where the output begins.
_LIKE_A_HEADER = (b"Exit code:", b"Process exited with", b"Process running with")
_HEADER_BYTES = 2000
# What is left of data in a line that was too long.
_SQUEEZED = re.compile(rb"\[blob: (\d{1,15}) bytes\]")


class _Edit(msgspec.Struct):
    old_string: str = ""
    new_string: str = ""


class _File(msgspec.Struct):
    file_path: str = ""
    content: str | None = None
    old_string: str = ""
    new_string: str = ""
    edits: list[_Edit] = []


class _Web(msgspec.Struct):
    query: str | None = None
    url: str | None = None


class _Source(msgspec.Struct):
    data: msgspec.Raw = msgspec.Raw(b"")


class _Answered(msgspec.Struct):
    answers: msgspec.Raw = msgspec.Raw(b"null")


_file = msgspec.json.Decoder(_File)
_web = msgspec.json.Decoder(_Web)
_source = msgspec.json.Decoder(_Source)
_answered = msgspec.json.Decoder(_Answered)
_blocks = msgspec.json.Decoder(list[Block])
_encode = msgspec.json.Encoder().encode
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError)


def read_call(block: Block, record: Record) -> Called:
    """The item that asks for what `block` asks for; nothing that a model wrote raises."""
    name = block.name if isinstance(block.name, str) else ""
    try:
        if name in _PATCHES:
            patch = _patch(_file.decode(block.input), record.cwd)
            return Called(Form.PATCH, Made("custom_tool_call", None, _custom(block.id, "apply_patch", patch)))
        if name in _SEARCHES or name in _FETCHES:
            return Called(Form.OTHER, Made("web_search_call", None, _web_call(block.id, _web.decode(block.input))))
    except _UNREADABLE:
        pass  # the call stays what it is
    if name == _QUESTION:
        return Called(Form.QUESTION, Made("function_call", None, _function(block, "request_user_input")))
    form = Form.SHELL if name in _SHELLS else Form.OTHER
    return Called(form, Made("function_call", None, _function(block, name)))


def read_result(block: Block, record: Record, form: Form | None) -> Returned:
    """The item that holds a result, with the exit status that its text tells. `form` is None if the call is unknown."""
    kind = "custom_tool_call_output" if form is Form.PATCH else "function_call_output"
    told = bytes(record.tool_use_result)
    denied = record.tool_denial_kind
    refused = told == _REFUSED or (denied is not None and str(denied).startswith("user"))
    failed = bool(block.is_error) or refused
    text = _text(bytes(block.content))
    if form is Form.QUESTION and not failed and (answers := _answers(record)) is not None:
        return Returned(Made(kind, None, _output(kind, block, _encode(answers.decode()))), "")
    if form is Form.SHELL or (form is None and told.startswith(b'{"stdout":')):
        # What the client tells stands behind the output; looking from the end spares reading that once more.
        told = told[max(told.rfind(_INTERRUPTED), 0) :]
        interrupted = told.startswith(_INTERRUPTED + b"true")
        code, start = _exit(text, told, failed=failed or interrupted)
        if code is not None:
            header = b'"Exit code: %d\\nOutput:\\n' % code
            return Returned(Made(kind, None, _output(kind, block, header, memoryview(text)[start:])), "")
        failed = failed or interrupted
    success = b"null" if text.startswith(_BACKGROUND) else b"false" if failed else b"true"
    head = text[:_HEADER_BYTES]
    opening = b'{"content":"Output:\\n' if any(mark in head for mark in _LIKE_A_HEADER) else b'{"content":"'
    raw = _output(kind, block, opening, memoryview(text)[1:], b',"success":', success, b"}")
    return Returned(Made(kind, None, raw), _reason(text) if refused else "")


def size_note(block: Block) -> str:
    """What stands for a block of data that tells a model nothing."""
    try:
        data = bytes(_source.decode(block.source).data).strip(b'"')
    except _UNREADABLE:
        data = bytes(block.source)
    squeezed = _SQUEEZED.match(data)
    return f"[{block.type} omitted: {int(squeezed[1]) if squeezed else len(data)} bytes]"


# --- calls


def _function(block: Block, name: str) -> bytes:
    arguments = bytes(block.input).decode("utf-8", "replace")
    return _encode({"type": "function_call", "name": name, "arguments": arguments, "call_id": block.id})


def _custom(call_id: Any, name: str, text: str) -> bytes:  # an id is whatever the file holds
    return _encode({"type": "custom_tool_call", "name": name, "input": text, "call_id": call_id, "status": "completed"})


def _web_call(call_id: Any, web: _Web) -> bytes:
    action = {"type": "open_page", "url": web.url} if web.query is None else {"type": "search", "query": web.query}
    return _encode({"type": "web_search_call", "call_id": call_id, "status": "completed", "action": action})


def _patch(file: _File, cwd: Any) -> str:
    if file.content is not None:
        return add_patch(file.file_path, file.content, cwd=cwd)
    edits = file.edits or [_Edit(file.old_string, file.new_string)]
    return update_patch(file.file_path, ((edit.old_string, edit.new_string) for edit in edits), cwd=cwd)


# --- results


def _output(kind: str, block: Block, *output: bytes | memoryview) -> bytes:
    opening = b'{"type":"%s","call_id":%s,"output":' % (kind.encode(), _encode(block.tool_use_id))
    return b"".join((opening, *output, b"}"))


def _text(content: bytes) -> bytes:
    """A result's text, as a JSON string, without the client's reminders."""
    if not content.startswith(b'"'):
        try:
            parts = _blocks.decode(content) if content.startswith(b"[") else []
        except _UNREADABLE:
            return _encode(content.decode("utf-8", "replace"))
        texts = [text_of(part.text) if part.type == "text" else size_note(part) for part in parts]
        content = _encode("\n".join(texts))
    if b"<" in content and _REMINDER in content:  # the first look is far cheaper, and settles most
        content = _encode(without_scaffolding(text_of(content)).rstrip())
    return content


def _exit(text: bytes, told: bytes, *, failed: bool) -> tuple[int | None, int]:
    """How a shell command ended, and where its output begins in `text`, behind the client's line about it."""
    if failed:
        return (int(match[1]), match.end()) if (match := _EXIT.match(text)) else (None, 1)
    if text.startswith(_BACKGROUND):
        return None, 1
    return (1 if _INTERPRETED in told else 0), 1


def _answers(record: Record) -> bytes | None:
    """What a person chose, in the form of Codex's tool that asks people."""
    try:
        answers = bytes(_answered.decode(record.tool_use_result).answers)
    except _UNREADABLE:
        return None
    return b'{"answers":%s}' % answers if answers != b"null" else None


def _reason(text: bytes) -> str:
    """Why a person refused a call, in their words; "" if they only refused it."""
    said = text_of(text)
    for opening in _REASONS:
        if opening in said:
            return said.partition(opening)[2].partition(_AFTER_REASON)[0].strip()
    return ""
