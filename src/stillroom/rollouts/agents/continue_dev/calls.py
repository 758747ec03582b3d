"""Continue's tool calls and how they ended."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import UNREADABLE, text_of
from stillroom.rollouts.agents.made import QUESTION, Made, answers, function_call, output, questions_of
from stillroom.rollouts.agents.tools import calls_shell, read_call, read_result

# The command line's client throws where a command wrote to its error stream, and tells the code of no other.
_THROWN = re.compile(r"(?:Error executing tool \w{1,80}: )?Error \(exit code (-?\d{1,10})\): ")
# The editor's writes it beside the output.
_FAILED = re.compile(r"Command failed with exit code (-?\d{1,10})")
_COMPLETED = "Command completed"
_ASKING = "AskQuestion"
_ANSWER = re.compile(r'User .{1,80}?: "(.*)"\s*', re.DOTALL)


class Output(msgspec.Struct):
    """A part of what a tool gave back."""

    content: Any = None
    status: Any = None


class Function(msgspec.Struct):
    """What a call asks for."""

    name: Any = None
    arguments: Any = None


class ToolCall(msgspec.Struct):
    """A call as the model wrote it."""

    id: Any = None
    function: Function = msgspec.field(default_factory=Function)


class State(msgspec.Struct, rename="camel"):
    """A call and its result."""

    tool_call_id: Any = None
    tool_call: ToolCall = msgspec.field(default_factory=ToolCall)
    status: Any = None
    output: list[Output] | None = None


class _Question(msgspec.Struct):
    question: str


def call_of(call: ToolCall, *, call_id: str, cwd: str | None) -> Made:
    """The item that asks for what the client was asked for."""
    name, given = text_of(call.function.name), text_of(call.function.arguments).encode("utf-8", "replace")
    if name == _ASKING:
        try:
            asked = msgspec.json.decode(given, type=_Question)
        except UNREADABLE:
            return function_call(name, given, call_id)
        return function_call(QUESTION, msgspec.json.encode({"questions": [{"question": asked.question}]}), call_id)
    return read_call(name, given, call_id=call_id, cwd=cwd)


def result_of(call: Made, state: State, *, call_id: str) -> Made | None:
    """How the call ended; None: it has not. The client calls a command that failed done, if it was silent about it."""
    if state.status not in ("done", "errored", "canceled"):
        return None
    parts = state.output or []
    text = "\n".join(filter(None, (text_of(part.content) for part in parts)))
    failed = state.status != "done"
    if (answered := _ANSWER.fullmatch(text)) and (asked := questions_of(call)):
        return answers(call_id, {asked[0]: answered[1]})
    if not calls_shell(call):
        return read_result(call, text, call_id=call_id, failed=failed)
    if thrown := _THROWN.match(text):
        return output(call, call_id, text[thrown.end() :], exit_code=int(thrown[1]), ok=False)
    told = next(filter(None, (text_of(part.status).strip() for part in parts)), "")
    if exited := _FAILED.match(told):
        return output(call, call_id, text, exit_code=int(exited[1]), ok=False)
    if told == _COMPLETED:
        return output(call, call_id, text, exit_code=0, ok=True)
    return output(call, call_id, text, ok=False if failed else None)
