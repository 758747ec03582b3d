"""Find the threads of Cline, in the terminal and in editors, and of Roo Code and Kilo Code, which have its layout."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions import tools
from stillroom.sessions.conversation import UNREADABLE, LineDecoder, number_of, text_of, time_of
from stillroom.sessions.discovery import Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.documents import elements, fields, lines
from stillroom.sessions.jsonl import open_stored
from stillroom.sessions.metadata import preview_of, read_description, read_small
from stillroom.sessions.normalize import (
    QUESTION,
    NormalizedItem,
    add_patch,
    answers,
    function_call,
    output,
    patch_call,
    questions_of,
    said_by_agent,
    said_by_assistant,
    said_by_user,
    update_patch,
    web_call,
)
from stillroom.sessions.scaffolding import without_blocks
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, stream_chunks
from stillroom.thread import FileStamp, Thread

# --- What a person typed, in the texts that Cline and its editor extensions make of it.

_SCAFFOLDING = "environment_details|file_content|folder_content|hook_context|mode_notice|system-reminder"
_WRAPPED = re.compile(r"<(user_input|user_command)\b[^>]{0,200}>(.*)</\1>", re.DOTALL)
# How prompts begin that nobody typed.
_CONTINUED = ("[TASK RESUMPTION]", "The user approved switching to act mode.")
# In the editors a person's words stand in one of these tags, at the end of a text of the client's.
_TAGGED = re.compile(r"[^<]{0,400}<(task|feedback|answer|user_message)>\n?(.*)\n?</\1>", re.DOTALL)
_RESULT = re.compile(r"\[(\w{1,80}).{0,2000}?\] Result:(?:\n(.*)|\s*)", re.DOTALL)


class Result(NamedTuple):
    """What a tool gave back, as a text of a user's message: how it is told to models without tools of their own."""

    tool: str
    #: None: it is the next text.
    text: str | None


def typed(text: str) -> str:
    """What a person typed in the terminal; "" if nothing."""
    text = without_blocks(text, _SCAFFOLDING).strip()
    if match := _WRAPPED.fullmatch(text):
        text = match[2].strip()
    return "" if text.startswith(_CONTINUED) else text


def tagged(text: str) -> str | None:
    """What a person typed in an editor, which is marked; None for a text of the client's."""
    match = _TAGGED.fullmatch(text.strip())
    return without_blocks(match[2], _SCAFFOLDING).strip() or None if match else None


def result(text: str) -> Result | None:
    """The result of a tool; None for any other text."""
    match = _RESULT.fullmatch(text)
    return Result(match[1], match[2]) if match else None


def without_header(text: str) -> str:
    """A result without the line that says which tool it is of."""
    found = result(text)
    return found.text if found is not None and found.text is not None else text


# --- Tool calls that a model wrote as tags into its text: how editors ask models that know no tools.

_TOOL_NAMES = """
    access_mcp_resource apply_diff ask_followup_question attempt_completion browser_action codebase_search condense
    execute_command fetch_instructions insert_content list_code_definition_names list_files new_task plan_mode_respond
    plan_mode_response read_file replace_in_file search_and_replace search_files switch_mode update_todo_list
    use_mcp_tool web_fetch write_to_file
"""
_TOOL = re.compile(rf"<({'|'.join(_TOOL_NAMES.split())})>")
_FIELD = re.compile(r"<(\w{1,40})>")
# What may hold tags itself: it ends at the last tag that closes it.
_FREE = frozenset({"arguments", "content", "diff", "message", "response", "result"})


class Written(NamedTuple):
    """A call."""

    tool: str
    arguments: dict[str, str]


def split(text: str) -> tuple[str, Written | None]:
    """What is said in a text, and the call that it ends with; the client carries out no other."""
    text = without_blocks(text, "thinking")
    opening = _TOOL.search(text)
    if opening is None:
        return text, None
    end = text.rfind(f"</{opening[1]}>")
    inside = text[opening.end() : end if end >= opening.end() else len(text)]
    return text[: opening.start()], Written(opening[1], _arguments(inside))


