"""The lines of a Claude Code session as the items that memory keeps, each message once."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, Literal, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.sessions.conversation import NOTHING, Past
from stillroom.sessions.fragments import clean, is_marked
from stillroom.sessions.item import MESSAGES, UNREADABLE, Item, valid_utf8
from stillroom.sessions.normalize import (
    ABORTED,
    NormalizedItem,
    add_patch,
    said_by_agent,
    said_by_user,
    superseded_text,
    update_patch,
)
from stillroom.sessions.scaffolding import without_blocks
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.timestamps import parse_timestamp

# --- One line of a Claude Code session: which kinds there are, and the fields that Stillroom looks at.

# The client's bookkeeping: nothing in it was said or done. The requests among it repeat the whole session.
_BOOKKEEPING_NAMES = """
    agent-color agent-name agent-setting ai-title api-request api-request-blob api-request-shape atis-latch
    content-replacement cost-state custom-title file-history-delta file-history-snapshot fork-context-ref last-prompt
    mode permission-mode pr-link progress queue-operation relocated result session-owner started summary tag tools-used
    worktree-state
"""
BOOKKEEPING = frozenset(_BOOKKEEPING_NAMES.split())

# What the client tells the model unasked. Beside these only a queued prompt is somebody's words.
_ATTACHMENT_NAMES = """
    agent_listing_delta agent_mention auto_mode auto_mode_exit background_remote_session_status budget_usd
    command_permissions compact_file_reference critical_system_reminder date date_change deferred_tools_delta
    diagnostics directory dynamic_skill edited_image_file edited_text_file environment file hook_additional_context
    hook_blocking_error hook_cancelled hook_error_during_execution hook_non_blocking_error hook_stopped_continuation
    hook_success hook_system_message instructions invoked_skills mcp_instructions_delta mcp_resource model
    nested_memory opened_file_in_ide output_style pdf_reference plan_file_reference plan_mode plan_mode_exit
    plan_mode_reentry prompt_snapshot relevant_memories remote_session_change selected_lines_in_ide session_context
    skill_listing task_reminder task_status todo todo_reminder token_usage ultramemory
"""
ATTACHMENTS = frozenset(_ATTACHMENT_NAMES.split())
QUEUED = "queued_command"

# What the client shows to the person.
_NOTICE_NAMES = """
    agents_killed api_error api_metrics api_retry away_summary compact_boundary informational local_command
    memory_saved microcompact_boundary stop_hook_summary thinking turn_duration
"""
SYSTEM = frozenset(_NOTICE_NAMES.split())

# The first bytes of most lines tell what they are.
_START = re.compile(
    rb'\{(?:"type":"(?P<kind>[\w-]{1,40})"'
    rb'|"parentUuid":(?:null|"[\w-]{1,80}"),"isSidechain":(?:true|false),(?:"agentId":"[\w-]{1,80}",)?'
    rb'"attachment":\{"type":"(?P<attachment>\w{1,40})")'
)
# The same for a line of the talk in a third of the time.
_BOOKED = b'{"type":"'
_ATTACHED = b'"attachment":{"type":"'
_WITHIN_BYTES = 300
_KINDS = frozenset(kind.encode() for kind in BOOKKEEPING)
_ATTACHMENTS = frozenset(kind.encode() for kind in ATTACHMENTS)
# Python objects take up to fifty times the room of their text.
_REPAIRED_BYTES = 1024 * 1024


# A field of a strange type must spoil nothing else: everything is `Any` here, and looked at where it is used.
class Block(msgspec.Struct, gc=False):
    """A part of a message's content, of any kind."""

    type: Any = None
    text: msgspec.Raw = msgspec.Raw(b"null")
    id: Any = None
    name: Any = None
    input: msgspec.Raw = msgspec.Raw(b"null")
    tool_use_id: Any = None
    content: msgspec.Raw = msgspec.Raw(b"null")
    is_error: Any = None
    source: msgspec.Raw = msgspec.Raw(b"null")


