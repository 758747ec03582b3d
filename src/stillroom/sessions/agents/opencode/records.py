"""OpenCode's parts and rows as the items that memory keeps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.sessions.conversation import UNREADABLE, LineDecoder, number_of, text_of
from stillroom.sessions.normalize import (
    QUESTION,
    NormalizedItem,
    add_patch,
    answers,
    function_call,
    output,
    patch_call,
    questions_of,
    run_by_user,
    said_by_agent,
    said_by_assistant,
    said_by_user,
    taken_back,
    update_patch,
    web_call,
)
from stillroom.sessions.stats import ReadStats

# --- What OpenCode knows of a session, in either of its stores, and the lines that its talk is read as.
#
# A line is `{"part":…,"message":…}` for a part of a message (up to 1.18), `{"row":…,"message":…}` for a whole message
# of the newer rows (`chunks.enclosed`).

# `opencode run` asks nobody: it denies the tools that would.
_ASKING = frozenset({"question", "plan_enter"})


class Time(msgspec.Struct):
    """Milliseconds."""

    created: Any = None
    updated: Any = None
    archived: Any = None


class Revert(msgspec.Struct, rename={"message_id": "messageID", "part_id": "partID"}):
    """From where the user took the talk back."""

    message_id: Any = None
    part_id: Any = None


class Session(msgspec.Struct, kw_only=True, rename={"parent_id": "parentID", "project_id": "projectID"}):
    """A session, as its file has it; rows are brought into the same form."""

    id: str
    project_id: Any = None
    parent_id: Any = None
    directory: Any = None
    title: Any = None
    version: Any = None
    agent: Any = None
    time: Time = msgspec.field(default_factory=Time)
    permission: Any = None
    revert: Revert | None = None

    @property
    def is_headless(self) -> bool:
        """Whether a script started it."""
        rules: list[Any] = self.permission if isinstance(self.permission, list) else []
        denied = {rule.get("permission") for rule in rules if isinstance(rule, dict) and rule.get("action") == "deny"}
        return denied >= _ASKING

    @property
    def created_ms(self) -> int:
        return number_of(self.time.created) or 0


class Message(msgspec.Struct, kw_only=True):
    """The fields of a message that tell how its parts are to be read. Ids are ordered by time."""

    id: str
    #: `user`, `assistant`, or the type of a newer row.
    role: str
    at: int | None = None
    cwd: str | None = None
    #: The assistant's words are the summary of a compaction.
    summary: bool = False
    #: The user went back behind it.
    undone: bool = False
    #: A fork took it over from another session, which still has it.
    taken: bool = False


class _Path(msgspec.Struct):
    cwd: Any = None


class Stored(msgspec.Struct):
    """A message as the client stores it, in a file or in a row."""

    id: Any = None
    role: Any = None
    time: Time = msgspec.field(default_factory=Time)
    path: _Path = msgspec.field(default_factory=_Path)
    summary: Any = None
    mode: Any = None


def message_of(stored: Stored, session: Session, *, message_id: str, origin: bool) -> Message:
    """What the decoder has to know of a message. `origin`: the session that this one was forked from is still there.

    A fork keeps the times of what it took over: they are earlier than its own.
    """
    at = number_of(stored.time.created)
    return Message(
        id=message_id,
        role=text_of(stored.role),
        at=at,
        cwd=text_of(stored.path.cwd) or text_of(session.directory) or None,
        summary=stored.summary is True or stored.mode == "compaction",
        undone=is_undone(session, message_id),
        taken=origin and at is not None and at < session.created_ms,
    )


def is_undone(session: Session, message_id: str) -> bool:
    """Whether a message is among those that the user took back."""
    if session.revert is None or not isinstance(session.revert.message_id, str):
        return False
    first = session.revert.message_id
    return message_id > first or (message_id == first and not session.revert.part_id)


def decoded(text: object) -> Any:
    """A column with JSON in it; None for what is none."""
    try:
        return json.loads(text) if isinstance(text, bytes) else None
    except (ValueError, RecursionError):
        return None


# --- OpenCode's tool calls and how they ended.

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


def read_call(tool: str, state: State, *, call_id: str, cwd: str | None) -> NormalizedItem:
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


def read_result(call: NormalizedItem, state: State, *, call_id: str) -> NormalizedItem | None:
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


def _answers(call: NormalizedItem, told: _Metadata) -> dict[str, str]:
    """By question: the client keeps the answers in the order of the questions."""
    chosen: list[Any] = told.answers if isinstance(told.answers, list) else []
    return {
        asked: ", ".join(text_of(label) for label in labels)
        for asked, labels in zip(questions_of(call), chosen, strict=False)
        if isinstance(labels, list)
    }


# --- Sessions

# Parts and rows that are known and hold nothing for memory.
_PASSED_OVER = frozenset(
    {"reasoning", "step-start", "step-finish", "patch", "snapshot", "agent", "subtask", "retry", "compaction"}
)
_ROWS_PASSED_OVER = frozenset({"synthetic", "system", "compaction", "agent-switched", "model-switched"})


class Part(msgspec.Struct):
    """A part of a message, of any type. Newer rows have the same parts, under a few other names."""

    type: Any = None
    text: Any = None
    synthetic: Any = None
    ignored: Any = None
    mime: Any = None
    id: Any = None
    name: Any = None
    tool: Any = None
    call_id: Any = msgspec.field(default=None, name="callID")
    state: State = msgspec.field(default_factory=State)


class _Row(msgspec.Struct):
    text: Any = None
    files: Any = None
    content: list[Part] = []
    command: Any = None
    output: Any = None


class _Line(msgspec.Struct):
    message: Message
    part: Part | None = None
    row: _Row | None = None


_line = msgspec.json.Decoder(_Line)


class Records(LineDecoder):
    """Decodes the lines of either store. In a session `of_agent` the prompts are another agent's."""

    def __init__(
        self, stats: ReadStats, *, of_agent: bool = False, quoted: bool = False, reading: Reading = READING
    ) -> None:
        super().__init__(stats, reading=reading)
        self._of_agent = of_agent
        self._quoted = quoted

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a part or a row."""
        read = _line.decode(line)
        message = read.message
        if message.taken:
            self.stats.drop("seen before")
            return None, ()
        if read.part is not None:
            return message.at, self._part(read.part, message)
        return message.at, self._row(read.row or _Row(), message)

    def _part(self, part: Part, message: Message) -> Iterator[NormalizedItem]:
        if part.type in _PASSED_OVER:
            return
        if message.role == "user":
            yield from self._of_user(part, message)
        elif message.role == "assistant":
            yield from self._of_assistant(part, message)
        else:
            self.stats.count_unknown(f"message/{message.role}")

    def _of_user(self, part: Part, message: Message) -> Iterator[NormalizedItem]:
        if part.type == "file":
            self.stats.images += text_of(part.mime).startswith("image/")
        elif part.type != "text":
            self.stats.count_unknown(f"user/{part.type}")
        elif part.synthetic or part.ignored:
            self.stats.drop("written by the client")
        else:
            yield from self._prompt(text_of(part.text), message)

    def _prompt(self, text: str, message: Message) -> Iterator[NormalizedItem]:
        if self._quoted:
            text = _without_quotes(text)
        if not text.strip():
            self.stats.drop("nothing said")
        elif self._of_agent:
            yield said_by_agent(text)
        elif message.undone:
            self.stats.superseded += 1
            yield taken_back(text)
        else:
            yield said_by_user(text)

    def _of_assistant(self, part: Part, message: Message) -> Iterator[NormalizedItem]:
        if message.summary:
            self.stats.drop("compaction summary")
        elif part.type == "text":
            text = text_of(part.text)
            if text.strip() and not (part.synthetic or part.ignored):
                yield said_by_assistant(text)
        elif part.type == "tool":
            yield from self._tool(part, message)
        elif part.type not in _PASSED_OVER and part.type != "file":
            self.stats.count_unknown(f"assistant/{part.type}")

    def _tool(self, part: Part, message: Message) -> Iterator[NormalizedItem]:
        call_id = text_of(part.call_id) or text_of(part.id)
        if not call_id or not self.is_new(call_id):
            return
        call = read_call(text_of(part.tool) or text_of(part.name), part.state, call_id=call_id, cwd=message.cwd)
        yield call
        if (result := read_result(call, part.state, call_id=call_id)) is not None:
            yield result

    def _row(self, row: _Row, message: Message) -> Iterator[NormalizedItem]:
        if message.role == "user":
            files = row.files if isinstance(row.files, list) else []
            self.stats.images += len(files)
            yield from self._prompt(text_of(row.text), message)
        elif message.role == "assistant":
            for part in row.content:
                yield from self._of_assistant(part, message)
        elif message.role == "shell":
            yield run_by_user(text_of(row.command), text_of(row.output))
        elif message.role in _ROWS_PASSED_OVER:
            self.stats.drop("compaction summary" if message.role == "compaction" else "written by the client")
        else:
            self.stats.count_unknown(f"row/{message.role}")


def _without_quotes(text: str) -> str:
    """`opencode run` stores a prompt of several words within quotes."""
    stripped = text.strip()
    return stripped[1:-1] if len(stripped) > 1 and stripped[0] == stripped[-1] == '"' else text
