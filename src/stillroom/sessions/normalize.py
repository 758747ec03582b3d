"""Items as Codex would have recorded them, for what another agent's client recorded in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from stillroom.sessions.item import UNREADABLE

_SUPERSEDED = (
    '<superseded_message reason="the user went back and wrote another message in its place;'
    ' what follows, up to their next message, was left behind">\n%s\n</superseded_message>'
)
ABORTED = "<turn_aborted>\nThe user stopped the assistant here.\n</turn_aborted>"
"""How a turn that the person broke off is marked."""
# What a reader of outputs takes for the client's header. A header ends where the output begins.
_LIKE_A_HEADER = ("Exit code:", "Process exited with", "Process running with")
_HEADER_CHARS = 2000
_encode = msgspec.json.Encoder().encode


# One is made of each item of a session: a named tuple takes five times as long.
class NormalizedItem(msgspec.Struct, frozen=True, gc=False):
    """An item, but for when and where it stood."""

    type: str
    role: str | None
    raw: bytes


# --- words


def said_by_user(*texts: str) -> NormalizedItem:
    """One message of a person."""
    return NormalizedItem("message", "user", _encode({"type": "message", "role": "user", "content": _parts(texts)}))


def taken_back(*texts: str) -> NormalizedItem:
    """A message that the person took back, with all that followed it."""
    return said_by_user(superseded_text(*texts))


def superseded_text(*texts: str) -> str:
    """How such a message is marked."""
    return _SUPERSEDED % "\n".join(texts)


def stopped_by_user() -> NormalizedItem:
    """The mark of a turn that the person broke off."""
    return said_by_user(ABORTED)


def said_by_assistant(text: str) -> NormalizedItem:
    content = [{"type": "output_text", "text": text}]
    return NormalizedItem("message", "assistant", _encode({"type": "message", "role": "assistant", "content": content}))


def said_by_agent(text: str) -> NormalizedItem:
    """A message between agents: it tells what another agent wanted or found, never what the user said."""
    return NormalizedItem("agent_message", None, _encode({"type": "agent_message", "content": _parts([text])}))


def run_by_user(command: str, result: str) -> NormalizedItem:
    """What a person ran in the client's own shell."""
    text = (
        f"<user_shell_command>\n<command>\n{command}\n</command>\n<result>\n{result}\n</result>\n</user_shell_command>"
    )
    return said_by_user(text)


# --- calls


def function_call(name: str, arguments: bytes, call_id: str) -> NormalizedItem:
    """`arguments` is JSON text."""
    text = arguments.decode("utf-8", "replace")
    return NormalizedItem(
        "function_call",
        None,
        _encode({"type": "function_call", "name": name, "arguments": text, "call_id": call_id}),
    )


def patch_call(patch: str, call_id: str) -> NormalizedItem:
    """An edit, as the patch that Codex would have been asked to apply."""
    call = {"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": call_id}
    return NormalizedItem("custom_tool_call", None, _encode({**call, "status": "completed"}))


def web_call(call_id: str, *, query: str | None, url: str | None) -> NormalizedItem:
    """A look into the web: words from outside."""
    action = {"type": "open_page", "url": url} if query is None else {"type": "search", "query": query}
    call = {"type": "web_search_call", "call_id": call_id, "status": "completed", "action": action}
    return NormalizedItem("web_search_call", None, _encode(call))


def update_patch(path: str, edits: Iterable[tuple[str, str]], *, cwd: object) -> str:
    """Old and new texts of one file as a patch; its path is relative to the folder."""
    lines = [f"*** Update File: {_relative(path, cwd)}"]
    for old, new in edits:
        lines += ["@@", *_marked("-", old), *_marked("+", new)]
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def add_patch(path: str, content: str, *, cwd: object) -> str:
    """A whole file as a patch."""
    return "\n".join(
        ["*** Begin Patch", f"*** Add File: {_relative(path, cwd)}", *_marked("+", content), "*** End Patch"]
    )


# --- outputs


def output(
    call: NormalizedItem | None, call_id: str, text: str, *, exit_code: int | None = None, ok: bool | None
) -> NormalizedItem:
    """How a call ended: with an exit code, if it was a command, else well or badly; None: nobody knows.

    `call` is the item that asked, None if it is not known.
    """
    kind = "custom_tool_call_output" if call is not None and call.type == "custom_tool_call" else "function_call_output"
    value: Any = {"content": text, "success": ok}
    if exit_code is not None:
        value = f"Exit code: {exit_code}\nOutput:\n{text}"
    elif any(mark in text[:_HEADER_CHARS] for mark in _LIKE_A_HEADER):
        value["content"] = "Output:\n" + text
    return NormalizedItem(kind, None, _encode({"type": kind, "call_id": call_id, "output": value}))


class _Question(msgspec.Struct):
    question: str = ""


class _Questions(msgspec.Struct):
    questions: list[_Question] = []


class _Call(msgspec.Struct):
    name: str = ""
    arguments: str = "{}"


def questions_of(call: NormalizedItem) -> list[str]:
    """What a call of `QUESTION` asks, in its order; nothing of any other call."""
    try:
        read = msgspec.json.decode(call.raw, type=_Call)
        asked = msgspec.json.decode(read.arguments, type=_Questions) if read.name == QUESTION else _Questions()
    except UNREADABLE:
        return []
    return [each.question for each in asked.questions]


def answers(call_id: str, answered: dict[str, str]) -> NormalizedItem:
    """What a person chose, in the form of Codex's tool that asks people."""
    text = _encode({"answers": answered}).decode()
    item = {"type": "function_call_output", "call_id": call_id, "output": text}
    return NormalizedItem("function_call_output", None, _encode(item))


QUESTION = "request_user_input"
"""Codex's tool that asks people."""


def _parts(texts: Sequence[str]) -> list[dict[str, str]]:
    return [{"type": "input_text", "text": text} for text in texts]


def _relative(path: str, cwd: object) -> str:
    if isinstance(cwd, str) and cwd and path.startswith(cwd.rstrip("/") + "/"):
        return path[len(cwd.rstrip("/")) + 1 :]
    return path


def _marked(mark: str, text: str) -> list[str]:
    return [mark + line for line in text.split("\n")] if text else []
