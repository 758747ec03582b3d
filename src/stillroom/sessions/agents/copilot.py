"""Find Copilot CLI's threads: one folder a session, with its events and a few words about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.conversation import UNREADABLE, LineDecoder, number_of, text_of, time_of
from stillroom.sessions.discovery import Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.metadata import Times, lines_with, read_head, read_small, read_tail
from stillroom.sessions.normalize import (
    NormalizedItem,
    add_patch,
    function_call,
    output,
    patch_call,
    said_by_agent,
    said_by_assistant,
    said_by_user,
    stopped_by_user,
    update_patch,
    web_call,
)
from stillroom.sessions.scaffolding import without_blocks
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_stream
from stillroom.thread import FileStamp, Thread

# --- Copilot CLI's tool calls and how they ended.

_SHELLS = frozenset({"bash", "powershell"})
# What the client writes behind a command's output, and behind any output a hook's words.
_SHELL_END = re.compile(r"\n?<shellId: [^\n>]{1,200} completed with exit code -?\d{1,10}>\s*\Z")
_HOOK = re.compile(r"\n\nTool \"[^\"\n]{1,200}\" (?:succeeded|failed)\. Additional guidance from \w{1,60} hooks:\n")


class Request(msgspec.Struct, rename="camel"):
    """A call, in the message that asks for it."""

    tool_call_id: Any = None
    name: Any = None
    arguments: msgspec.Raw = msgspec.Raw(b"{}")
    #: Of tools of an MCP server.
    mcp_server_name: Any = None


class _Result(msgspec.Struct):
    content: Any = None


class _Error(msgspec.Struct):
    message: Any = None


class _Execution(msgspec.Struct, rename="camel"):
    exit_code: Any = None


class Completed(msgspec.Struct, rename="camel"):
    """How a call ended."""

    tool_call_id: Any = None
    success: Any = None
    result: _Result | None = None
    error: _Error | None = None
    shell_execution: _Execution | None = None


class _Arguments(msgspec.Struct):
    path: str | None = None
    file_text: str | None = None
    old_str: str | None = None
    new_str: str = ""
    url: str | None = None
    query: str | None = None


def read_call(request: Request, *, call_id: str, cwd: str | None) -> NormalizedItem:
    """The item that asks for what was asked for; nothing that a model wrote raises."""
    name, given = text_of(request.name), bytes(request.arguments)
    try:
        read = msgspec.json.decode(given, type=_Arguments)
    except UNREADABLE:
        return function_call(name, given, call_id)
    if name == "edit" and read.path and read.old_str is not None:
        return patch_call(update_patch(read.path, [(read.old_str, read.new_str)], cwd=cwd), call_id)
    if name == "create" and read.path and read.file_text is not None:
        return patch_call(add_patch(read.path, read.file_text, cwd=cwd), call_id)
    if name in ("web_fetch", "web_search"):
        return web_call(call_id, query=read.query, url=read.url)
    if text_of(request.mcp_server_name):
        name = f"mcp__{name}"  # so that it is seen that the words come from outside
    return function_call(name, given, call_id)


def read_result(call: NormalizedItem | None, done: Completed, *, call_id: str) -> NormalizedItem:
    """How a call ended: a command by its exit code, although the client calls a failed one a success."""
    text = text_of(done.result.content) if done.result is not None else ""
    if not text and done.error is not None:
        text = text_of(done.error.message)
    hooks = list(_HOOK.finditer(text))
    if hooks:
        text = text[: hooks[-1].start()]
    code = number_of(done.shell_execution.exit_code) if done.shell_execution is not None else None
    if code is not None:
        return output(call, call_id, _SHELL_END.sub("", text), exit_code=code, ok=code == 0)
    return output(call, call_id, text, ok=done.success is True)


# --- Copilot CLI's events as the items that memory keeps.

_SCAFFOLDING = "system_reminder|system-reminder|current_datetime"
# Nothing in these events was said or done, or they repeat what others hold: a call stands in the message that asks for
# it. More events with these beginnings come with every version.
_NOISE_NAMES = """
    session. hook. model. subagent. system. skill. permission. pending_messages. command. elicitation. user_input.
    external_tool. exit_plan_mode. assistant.turn_ assistant.intent assistant.usage assistant.message_delta
    assistant.reasoning tool.execution_start tool.execution_progress tool.execution_partial tool.user_requested
