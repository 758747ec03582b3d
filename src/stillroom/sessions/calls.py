"""What a tool was asked, and how it ended, out of the forms in which Codex records both."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

import msgspec

from stillroom.pattern import late

_EXIT = late(r"^(?:Process exited with code|Exit code:) *(-?\d{1,10})\b", re.MULTILINE)
_SESSION = late(r"^Process running with session ID (\d+)", re.MULTILINE)
_FAILED = late(
    r"apply_patch verification failed|failed to parse|unsupported call|exec_command failed|write_stdin failed"
    r"|execution error|exec command rejected|command rejected|aborted by user"
)
# In code mode the one tool takes JavaScript, and commands are strings in it.
_SCRIPTED_COMMAND = late(r"""\b["']?cmd["']?\s*:\s*("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)""")
# The header of an output ends before this; what follows is the program's.
_BODY = "Output:\n"
_HEADER_CHARS = 600


class Call(msgspec.Struct):
    """The fields of every kind of tool call."""

    type: str = ""
    name: str | None = None
    namespace: str | None = None
    call_id: str | None = None
    id: str | None = None
    arguments: msgspec.Raw = msgspec.Raw(b"null")
    input: msgspec.Raw = msgspec.Raw(b"null")
    action: msgspec.Raw = msgspec.Raw(b"null")
    status: str | None = None


class Output(msgspec.Struct):
    """The fields of every kind of tool output."""

    call_id: str | None = None
    name: str | None = None
    output: msgspec.Raw = msgspec.Raw(b"null")
    tools: msgspec.Raw = msgspec.Raw(b"null")


class Asked(NamedTuple):
    """A call, read."""

    tool: str
    arguments: str
    command: str | None
    workdir: str | None
    #: The running process that a later call writes to.
    session: str | None


class Ended(NamedTuple):
    """An output, read."""

    text: str
    exit_code: int | None
    ok: bool | None
    session: str | None


class _Arguments(msgspec.Struct):
    cmd: str | list[str] | None = None
    command: str | list[str] | None = None
    workdir: str | None = None
    working_directory: str | None = None
    session_id: int | str | None = None


class _Metadata(msgspec.Struct):
    exit_code: int | None = None


class _Structured(msgspec.Struct):
    output: str | None = None
    content: msgspec.Raw = msgspec.Raw(b"null")
    metadata: _Metadata | None = None
    exit_code: int | None = None
    success: bool | None = None


class _Part(msgspec.Struct):
    text: str | None = None


def read_call(call: Call) -> Asked:
    """What was asked; nothing that the model wrote raises."""
    arguments = _given(call)
    tool = f"{call.namespace}.{call.name}" if call.namespace and call.name else call.name or call.type[: -len("_call")]
    try:
        given = msgspec.json.decode(arguments, type=_Arguments)
    except (msgspec.DecodeError, RecursionError):
        scripted = [_unquoted(text) for text in _SCRIPTED_COMMAND.findall(arguments)] if tool == "exec" else []
        return Asked(tool, arguments, "\n".join(scripted) or None, None, None)
    command = given.cmd if given.cmd is not None else given.command
    session = str(given.session_id) if given.session_id is not None else None
    return Asked(tool, arguments, _command_text(command), given.workdir or given.working_directory, session)


def read_output(output: Output) -> Ended:
    """How a call ended: its text without the client's header, and the exit code as recorded."""
    text, code, ok = _output_text(bytes(output.output if output.output != b"null" else output.tools))
    header = text[:_HEADER_CHARS].partition(_BODY)[0]
    if code is None and (match := _EXIT.search(header)):
        code = int(match[1])
    session = _SESSION.search(header)
    if ok is None and code is not None:
        ok = code == 0
    if ok is None and _FAILED.search(text[:_HEADER_CHARS]):
        ok = False
    if (code is not None or session) and len(header) < min(len(text), _HEADER_CHARS):
        text = text[len(header) + len(_BODY) :]
    return Ended(text, code, ok, session[1] if session else None)


def _given(call: Call) -> str:
    raw = next((bytes(raw) for raw in (call.arguments, call.input, call.action) if bytes(raw) != b"null"), b"")
    if raw.startswith(b'"'):
        return msgspec.json.decode(raw, type=str)
    return raw.decode("utf-8", "replace")


def _command_text(command: str | list[str] | None) -> str | None:
    if not isinstance(command, list):
        return command
    # `bash -lc TEXT` is how the client runs TEXT.
    if len(command) == 3 and command[1] in ("-lc", "-c"):
        return command[2]
    return shlex.join(command)


def _unquoted(text: str) -> str:
    if text.startswith('"'):
        try:
            return msgspec.json.decode(text, type=str)
        except msgspec.DecodeError:
            pass
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _output_text(raw: bytes) -> tuple[str, int | None, bool | None]:
    """The text, with the exit code and the success of outputs that are objects."""
    try:
        if raw.startswith(b'"'):
            text = msgspec.json.decode(raw, type=str)
            if not (text.startswith("{") and '"metadata"' in text):
                return text, None, None
            raw = text.encode()
        if raw.startswith(b"{"):
            value = msgspec.json.decode(raw, type=_Structured)
            code = value.metadata.exit_code if value.metadata is not None else value.exit_code
            if value.output is not None:
                return value.output, code, value.success
            if bytes(value.content) != b"null":
                return _output_text(bytes(value.content))[0], code, value.success
        elif raw.startswith(b"["):
            parts = msgspec.json.decode(raw, type=list[_Part])
            texts = [part.text for part in parts if part.text is not None]
            if texts or not parts:
                return "\n".join(texts), None, None
    except (msgspec.DecodeError, RecursionError):
        pass
    return ("" if raw == b"null" else raw.decode("utf-8", "replace")), None, None
