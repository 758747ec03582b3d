"""Tool calls of clients that name tools and arguments alike, each with a spelling of its own."""

from __future__ import annotations

import re
from typing import Any

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
    update_patch,
    web_call,
)

# Without case and underscores.
_SHELL_NAMES = """
    bash execcommand executecommand runshellcommand runterminalcmd runterminalcommand shell shellcommand
"""
_EDIT_NAMES = """
    edit editfile multiedit replace searchandreplace searchreplace singlefindandreplace strreplace strreplacefile
"""
_SHELLS = frozenset(_SHELL_NAMES.split())
_EDITS = frozenset(_EDIT_NAMES.split())
_WRITES = frozenset({"createnewfile", "write", "writefile", "writetofile"})
_PATCHES = frozenset({"applypatch"})
_WEB = frozenset({"fetch", "fetchurl", "fetchurlcontent", "fetchwebpage", "searchweb", "webfetch", "websearch"})
_QUESTIONS = frozenset({"askquestion", "askuserquestion"})
_NAMED = re.compile(rb'\{"type":"function_call","name":"(\w{1,80})"')


class _Edit(msgspec.Struct):
    old: str | None = None
    new: str = ""
    old_text: str | None = msgspec.field(default=None, name="oldText")
    new_text: str = msgspec.field(default="", name="newText")
    old_string: str | None = None
    new_string: str = ""


class _Arguments(_Edit):
    path: str | None = None
    file_path: str | None = None
    filepath: str | None = None
    content: str | None = None
    contents: str | None = None
    edit: _Edit | list[_Edit] | None = None
    edits: list[_Edit] = []
    input: str | None = None
    patch: str | None = None
    query: str | None = None
    url: str | None = None


class _Answered(msgspec.Struct):
    answers: dict[str, str] = {}


_arguments = msgspec.json.Decoder(_Arguments)
_answered = msgspec.json.Decoder(_Answered)


def is_shell(name: Any) -> bool:
    """Whether a tool runs a command."""
    return _plain(name) in _SHELLS


def calls_shell(call: NormalizedItem | None) -> bool:
    """The same of the call that a result belongs to."""
    match = _NAMED.match(call.raw) if call is not None else None
    return match is not None and is_shell(match[1].decode())


def read_call(name: str, given: bytes, *, call_id: str, cwd: str | None) -> NormalizedItem:
    """The item that asks for what was asked for; nothing that a model wrote raises. `given` is JSON text."""
    tool = _plain(name)
    if tool in _QUESTIONS:
        return function_call(QUESTION, given, call_id)
    try:
        if tool in _PATCHES and given.startswith(b'"'):
            return patch_call(msgspec.json.decode(given, type=str), call_id)
        read = _arguments.decode(given)
    except UNREADABLE:
        return function_call(name, given, call_id)
    path = read.path or read.file_path or read.filepath
    patch = read.input or read.patch
    content = read.content if read.content is not None else read.contents
    if tool in _PATCHES and patch is not None:
        return patch_call(patch, call_id)
    if tool in _EDITS and path and (edits := _edits(read)):
        return patch_call(update_patch(path, edits, cwd=cwd), call_id)
    if tool in _WRITES and path and content is not None:
        return patch_call(add_patch(path, content, cwd=cwd), call_id)
    if tool in _WEB:
        return web_call(call_id, query=read.query, url=read.url)
    return function_call(name, given, call_id)


def read_result(call: NormalizedItem | None, text: str, *, call_id: str, failed: bool) -> NormalizedItem:
    """How a call of another tool than a shell ended."""
    asked = call is not None and b'"name":"%s"' % QUESTION.encode() in call.raw[:200]
    if asked and not failed and (told := _answers(text)):
        return answers(call_id, told)
    return output(call, call_id, text, ok=not failed)


def _edits(read: _Arguments) -> list[tuple[str, str]]:
    single = [read.edit] if isinstance(read.edit, _Edit) else read.edit or []
    both = [
        pair
        for edit in [*read.edits, *single, read]
        for pair in ((edit.old, edit.new), (edit.old_text, edit.new_text), (edit.old_string, edit.new_string))
    ]
    return [(old, new) for old, new in both if old is not None]


def _answers(text: str) -> dict[str, str]:
    try:
        return _answered.decode(text.encode("utf-8", "surrogatepass")).answers
    except UNREADABLE:
        return {}


def _plain(name: Any) -> str:
    return text_of(name).replace("_", "").lower()