"""
_NOISE = tuple(_NOISE_NAMES.split())
_START = re.compile(rb'\{"type": ?"([\w.]{1,80})"')
_COMPACTED = "session.compaction_complete"


class Data(Completed, rename="camel"):
    """What an event holds, of any type."""

    content: Any = None
    source: Any = None
    attachments: Any = None
    tool_requests: list[Request] = msgspec.field(default_factory=list)
    parent_tool_call_id: Any = None


class Event(msgspec.Struct, rename="camel"):
    """A line."""

    type: Any = None
    id: Any = None
    timestamp: Any = None
    agent_id: Any = None
    data: Data = msgspec.field(default_factory=Data)


class _Head(msgspec.Struct):
    type: Any = None
    id: Any = None
    timestamp: Any = None


_record_event = msgspec.json.Decoder(Event)
_head = msgspec.json.Decoder(_Head)


class Records(LineDecoder):
    """Decodes the lines of one file. What a sub-agent did stands between those of its parent, and is left out."""

    def __init__(self, stats: ReadStats, *, cwd: str | None = None, reading: Reading = READING) -> None:
        super().__init__(stats, reading=reading)
        self._cwd = cwd

    def may_matter(self, beginning: bytes) -> bool:
        """False only if the first bytes of a line say that it holds nothing for memory."""
        start = _START.match(beginning)
        return start is None or not start[1].decode().startswith(_NOISE)

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of an event."""
        if not self.may_matter(line[:100]):
            # The type is enough; that the line is whole is looked at all the same.
            head = _head.decode(line)
            if head.type == _COMPACTED:
                self.stats.drop("compaction summary")
            return None, ()
        event = _record_event.decode(line)
        if isinstance(event.id, str) and not self.is_new(event.id):
            return None, ()
        return time_of(event.timestamp), self._made(event)

    def _made(self, event: Event) -> Iterator[NormalizedItem]:
        kind = text_of(event.type)
        if kind.startswith(_NOISE):
            return
        if event.agent_id is not None or event.data.parent_tool_call_id is not None:
            self.stats.drop("sub-agent")
            return
        match kind:
            case "user.message":
                yield from self._user(event.data)
            case "assistant.message":
                yield from self._answer(event.data)
            case "tool.execution_complete":
                call_id = text_of(event.data.tool_call_id)
                if call_id and self.is_new(f"result {call_id}"):
                    yield read_result(self.call_of(call_id), event.data, call_id=call_id)
            case "abort":
                yield stopped_by_user()
            case _:
                self.stats.count_unknown(kind)

    def _user(self, data: Data) -> Iterator[NormalizedItem]:
        text = without_blocks(text_of(data.content), _SCAFFOLDING)
        attachments = data.attachments if isinstance(data.attachments, list) else []
        self.stats.images += sum(isinstance(each, dict) and each.get("type") == "image" for each in attachments)
        if not text.strip():
            self.stats.drop("nothing said")
        elif text_of(data.source).startswith("agent-"):
            yield said_by_agent(text)
        elif data.source is not None and data.source != "user":
            self.stats.drop("written by the client")
        else:
            yield said_by_user(text)

    def _answer(self, data: Data) -> Iterator[NormalizedItem]:
        if (text := text_of(data.content)).strip():
            yield said_by_assistant(text)
        for request in data.tool_requests:
            call_id = text_of(request.tool_call_id)
            if call_id and self.is_new(f"call {call_id}"):
                yield self.called(call_id, read_call(request, call_id=call_id, cwd=self._cwd))


# --- Sessions

AGENT = "copilot-cli"
COPIES = False
_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
# How the client tells its model that nobody is there to be asked.
_NON_INTERACTIVE = re.compile(r"running in non-interactive mode")
_PROMPT_CHARS = 2000
_NAME = re.compile(r"^name: (.+)$", re.MULTILINE)