class Message(msgspec.Struct, gc=False):
    """What the provider's API calls a message."""

    model: Any = None
    content: list[Block] | str = ""


class Attachment(msgspec.Struct, rename="camel", gc=False):
    """What the client put beside the talk."""

    type: Any = None
    prompt: list[Block] | str = ""
    command_mode: Any = None
    origin: Any = None


class Record(msgspec.Struct, rename="camel", gc=False):
    """A line."""

    type: Any = None
    subtype: Any = None
    uuid: Any = None
    parent_uuid: Any = None
    session_id: Any = None
    timestamp: Any = None
    cwd: Any = None
    message: Message | None = None
    attachment: Attachment | None = None
    is_sidechain: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    is_api_error_message: Any = None
    origin: Any = None
    prompt_source: Any = None
    row_source: Any = None
    tool_denial_kind: Any = None
    tool_use_result: msgspec.Raw = msgspec.Raw(b"null")


_record = msgspec.json.Decoder(Record)


def parse_record(line: bytes) -> Record | None:
    """The line, read; None if it is none. Raises nothing."""
    try:
        return _record.decode(line)
    except UNREADABLE:
        repaired = _repaired(line)
    try:
        return _record.decode(repaired) if repaired is not None else None
    except (msgspec.DecodeError, RecursionError):
        return None


def is_passed_over(line: bytes) -> bool:
    """True only of a line whose first bytes say that memory keeps nothing of it."""
    if line[:9] != _BOOKED and line.find(_ATTACHED, 0, _WITHIN_BYTES) < 0:
        return False
    start = _START.match(line)
    return start is not None and (start["kind"] in _KINDS or start["attachment"] in _ATTACHMENTS)