def _arguments(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while (opening := _FIELD.search(text, at)) is not None:
        closing = f"</{opening[1]}>"
        find = text.rfind if opening[1] in _FREE else text.find
        end = find(closing, opening.end())
        if end < 0:
            break
        found.setdefault(opening[1], text[opening.end() : end].strip("\n"))
        at = end + len(closing)
    return found


# --- The tool calls of Cline and its editor extensions, and how they ended.

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


def read_calls(tool: str, given: bytes, *, call_id: str, cwd: str | None) -> list[NormalizedItem]:
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


def read_operation(call: NormalizedItem | None, told: Operation, *, call_id: str) -> NormalizedItem:
    """How one part ended. The client tells the code of a command that failed."""
    text = _text(told.result) or _text(told.error)
    if exited := _EXITED.match(text):
        return output(call, call_id, text[exited.end() :], exit_code=int(exited[1]), ok=False)
    if not _runs(call):
        return output(call, call_id, text, ok=told.success is True)
    if _RUNNING.search(text):
        return output(call, call_id, text, ok=None)
    return output(call, call_id, text, exit_code=0 if told.success else None, ok=told.success is True)


def read_text(call: NormalizedItem | None, text: str, *, call_id: str, failed: bool) -> NormalizedItem:
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


def answer(call: NormalizedItem | None, text: str, *, call_id: str) -> NormalizedItem | None:
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


def _runs(call: NormalizedItem | None) -> bool:
    return call is not None and (b'"name":"%s"' % _COMMANDS.encode() in call.raw[:100] or tools.calls_shell(call))


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode("utf-8", "replace")


# --- The messages of Cline and its editor extensions, which are Anthropic's, as the items that memory keeps.

_SUMMARIES = frozenset({"compaction", "compaction_summary"})
_SAID = "said"
_PASSED_OVER = frozenset({"thinking", "redacted_thinking", "reasoning", "file", "document"})


class _Block(msgspec.Struct):
    type: Any = None
    text: Any = None
    id: Any = None
    name: Any = None
    input: msgspec.Raw = msgspec.Raw(b"{}")
    tool_use_id: Any = None
    content: msgspec.Raw = msgspec.Raw(b"null")
    is_error: Any = None


class _RecordMetadata(msgspec.Struct, rename="camel"):
    kind: Any = None
    display_role: Any = None


class _Message(msgspec.Struct):
    id: Any = None
    role: Any = None
    content: list[_Block] | str = []
    ts: Any = None
    metadata: _RecordMetadata | None = None
    is_summary: Any = msgspec.field(default=None, name="isSummary")
    is_marker: Any = msgspec.field(default=None, name="isTruncationMarker")


class _Text(msgspec.Struct):
    type: Any = None
    text: Any = None


_message = msgspec.json.Decoder(_Message)
_texts = msgspec.json.Decoder(list[_Text])


class Records(LineDecoder):
    """Decodes the messages of a session. `of_editor`: an extension stored it, which marks what a person typed.
    `inherited` are the ids of messages that another session holds too, as hashes."""

    def __init__(
        self,
        stats: ReadStats,
        *,
        of_editor: bool = False,
        of_agent: bool = False,
        cwd: str | None = None,
        inherited: Set[int] = frozenset(),
        reading: Reading = READING,
    ) -> None:
        super().__init__(stats, reading=reading)
        self._of_editor = of_editor
        self._of_agent = of_agent
        self._cwd = cwd
        self._seen |= inherited
        self._position = 0
        self._asked: list[str] = []  # ids of calls that were written into a text, until their results come
        self._awaited = False  # the next text is a result

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a message."""
        message = _message.decode(line)
        self._position += 1
        if isinstance(message.id, str) and not self.is_new(message.id):
            return None, ()
        return number_of(message.ts), self._made(message)

    def _made(self, message: _Message) -> Iterator[NormalizedItem]:
        metadata = message.metadata or _RecordMetadata()
        if text_of(metadata.kind) in _SUMMARIES or message.is_summary is True:
            self.stats.drop("compaction summary")
            return
        content = message.content
        blocks = [_Block("text", content)] if isinstance(content, str) else content
        if message.role == "assistant":
            for block in blocks:
                yield from self._of_assistant(block)
        elif message.role != "user":
            self.stats.count_unknown(f"message/{message.role}")
        elif metadata.kind is not None or metadata.display_role is not None or message.is_marker is True:
            self.stats.drop("written by the client")
        else:
            self._awaited = False
            for block in blocks:
                yield from self._of_user(block)

    # --- the assistant

    def _of_assistant(self, block: _Block) -> Iterator[NormalizedItem]:
        if block.type == "text":
            yield from self._answer(text_of(block.text))
        elif block.type == "tool_use":
            call_id = text_of(block.id)
            if call_id and self.is_new(f"call {call_id}"):
                yield from self._call(text_of(block.name), bytes(block.input), call_id)
        elif text_of(block.type) not in _PASSED_OVER:
            self.stats.count_unknown(f"assistant/{block.type}")

    def _answer(self, text: str) -> Iterator[NormalizedItem]:
        call: Written | None = None
        if self._of_editor:
            text, call = split(text)
        if text.strip():
            yield said_by_assistant(text.strip())
        if call is not None:
            call_id = f"written {self._position}"
            self._asked = [call_id]
            yield from self._call(call.tool, msgspec.json.encode(call.arguments), call_id)

    def _call(self, tool: str, given: bytes, call_id: str) -> Iterator[NormalizedItem]:
        if (name := SAYING.get(tool)) is not None:
            self.called(call_id, NormalizedItem(_SAID, None, b""))
            if words := _field(given, name).strip():
                yield said_by_assistant(words)
            return
        for number, call in enumerate(read_calls(tool, given, call_id=call_id, cwd=self._cwd)):
            yield self.called(part_id(call_id, number), call)

    # --- the user, and what stands in their name

    def _of_user(self, block: _Block) -> Iterator[NormalizedItem]:
        if block.type == "text":
            yield from self._text(text_of(block.text))
        elif block.type == "tool_result":
            call_id = text_of(block.tool_use_id)
            if self.is_new(f"result {call_id}"):
                yield from self._result(call_id, bytes(block.content), failed=block.is_error is True)
        elif block.type == "image":
            self.stats.images += 1
        elif text_of(block.type) not in _PASSED_OVER:
            self.stats.count_unknown(f"user/{block.type}")

    def _text(self, text: str) -> Iterator[NormalizedItem]:
        if not self._of_editor:
            yield from self._prompt(typed(text))
        elif self._awaited:
            self._awaited = False
            yield from self._written_result(text)
        elif (found := result(text)) is not None:
            self._awaited = found.text is None
            if found.text is not None:
                yield from self._written_result(found.text)
        elif words := tagged(text):
            yield from self._prompt(words)
        else:
            self.stats.drop("written by the client")

    def _prompt(self, words: str) -> Iterator[NormalizedItem]:
        if not words:
            self.stats.drop("nothing said")
        else:
            yield said_by_agent(words) if self._of_agent else said_by_user(words)

    def _written_result(self, text: str) -> Iterator[NormalizedItem]:
        call_id = self._asked.pop() if self._asked else f"result {self._position}"
        yield from self._text_result(self.call_of(call_id), text, call_id, failed=False)

    def _result(self, call_id: str, content: bytes, *, failed: bool) -> Iterator[NormalizedItem]:
        for number, told in enumerate(operations := operations_of(content)):
            part = part_id(call_id, number)
            yield read_operation(self.call_of(part), told, call_id=part)
        if not operations:
            text, images = _content(content)
            self.stats.images += images
            yield from self._text_result(self.call_of(call_id), text, call_id, failed=failed)

    def _text_result(
        self, call: NormalizedItem | None, text: str, call_id: str, *, failed: bool
    ) -> Iterator[NormalizedItem]:
        """Only the tools that a person answers hand on their words; what others print is theirs."""
        if call is not None and call.type == _SAID:
            if words := tagged(without_header(text)):
                yield from self._prompt(words)
            return
        words = tagged(without_header(text)) or ("" if self._of_editor else text)
        answered = answer(call, words, call_id=call_id) if not failed and not self._of_agent else None
        yield answered or read_text(call, text, call_id=call_id, failed=failed)


def _field(given: bytes, name: str) -> str:
    try:
        return text_of(msgspec.json.decode(given, type=dict[str, Any]).get(name))
    except UNREADABLE:
        return ""


def _content(raw: bytes) -> tuple[str, int]:
    """The text of a result, and how many images are in it."""
    try:
        if raw.startswith(b'"'):
            return msgspec.json.decode(raw, type=str), 0
        parts = _texts.decode(raw)
    except UNREADABLE:
        return "" if raw == b"null" else raw.decode("utf-8", "replace"), 0
    return "\n".join(filter(None, (text_of(part.text) for part in parts))), sum(part.type == "image" for part in parts)


# --- What Cline and its editor extensions tell of a session, in the two layouts of their files.
#
# The terminal's client, and newer extensions, keep `sessions/ID/ID.messages.json` with `ID.json` beside it. Extensions
# keep `tasks/ID/api_conversation_history.json`, Roo Code with `history_item.json` beside it.

EDITOR = "api_conversation_history.json"
TERMINAL = ".messages.json"
_MAX_FIELD_BYTES = 64 * 1024
# A manifest lists every checkpoint.
_MAX_MANIFEST_BYTES = 16 * 1024 * 1024
# Where the client tells the model in which folder it works.
_FOLDER = re.compile(rb"Current (?:Workspace|Working) Directory \((?:Primary: )?([^)\"\\\n]{1,1000})\)")
_TS = re.compile(rb'"ts"\s*:\s*(\d{12,14})\b')
_HEAD_BYTES = 256 * 1024


class Task(NamedTuple):
    """What is known of a session."""

    session_id: str
    cwd: str = ""
    title: str = ""
    branch: str = ""
    origin_url: str = ""
    version: str = ""
    created_ms: int | None = None
    #: Sub-agents and sub-tasks have one.
    parent: str = ""
    agent: str = ""
    source: str = "vscode"
    #: The session whose messages this one begins with.
    forked_from: str = ""


class _Origin(msgspec.Struct, rename="camel"):
    parent_thread_id: Any = None
    subagent: Any = None
    source: Any = None
    version: Any = None


class _Messages(msgspec.Struct, rename="camel"):
    session_id: Any = None
    agent: Any = None
    origin: _Origin = msgspec.field(default_factory=_Origin)


class _Session(msgspec.Struct):
    started_at: Any = None
    interactive: Any = None
    cwd: Any = None
    workspace_root: Any = None


class _Git(msgspec.Struct):
    branch: Any = None
    url: Any = None


class _Fork(msgspec.Struct, rename="camel"):
    forked_from_session_id: Any = None


class _TaskMetadata(msgspec.Struct):
    title: Any = None
    git: _Git = msgspec.field(default_factory=_Git)
    fork: _Fork = msgspec.field(default_factory=_Fork)


class _RooTask(msgspec.Struct, rename="camel"):
    workspace: Any = None
    task: Any = None
    parent_task_id: Any = None


class _Id(msgspec.Struct):
    id: Any = None


_id = msgspec.json.Decoder(_Id)
T = TypeVar("T", bound=msgspec.Struct)


def is_of_editor(path: Path) -> bool:
    """Whether an extension stored it in its own layout."""
    return path.name == EDITOR


def read_task(path: Path, *, reading: Reading = READING) -> Task:
    """Raises `OSError` or `RolloutError`."""
    return _of_editor(path) if is_of_editor(path) else _of_terminal(path, reading)


def ids_of(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The hashes of the messages' ids. Raises `OSError` or `RolloutError`."""
    found: set[int] = set()
    with open_stored(path, reading=reading) as file:
        for line in elements(file, ("messages",), max_line_bytes=max_line_bytes, reading=reading):
            try:
                name = _id.decode(line).id
            except UNREADABLE:
                continue
            if isinstance(name, str) and len(found) < reading.remembered_records:
                found.add(hash(name))
    return frozenset(found)


def _of_editor(path: Path) -> Task:
    head = read_small(path, max_bytes=_HEAD_BYTES)
    folder, first = _FOLDER.search(head), _TS.search(head)
    described = read_description(path.with_name("history_item.json"), _RooTask)
    name = path.parent.name
    created = int(first[1]) if first else int(name) if re.fullmatch(r"\d{12,14}", name, re.ASCII) else None
    return Task(
        session_id=name,
        cwd=text_of(described.workspace) or (folder[1].decode("utf-8", "replace") if folder else ""),
        title=text_of(described.task),
        created_ms=created,
        parent=text_of(described.parent_task_id),
    )


def _of_terminal(path: Path, reading: Reading) -> Task:
    messages = _described(path, _Messages, stop_after_bytes=reading.head_bytes)
    origin = messages.origin
    manifest = path.with_name(path.name.removesuffix(TERMINAL) + ".json")
    session, metadata = _described(manifest, _Session), _described(manifest, _TaskMetadata, "metadata")
    of_editor = text_of(origin.source) in ("vscode", "ide", "jetbrains")
    return Task(
        session_id=text_of(messages.session_id) or path.name.removesuffix(TERMINAL),
        cwd=text_of(session.cwd) or text_of(session.workspace_root),
        title=text_of(metadata.title),
        branch=text_of(metadata.git.branch),
        origin_url=text_of(metadata.git.url),
        version=text_of(origin.version),
        created_ms=time_of(session.started_at),
        parent=text_of(origin.parent_thread_id)
        or (path.parent.name if messages.agent in ("subagent", "teammate") else ""),
        agent=text_of(origin.subagent),
        source="vscode" if of_editor else "exec" if session.interactive is False else "cli",
        forked_from=text_of(metadata.fork.forked_from_session_id),
    )


def _described(path: Path, kind: type[T], *inside: str, stop_after_bytes: int = _MAX_MANIFEST_BYTES) -> T:
    """What a document tells beside its lists; `kind()` if it can't be read."""
    try:
        with open_stored(path) as file:
            names = kind.__struct_encode_fields__
            found = fields(file, names, max_bytes=_MAX_FIELD_BYTES, path=inside, stop_after_bytes=stop_after_bytes)
        return msgspec.json.decode(msgspec.json.encode(found), type=kind)
    except (OSError, RolloutError, *UNREADABLE):
        return kind()


# --- Sessions

AGENT = "cline"
COPIES = True
_ID = re.compile(r"[\w.-]{1,200}", re.ASCII)
#: In the client's home, in its folder of data, which is an extension's too, and in one session's folder.
_PLACES = (
    *(f"data/sessions/*/*{TERMINAL}", f"data/tasks/*/{EDITOR}"),
    *(f"sessions/*/*{TERMINAL}", f"tasks/*/{EDITOR}"),
    *(f"*{TERMINAL}", EDITOR),
)


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session under `root`, or at the one that it is, oldest first."""
    root = root.absolute()
    paths = [root] if root.is_file() else [path for place in _PLACES for path in root.glob(place)]
    yield from scan(paths, known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session. Raises `RolloutError` if it can't be opened.

    What the session that it was forked from holds too is left out; with `stop_after_bytes` that is not looked for.
    """
    try:
        task = read_task(path, reading=reading)
        origin = path.parents[1] / task.forked_from / f"{task.forked_from}{TERMINAL}"
        taken: frozenset[int] = frozenset()
        if stop_after_bytes is None and _ID.fullmatch(task.forked_from) and origin != path and origin.is_file():
            taken = ids_of(origin, max_line_bytes=max_line_bytes, reading=reading)
        return _open(path, task, taken, max_line_bytes, stop_after_bytes, reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error


def _open(
    path: Path, task: Task, taken: frozenset[int], max_line_bytes: int, stop_after_bytes: int | None, reading: Reading
) -> ItemStream[Records]:
    records = Records(
        ReadStats(),
        of_editor=is_of_editor(path),
        of_agent=bool(task.parent),
        cwd=task.cwd or None,
        inherited=taken,
        reading=reading,
    )
    return stream_chunks(
        _lines(path, reading),
        path,
        records,
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _lines(path: Path, reading: Reading) -> Generator[bytes, None, None]:
    with open_stored(path, reading=reading) as file:
        yield from lines(file, () if is_of_editor(path) else ("messages",), reading=reading)


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    task = read_task(path, reading=reading)
    if _ID.fullmatch(task.session_id) is None:
        raise RolloutError(f"`{path}` can't be used: {task.session_id[:80]!r} is no id of a session")
    with _open(path, task, frozenset(), max_line_bytes, reading.long_head_bytes, reading) as items:
        preview = preview_of(items, reading=reading)
    modified = file.mtime_ns // 1_000_000
    created = task.created_ms or modified
    agent = {"subagent": task.agent or "other"}
    thread = Thread(
        thread_id=task.session_id,
        agent=AGENT,
        rollout_path=str(path),
        source=msgspec.json.encode(agent).decode() if task.parent else task.source,
        cwd=task.cwd,
        created_at_ms=created,
        updated_at_ms=max(modified, created),
        title=preview_text(task.title, max_chars=reading.preview_chars),
        preview=preview,
        parent_thread_id=task.parent or None,
        git_branch=task.branch or None,
        git_origin_url=task.origin_url or None,
        cli_version=task.version or None,
    )
    return Found(thread, file.stamp(0))
