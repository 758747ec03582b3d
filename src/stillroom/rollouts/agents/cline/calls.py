"""The tool calls of Cline and its editor extensions, and how they ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from stillroom.rollouts.agents import tools
from stillroom.rollouts.agents.cline.speech import without_header
from stillroom.rollouts.agents.decoder import UNREADABLE
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

#: Tools with which the assistant says something, and the argument that holds it.
SAYING = {
    "attempt_completion": "result",
    "plan_mode_respond": "response",
    "plan_mode_response": "response",
    "submit_and_exit": "summary",
}
#: Tools that a person answers.
ASKING = frozenset({"ask_followup_question", "ask_question"})
_COMMANDS = "run_commands"
_EXITED = re.compile(r"\[Command exited with code (-?\d{1,10})\]\n*")
_RUNNING = re.compile(r"\[?Command is still running")
# How editors tell it; some tell no code.
_EXECUTED = "Command executed"
_CODE = re.compile(r"Exit code: (-?\d{1,10})$", re.MULTILINE)
_HEADER_CHARS = 3000
_FAILED = (
    *("The user denied", "User denied", "User rejected", "Tool execution was cancelled", '{"status":"denied"'),
    *("The tool execution failed", "<error>", "Error:", "[ERROR]", '{"status":"error"', '{"error"'),
)
# The lines around the parts of a change, in the spellings of several versions.
_SEARCH = re.compile(r"[<-]{7,9} ?SEARCH>?")
_DIVIDE = re.compile(r"={7}")
_REPLACE = re.compile(r"[>+]{7,9} ?REPLACE")
_ABOUT = re.compile(r":(?:start|end)_line:.*|-{7}")


class _Request(msgspec.Struct):
    url: str | None = None


class _Input(msgspec.Struct):
    path: str | None = None
    diff: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    insert_line: Any = None
    question: str | None = None
    commands: Any = None
    requests: list[_Request] = []


class Operation(msgspec.Struct):
    """What one part of a call came to."""

    result: Any = None
    error: Any = None
    success: Any = None


_input = msgspec.json.Decoder(_Input)
_operation = msgspec.json.Decoder(Operation)
_operations = msgspec.json.Decoder(list[Operation])


def read_calls(tool: str, given: bytes, *, call_id: str, cwd: str | None) -> list[Made]:
    """The items that ask for what the client was asked for: one, or one for each command. Nothing raises."""
    try:
        read = _input.decode(given)
    except UNREADABLE:
        return [function_call(tool, given, call_id)]
    if tool in ASKING and read.question is not None:
        asked = msgspec.json.encode({"questions": [{"question": read.question}]})
        return [function_call(QUESTION, asked, call_id)]
    if tool == _COMMANDS and (commands := _commands(read.commands)):
        arguments = [msgspec.json.encode({"command": command}) for command in commands]
        return [function_call(tool, each, part_id(call_id, number)) for number, each in enumerate(arguments)]
    if tool == "fetch_web_content" and len(read.requests) == 1:
        return [web_call(call_id, query=None, url=read.requests[0].url)]
    if read.path and tool == "editor" and read.new_text is not None:
        if read.old_text is None and read.insert_line is None:
            return [patch_call(add_patch(read.path, read.new_text, cwd=cwd), call_id)]
        return [patch_call(update_patch(read.path, [(read.old_text or "", read.new_text)], cwd=cwd), call_id)]
    if read.path and read.diff is not None and (changes := _changes(read.diff)):
        return [patch_call(update_patch(read.path, changes, cwd=cwd), call_id)]
    return [tools.read_call(tool, given, call_id=call_id, cwd=cwd)]


def part_id(call_id: str, number: int) -> str:
    """The id of one command of a call."""
    return f"{call_id}#{number}" if number else call_id


def operations_of(content: bytes) -> list[Operation]:
    """The parts of a result that the terminal's client stores; empty for a text."""
    try:
        if content.startswith(b'"'):
            content = msgspec.json.decode(content, type=str).encode("utf-8", "surrogatepass")
        found = [_operation.decode(content)] if content.startswith(b"{") else _operations.decode(content)
    except UNREADABLE:
        return []
    return [each for each in found if isinstance(each.success, bool)]


def read_operation(call: Made | None, told: Operation, *, call_id: str) -> Made:
    """How one part ended. The client tells the code of a command that failed."""
    text = _text(told.result) or _text(told.error)
    if exited := _EXITED.match(text):
        return output(call, call_id, text[exited.end() :], exit_code=int(exited[1]), ok=False)
    if not _runs(call):
        return output(call, call_id, text, ok=told.success is True)
    if _RUNNING.search(text):
        return output(call, call_id, text, ok=None)
    return output(call, call_id, text, exit_code=0 if told.success else None, ok=told.success is True)


def read_text(call: Made | None, text: str, *, call_id: str, failed: bool) -> Made:
    """How a call ended that gave back a text."""
    text = without_header(text)
    failed = failed or text.startswith(_FAILED)
    if failed or not _runs(call):
        return output(call, call_id, text, ok=not failed)
    if not text.startswith(_EXECUTED):
        return output(call, call_id, text, ok=None)
    header, _, printed = text.partition("Output:\n")
    code = _CODE.search(header[:_HEADER_CHARS])
    return output(
        call, call_id, printed, exit_code=int(code[1]) if code else None, ok=None if code is None else code[1] == "0"
    )


def answer(call: Made | None, text: str, *, call_id: str) -> Made | None:
    """A person's answer to the question of a call; None if it asked none."""
    asked: Sequence[str] = questions_of(call) if call is not None else ()
    return answers(call_id, {asked[0]: text}) if asked and text.strip() else None


def _changes(diff: str) -> list[tuple[str, str]]:
    """The old and new texts of a change that was written as text."""
    found: list[tuple[str, str]] = []
    old: list[str] | None = None
    new: list[str] | None = None
    for line in diff.split("\n"):
        if _SEARCH.fullmatch(line.rstrip()):
            old, new = [], None
        elif old is not None and new is None and _DIVIDE.fullmatch(line.rstrip()):
            new = []
        elif old is not None and new is not None and _REPLACE.fullmatch(line.rstrip()):
            found.append(("\n".join(old), "\n".join(new)))
            old = new = None
        elif new is not None:
            new.append(line)
        elif old is not None and (old or not _ABOUT.fullmatch(line)):
            old.append(line)
    return found


def _commands(given: Any) -> list[str]:
    """Of a text, texts, or commands with arguments."""
    found: list[str] = []
    for each in given if isinstance(given, list) else [given]:
        if isinstance(each, dict):
            arguments = each.get("args")
            words = [each.get("command"), *(arguments if isinstance(arguments, list) else [])]
            each = " ".join(word for word in words if isinstance(word, str))
        if isinstance(each, str) and each:
            found.append(each)
    return found


def _runs(call: Made | None) -> bool:
    return call is not None and (b'"name":"%s"' % _COMMANDS.encode() in call.raw[:100] or tools.calls_shell(call))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode("utf-8", "replace")