class _Context(msgspec.Struct, rename="camel"):
    cwd: Any = None
    branch: Any = None
    head_commit: Any = None
    repository: Any = None


class _Data(msgspec.Struct, rename="camel"):
    session_id: Any = None
    copilot_version: Any = None
    start_time: Any = None
    content: Any = None
    context: _Context = msgspec.field(default_factory=_Context)


class _Event(msgspec.Struct, rename="camel"):
    type: Any = None
    timestamp: Any = None
    agent_id: Any = None
    data: _Data = msgspec.field(default_factory=_Data)


_event = msgspec.json.Decoder(_Event)
# Beside the times of the first and the last event, all that is learned stands in these.
_TELLING = (b'"session.start"', b'"session.resume"', b'"system.message"')


@dataclass(slots=True)
class _Traits(Times):
    """What the events at both ends tell."""

    session_id: str = ""
    version: str = ""
    cwd: str = ""
    branch: str = ""
    commit: str = ""
    #: Whether a turn with and a turn without a person were seen.
    typed: bool = False
    scripted: bool = False

    def learn(self, line: bytes) -> None:
        try:
            told = _event.decode(line)
        except UNREADABLE:
            return
        data = told.data
        self.saw(time_of(told.timestamp))
        if told.type == "session.start":
            self.session_id = self.session_id or text_of(data.session_id)
        if told.type in ("session.start", "session.resume"):
            self.version = text_of(data.copilot_version) or self.version
            self.cwd = self.cwd or text_of(data.context.cwd)
            self.branch = text_of(data.context.branch) or self.branch
            self.commit = text_of(data.context.head_commit) or self.commit
        if told.type == "system.message" and told.agent_id is None:
            alone = _NON_INTERACTIVE.search(text_of(data.content)[:_PROMPT_CHARS]) is not None
            self.scripted, self.typed = self.scripted or alone, self.typed or not alone


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session under `home`, oldest first."""
    yield from scan(_files(home.absolute()), known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session's events. Raises `RolloutError` if they can't be opened."""
    records = Records(ReadStats(), cwd=_cwd(path) or None, reading=reading)
    return open_stream(path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


def _files(home: Path) -> Iterator[Path]:
    if home.is_file():
        yield home
    yield from home.glob("session-state/*/events.jsonl")
    yield from home.glob("session-state/*.jsonl")  # of older versions


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    traits = _Traits()
    records = Records(ReadStats(), reading=reading)
    # What the model is told stands behind the first prompt, where a look for that would end.
    for line in lines_with(_TELLING, read_small(path, max_bytes=reading.tail_window_bytes)):
        traits.learn(line)
    preview = read_head(path, records, traits.learn, max_line_bytes=max_line_bytes, reading=reading)
    offset = read_tail(path, traits.learn, size=file.size, telling=_TELLING, reading=reading)
    if _ID.fullmatch(traits.session_id) is None:
        raise RolloutError(f"`{path}` can't be used: it has no `session.start` event")
    span = traits.span(file)
    thread = Thread(
        thread_id=traits.session_id,
        agent=AGENT,
        rollout_path=str(path),
        source="exec" if traits.scripted and not traits.typed else "cli",
        cwd=traits.cwd,
        created_at_ms=span.began,
        updated_at_ms=span.went_on,
        title=preview_text(_title(path), max_chars=reading.preview_chars),
        preview=preview,
        git_branch=traits.branch or None,
        git_sha=traits.commit or None,
        cli_version=traits.version or None,
    )
    return Found(thread, file.stamp(offset))


def _cwd(path: Path) -> str:
    traits = _Traits()
    for line in read_small(path).splitlines()[:1]:
        traits.learn(line)
    return traits.cwd


def _title(path: Path) -> str:
    """The session's name, as the client or its user chose it."""
    match = _NAME.search(read_small(path.with_name("workspace.yaml")).decode("utf-8", "replace"))
    return match[1].strip().strip("'\"") if match else ""