def text_of(raw: bytes | msgspec.Raw) -> str:
    """A JSON string, decoded, damage replaced; "" for every other value."""
    try:
        return msgspec.json.decode(raw, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    text = bytes(raw)
    try:
        value = json.loads(text.decode("utf-8", "replace"), strict=False) if text.startswith(b'"') else ""
    except ValueError:
        return ""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _repaired(line: bytes) -> bytes | None:
    """A second, more tolerant look: NULs of a crash, bare control characters, half surrogate pairs, broken UTF-8."""
    if len(line) > _REPAIRED_BYTES:
        return None
    try:
        value = json.loads(line.lstrip(b"\0").decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


# --- Who wrote a text in a user record of Claude Code: the client writes many of its own there.

Author = Literal["user", "harness", "agent"]


class Words(NamedTuple):
    """A text and who wrote it."""

    who: Author
    text: str


# Blocks that the client or a hook puts into what a person typed, or behind what a tool printed.
_BLOCKS = (
    "system-reminder|user-prompt-submit-hook|session-start-hook|new-diagnostics|ide_[a-z_]{1,40}"
    "|local-command-(?:stdout|stderr|caveat)"
)
# Texts that are the client's from their first word on.
_CLIENTS = (
    "Caveat: The messages below",
    "This session is being continued from a previous conversation",
    "<tick>",
    "<goal>",
    "<local-command-",
)
_SPEECH_INTERRUPTED = "[Request interrupted by user"
# Commands that steer the client. All others are prompts that somebody keeps in a file, and asks for by their names.
_BUILT_IN_NAMES = """
    add-dir agents allowed-tools bashes bug clear color compact config context copy cost doctor effort exit export
    extra-usage fast feedback help hooks ide install-github-app keybindings login logout mcp memory migrate-installer
    mobile model output-style permissions plugin privacy-settings quit release-notes reload-plugins remote-env rename
    resume rewind sandbox skills status statusline stats tasks terminal-setup theme todos upgrade usage vim voice
    web-setup
"""
_BUILT_IN = frozenset(_BUILT_IN_NAMES.split())
_SHELL = (("bash-input", "command"), ("bash-stdout", "result"), ("bash-stderr", "errors"))
_TEAMMATE = re.compile(r"</?teammate-message\b[^>]{0,400}>")


def without_scaffolding(text: str) -> str:
    """`text` without what the client or a hook put into it."""
    return without_blocks(text, _BLOCKS)


def is_typed(record: Record) -> bool:
    """Whether the record says that a person wrote it, or, as in older versions, does not say that nobody did."""
    if record.is_meta or record.is_compact_summary:
        return False
    attachment = record.attachment
    if attachment is not None and attachment.command_mode not in (None, "prompt"):
        return False
    origin: object = attachment.origin if attachment is not None else record.origin
    if isinstance(origin, dict) and "kind" in origin:
        kind: object = origin["kind"]
        return kind == "human"
    source: object = record.prompt_source
    writer: object = record.row_source
    return source != "system" and writer != "harness"


def read_words(text: str) -> Words | None:
    """Who says what in a text that is not marked as the client's; None where nothing is left of it."""
    text = without_scaffolding(text)
    start = text.lstrip()
    if not start or start.startswith(_CLIENTS):
        return None
    if start.startswith("["):
        return Words("harness", ABORTED) if start.startswith(_SPEECH_INTERRUPTED) else Words("user", text)
    if not start.startswith("<"):
        return Words("user", text)
    if start.startswith("<task-notification>"):
        # What a sub-agent found; the outcome in one line where it found nothing.
        return _said_by_agent(_inside(text, "result") or _inside(text, "summary"))
    if start.startswith("<teammate-message"):
        return _said_by_agent(_TEAMMATE.sub("", text))
    if start.startswith(("<command-name>", "<command-message>")):
        name = _inside(text, "command-name").strip().removeprefix("/")
        command = f"/{name} {_inside(text, 'command-args').strip()}".rstrip()
        return Words("user", command) if name and name not in _BUILT_IN else None
    if start.startswith(tuple(f"<{tag}>" for tag, _ in _SHELL)):
        return _shell(text)
    return Words("user", text)


def _said_by_agent(text: str) -> Words | None:
    return Words("agent", text.strip()) if text.strip() else None


def _shell(text: str) -> Words | None:
    """What a person ran in the client's own shell, in the form in which Codex records the same."""
    parts = [f"<{name}>\n{body}\n</{name}>" for tag, name in _SHELL if (body := _inside(text, tag).strip())]
    return Words("harness", "\n".join(("<user_shell_command>", *parts, "</user_shell_command>"))) if parts else None


def _inside(text: str, tag: str) -> str:
    """What stands between the tag's first opening and its last end: a text may hold the end itself."""
    start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
    return text[start + len(tag) + 2 : end] if 0 <= start < end else ""


# --- Claude Code's tool calls and their results, as Codex records such calls and such results.


class Form(Enum):
    """What kind of call it was: it tells how the result is to be read."""

    SHELL = "shell"
    PATCH = "patch"
    QUESTION = "question"
    OTHER = "other"


class Called(msgspec.Struct, frozen=True, gc=False):
    """A call as an item."""

    form: Form
    item: NormalizedItem


class Returned(msgspec.Struct, frozen=True, gc=False):
    """A result as an item, with what the person said who refused the call."""

    item: NormalizedItem
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
_CALL_INTERRUPTED = b'"interrupted":'
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
            return Called(Form.PATCH, NormalizedItem("custom_tool_call", None, _custom(block.id, "apply_patch", patch)))
        if name in _SEARCHES or name in _FETCHES:
            return Called(
                Form.OTHER, NormalizedItem("web_search_call", None, _web_call(block.id, _web.decode(block.input)))
            )
    except _UNREADABLE:
        pass  # the call stays what it is
    if name == _QUESTION:
        return Called(Form.QUESTION, NormalizedItem("function_call", None, _function(block, "request_user_input")))
    form = Form.SHELL if name in _SHELLS else Form.OTHER
    return Called(form, NormalizedItem("function_call", None, _function(block, name)))


def read_result(block: Block, record: Record, form: Form | None) -> Returned:
    """The item that holds a result, with the exit status that its text tells. `form` is None if the call is unknown."""
    kind = "custom_tool_call_output" if form is Form.PATCH else "function_call_output"
    told = bytes(record.tool_use_result)
    denied = record.tool_denial_kind
    refused = told == _REFUSED or (denied is not None and str(denied).startswith("user"))
    failed = bool(block.is_error) or refused
    text = _text(bytes(block.content))
    if form is Form.QUESTION and not failed and (answers := _answers(record)) is not None:
        return Returned(NormalizedItem(kind, None, _output(kind, block, _encode(answers.decode()))), "")
    if form is Form.SHELL or (form is None and told.startswith(b'{"stdout":')):
        # What the client tells stands behind the output; looking from the end spares reading that once more.
        told = told[max(told.rfind(_CALL_INTERRUPTED), 0) :]
        interrupted = told.startswith(_CALL_INTERRUPTED + b"true")
        code, start = _exit(text, told, failed=failed or interrupted)
        if code is not None:
            header = b'"Exit code: %d\\nOutput:\\n' % code
            return Returned(NormalizedItem(kind, None, _output(kind, block, header, memoryview(text)[start:])), "")
        failed = failed or interrupted
    success = b"null" if text.startswith(_BACKGROUND) else b"false" if failed else b"true"
    head = text[:_HEADER_BYTES]
    opening = b'{"content":"Output:\\n' if any(mark in head for mark in _LIKE_A_HEADER) else b'{"content":"'
    raw = _output(kind, block, opening, memoryview(text)[1:], b',"success":', success, b"}")
    return Returned(NormalizedItem(kind, None, raw), _reason(text) if refused else "")


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


# --- Sessions

# Calls whose result may still come; a client has a handful at a time.
_PENDING_CALLS = 1000
# Prompts typed while the assistant worked, of which the client may write a second record.
_QUEUED_PROMPTS = 8
# Blocks that are known and hold nothing for memory.
_PASSED_OVER = frozenset(
    {"thinking", "redacted_thinking", "web_search_tool_result", "web_fetch_tool_result", "fallback"}
)
_CALLS = frozenset({"tool_use", "server_tool_use"})
_DATA = frozenset({"image", "document"})
_SAID_BY_ASSISTANT = b'{"type":"message","role":"assistant","content":[{"type":"output_text","text":%b}]}'


class Records:
    """Decodes the lines of one file, in their order, and counts into `stats`. Nothing that a line holds raises.

    Prompts that were taken back and records that an earlier session holds are known by their ids. In the file
    `of_agent` the prompts are another agent's.
    """

    def __init__(
        self,
        stats: ReadStats,
        *,
        of_agent: bool = False,
        past: Past = NOTHING,
        reading: Reading = READING,
    ) -> None:
        self.stats = stats
        self._of_agent = of_agent
        self._superseded = past.superseded
        self._seen = set(past.inherited)
        self._max_seen = len(past.inherited) + reading.remembered_records
        self._forms: dict[str, Form] = {}
        self._queued: deque[str] = deque(maxlen=_QUEUED_PROMPTS)

    def items(self, lines: list[bytes], line_no: int) -> Iterator[Item]:
        """The items of `lines`, of which the first has the number `line_no`."""
        made: list[NormalizedItem] = []
        places: list[tuple[Any, int]] = []
        for number, line in enumerate(lines, line_no):
            if (record := self._record(line)) is not None and (read := self._read(record)):
                made += read
                places += [(record.timestamp, number)] * len(read)
        for item, (time, number) in zip(self._finished(made), places, strict=True):
            if item is not None:
                at = parse_timestamp(time.encode()) if isinstance(time, str) else None
                yield Item(item.type, item.role, item.raw, at, number)

    def joined(self, lines: list[bytes]) -> bytes:
        """The same items, but only their `raw`, with commas between."""
        made: list[NormalizedItem] = []
        for line in lines:
            if (record := self._record(line)) is not None:
                made += self._read(record)
        return b",".join([item.raw for item in self._finished(made) if item is not None])

    def may_matter(self, beginning: bytes) -> bool:
        """False only if the first bytes of a line say that it holds nothing for memory."""
        return not is_passed_over(beginning)

    def _record(self, line: bytes) -> Record | None:
        """The record that a line holds, if memory may keep something of it and it was not here before."""
        if is_passed_over(line):
            if line[-2:] != b"}\n" and not line.rstrip().endswith(b"}"):
                self._count_bad()
            return None
        if not line or line.isspace():
            return None
        record = parse_record(line)
        if record is None:
            self._count_bad()
        elif isinstance(record.uuid, str) and not self._is_new(record.uuid):
            self.stats.drop("seen before")
            return None
        return record

    def _read(self, record: Record) -> list[NormalizedItem]:
        """What is said and done in a record."""
        try:
            match record.type:
                case "assistant" | "user" if record.is_sidechain and not self._of_agent:
                    # Older clients write the talk with a sub-agent into the session's own file.
                    self.stats.drop("sub-agent")
                case "assistant":
                    return self._answer(record)
                case "user":
                    return self._user(record)
                case "attachment":
                    return self._attached(record)
                case "system":
                    if record.subtype not in SYSTEM:
                        self.stats.count_unknown(f"system/{record.subtype}")
                case kind:
                    if kind not in BOOKKEEPING:
                        self.stats.count_unknown(str(kind))
        except TypeError:  # a list where a name should be: it has no hash
            self._count_bad()
        return []

    # --- assistant

    def _answer(self, record: Record) -> list[NormalizedItem]:
        message = record.message
        if message is None or record.is_api_error_message or message.model == "<synthetic>":
            self.stats.drop("written by the client")
            return []
        if isinstance(message.content, str):
            return [_said_by_assistant(_encode(message.content))] if message.content.strip() else []
        made: list[NormalizedItem] = []
        for block in message.content:
            if block.type == "text":
                raw = bytes(block.text)
                if raw.startswith(b'"') and (len(raw) > 100 or text_of(block.text).strip()):
                    made.append(_said_by_assistant(raw))
            elif block.type in _CALLS:
                if (call := self._call(block, record)) is not None:
                    made.append(call)
            elif block.type not in _PASSED_OVER:
                self.stats.count_unknown(f"assistant/{block.type}")
        return made

    def _call(self, block: Block, record: Record) -> NormalizedItem | None:
        if not isinstance(block.id, str) or not self._is_new(f"call {block.id}"):
            self.stats.drop("seen before")
            return None
        called = read_call(block, record)
        self._forms[block.id] = called.form
        if len(self._forms) > _PENDING_CALLS:
            del self._forms[next(iter(self._forms))]
        return called.item

    # --- user

    def _user(self, record: Record) -> list[NormalizedItem]:
        content = record.message.content if record.message is not None else ""
        if isinstance(content, list) and "tool_result" in [block.type for block in content]:
            made: list[NormalizedItem] = []
            for block in content:
                if block.type == "tool_result":
                    made += self._result(block, record)
                else:
                    self.stats.drop("beside a result")
            return made
        if record.is_compact_summary:
            self.stats.drop("compaction summary")
        elif record.is_meta:
            self.stats.drop("written by the client")
        else:
            return self._prompt(record, content)
        return []

    def _prompt(self, record: Record, content: list[Block] | str) -> list[NormalizedItem]:
        said = list(spoken(content))
        parts = [words.text for words in said if self._is_kept(words, record)]
        made = [said_by_agent(words.text) for words in said if self._is_of_agent(words)]
        if not parts:
            if not made:
                self.stats.drop("nothing said")
            return made
        if parts[0] in self._queued:
            self._queued.remove(parts[0])
            self.stats.drop("seen before")
            return made
        if hash(record.uuid) in self._superseded:
            parts = [superseded_text(*parts)]
            self.stats.superseded += 1
        images = [] if isinstance(content, str) else [block for block in content if block.type in _DATA]
        self.stats.images += len(images)
        return [*made, said_by_user(*parts, *(size_note(block) for block in images))]

    def _result(self, block: Block, record: Record) -> list[NormalizedItem]:
        called = block.tool_use_id
        if not isinstance(called, str) or not self._is_new(f"result {called}"):
            self.stats.drop("seen before")
            return []
        result = read_result(block, record, self._forms.pop(called, None))
        made = [result.item]
        if result.refusal:
            made.append(said_by_agent(result.refusal) if self._of_agent else said_by_user(result.refusal))
        return made

    def _attached(self, record: Record) -> list[NormalizedItem]:
        """A prompt that was typed while the assistant worked is kept beside the talk."""
        attachment = record.attachment
        kind = attachment.type if attachment is not None else None
        made: list[NormalizedItem] = []
        if attachment is None or kind != QUEUED:
            if kind not in ATTACHMENTS:
                self.stats.count_unknown(f"attachment/{kind}")
        elif record.is_sidechain and not self._of_agent:
            self.stats.drop("sub-agent")
        else:
            for words in spoken(attachment.prompt):
                if self._is_of_agent(words):
                    made.append(said_by_agent(words.text))
                elif self._is_kept(words, record):
                    self._queued.append(words.text)
                    made.append(said_by_user(words.text))
        return made

    # --- both

    def _is_of_agent(self, words: Words) -> bool:
        """In a sub-agent's file what would be a person's words is the task that another agent gave."""
        return words.who == "agent" or (words.who == "user" and self._of_agent)

    def _is_kept(self, words: Words, record: Record) -> bool:
        return not self._is_of_agent(words) and (words.who == "harness" or is_typed(record))

    def _finished(self, made: list[NormalizedItem]) -> Sequence[NormalizedItem | None]:
        """In valid UTF-8, without the memory that was shown to the session, and without inline images; None where
        nothing is left."""
        finished: list[NormalizedItem | None] = [*made]
        joined = b",".join([item.raw for item in made])  # what is rare is looked for in all of them at once
        if is_marked(joined) or valid_utf8(joined) is not joined:
            finished = [self._cleaned(item) for item in made]
        kinds = [item.type for item in finished if item is not None]
        self.stats.kept += len(kinds)
        self.stats.messages += sum(map(kinds.count, MESSAGES))
        return finished

    def _cleaned(self, item: NormalizedItem) -> NormalizedItem | None:
        raw = valid_utf8(item.raw)
        if not is_marked(raw):
            return NormalizedItem(item.type, item.role, raw)
        try:
            cleaned, images = clean(raw, user=item.role == "user")
        except (msgspec.DecodeError, RecursionError):
            self._count_bad()
            return None
        self.stats.images += images
        return NormalizedItem(item.type, item.role, cleaned) if cleaned is not None else None

    def _is_new(self, key: str) -> bool:
        number = hash(key)
        seen = self._seen
        if number in seen:
            return False
        if len(seen) < self._max_seen:
            seen.add(number)
        return True

    def _count_bad(self) -> None:
        if not self.stats.torn:
            self.stats.bad_lines += 1


def spoken(content: list[Block] | str) -> Iterator[Words]:
    """What is said in the content of a prompt, and by whom."""
    for text in [content] if isinstance(content, str) else [text_of(block.text) for block in content]:
        if text and (words := read_words(text)) is not None:
            yield words


def _said_by_assistant(text: bytes) -> NormalizedItem:
    return NormalizedItem("message", "assistant", _SAID_BY_ASSISTANT % text)
