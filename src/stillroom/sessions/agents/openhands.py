"""Find OpenHands' threads: a folder each, with a file for every event."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.conversation import NOTHING, ConversationDecoder, Past, number_of, text_of
from stillroom.sessions.discovery import Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.documents import fields
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.jsonl import open_stored
from stillroom.sessions.metadata import preview_of, read_small
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
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, stream_chunks
from stillroom.sessions.timestamps import parse_local_time
from stillroom.sessions.tree import Tree
from stillroom.thread import FileStamp, Thread

# --- OpenHands' tool calls and how they ended.

# Other tools call what they are asked to do a command, too.
_SHELLS = frozenset({"TerminalAction", "ExecuteBashAction"})
# The exit code of a command that still runs.
_RUNNING = -1
_arguments = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Text(msgspec.Struct):
    """A part of a content, of any type."""

    type: Any = None
    text: Any = None


class Action(msgspec.Struct):
    """What a call asks for; which fields there are depends on `kind`."""

    kind: Any = None
    command: Any = None
    path: Any = None
    file_path: Any = None
    file_text: Any = None
    content: Any = None
    old_str: Any = None
    new_str: Any = None
    old_string: Any = None
    new_string: Any = None
    patch: Any = None
    url: Any = None
    message: Any = None


class ToolCall(msgspec.Struct):
    """The call as the model wrote it."""

    arguments: Any = None


class _Metadata(msgspec.Struct):
    exit_code: Any = None


class Observation(msgspec.Struct):
    """How a call ended."""

    kind: Any = None
    content: list[Text] | str = []
    is_error: Any = None
    exit_code: Any = None
    metadata: _Metadata | None = None


def joined(parts: list[Text] | str, *, by: str = "\n") -> str:
    """The text of a content."""
    return parts if isinstance(parts, str) else by.join(filter(None, (text_of(part.text) for part in parts)))


def read_call(tool: str, action: Action, call: ToolCall, *, call_id: str, cwd: str | None) -> NormalizedItem:
    """The item that asks for what the client was asked for."""
    path = text_of(action.path) or text_of(action.file_path)
    written = action.file_text if action.command == "create" else action.content
    old = action.old_str if isinstance(action.old_str, str) else action.old_string
    new = action.new_str if isinstance(action.new_str, str) else action.new_string
    if isinstance(action.patch, str):
        return patch_call(action.patch, call_id)
    if path and isinstance(written, str):
        return patch_call(add_patch(path, written, cwd=cwd), call_id)
    if path and isinstance(new if action.command == "insert" else old, str):
        return patch_call(update_patch(path, [(text_of(old), text_of(new))], cwd=cwd), call_id)
    if isinstance(action.url, str):
        return web_call(call_id, query=None, url=action.url)
    given = text_of(call.arguments).encode("utf-8", "replace")
    if text_of(action.kind) in _SHELLS or not isinstance(action.command, str):
        return function_call(tool, given, call_id)
    return function_call(f"{tool}.{action.command}", _without_command(given), call_id)


def read_result(call: NormalizedItem | None, seen: Observation, *, call_id: str) -> NormalizedItem:
    """How the call ended: by the exit code of a command, and only without one by what the client calls it."""
    text = joined(seen.content)
    code = number_of(seen.exit_code)
    if code is None and seen.metadata is not None:
        code = number_of(seen.metadata.exit_code)
    if code == _RUNNING:
        return output(call, call_id, text, ok=None)
    if code is not None:
        return output(call, call_id, text, exit_code=code, ok=code == 0)
    return output(call, call_id, text, ok=seen.is_error is not True)


def _without_command(arguments: bytes) -> bytes:
    try:
        given = _arguments.decode(arguments)
    except UNREADABLE:
        return arguments
    given.pop("command", None)
    return msgspec.json.encode(given)


# --- An OpenHands conversation on disk: a folder with `base_state.json`, and one file of JSON an event.

STATE = "base_state.json"
_NAME = re.compile(r"event-(\d{5,18})-([0-9a-fA-F-]{8,80})\.json", re.ASCII)
# What is looked for stands in the first fields of an event.
_HEAD_BYTES = 1024
_TIME = re.compile(rb'"timestamp"\s*:\s*"([\d:.T+Z-]{10,40})"')
_PARENT = re.compile(rb'"parent_id"\s*:\s*"([\w-]{1,100})"')
_OF_USER = re.compile(rb'"source"\s*:\s*"user"')
#: The parent of an event that begins anew.
_ROOT = "__root__"
_MAX_FIELD_BYTES = 64 * 1024


class Event(NamedTuple):
    """A file. They are ordered by their numbers."""

    number: int
    event_id: str
    path: Path

    def time_ms(self) -> int | None:
        """When it happened. The client writes the local time, without a zone."""
        match = _TIME.search(read_small(self.path, max_bytes=_HEAD_BYTES))
        return parse_local_time(match[1].decode()) if match else None


class _Workspace(msgspec.Struct):
    working_dir: Any = None


class State(msgspec.Struct):
    """What is used of a conversation's state."""

    id: Any = None
    workspace: _Workspace = msgspec.field(default_factory=_Workspace)
    #: Where the talk stands: its user may have gone back. Older versions have none.
    leaf_event_id: Any = None
    head_is_empty: Any = None


def read_state(path: Path) -> State:
    """The state at `path`; one that can't be read tells nothing. Raises `OSError` or `RolloutError`."""
    with open_stored(path) as file:
        found = fields(file, State.__struct_fields__, max_bytes=_MAX_FIELD_BYTES)
    try:
        return msgspec.json.decode(msgspec.json.encode(found), type=State)
    except UNREADABLE:
        return State()


def events_of(state: Path) -> list[Event]:
    """The events of the conversation whose state is at `state`. Raises `OSError`."""
    folder = state.with_name("events")
    if not folder.is_dir():
        return []
    names = (match for path in folder.iterdir() if (match := _NAME.fullmatch(path.name)))
    return sorted(Event(int(match[1]), match[2], folder / match[0]) for match in names)


def lines(events: Sequence[Event], *, reading: Reading = READING) -> Generator[bytes, None, None]:
    """Each event as a line, in pieces. Raises `OSError`."""
    for event in events:
        try:
            with open_stored(event.path, reading=reading) as file:
                while piece := file.read(reading.chunk_bytes):
                    # In JSON a newline can only stand between two tokens.
                    yield piece.replace(b"\n", b" ")
        except (FileNotFoundError, RolloutError):  # gone since it was listed, or no file
            continue
        yield b"\n"


def superseded(events: Sequence[Event], state: State, *, reading: Reading = READING) -> frozenset[int]:
    """The ids of the prompts that were left behind, as hashes. Raises `OSError`."""
    if not isinstance(state.leaf_event_id, str) and state.head_is_empty is not True:
        return frozenset()
    tree = Tree(max_records=reading.remembered_records)
    tree.add(_ROOT, None, is_prompt=False)
    before = _ROOT
    for event in events:
        head = read_small(event.path, max_bytes=_HEAD_BYTES)
        parent = match[1].decode() if (match := _PARENT.search(head)) else before
        tree.add(event.event_id, parent, is_prompt=_OF_USER.search(head) is not None)
        before = event.event_id
    leaf = state.leaf_event_id if isinstance(state.leaf_event_id, str) else _ROOT
    tree.add("", leaf, is_prompt=False)
    return tree.left()


def inherited(state: Path, events: Sequence[Event]) -> frozenset[int]:
    """The ids of the events that an earlier conversation beside this one holds too, as hashes: a fork copies them.

    Of two that begin alike the earlier one is that whose first file was written first. Raises `OSError`.
    """
    if not events:
        return frozenset()
    first = events[0].path
    own = (first.stat().st_mtime_ns, first)
    taken: set[int] = set()
    for other in state.parent.parent.glob(f"*/events/{first.name}"):
        if (other.stat().st_mtime_ns, other) < own:
            taken |= {hash(event.event_id) for event in events_of(other.parents[1] / STATE)}
    return frozenset(taken)


# --- OpenHands' events as the items that memory keeps. The client says of each event where it comes from.

_SUMMARIES = frozenset({"Condensation", "CondensationRequest", "CondensationSummaryEvent"})
_PASSED_OVER_NAMES = """
    SystemPromptEvent ConversationStateUpdateEvent ConversationErrorEvent HookExecutionEvent LLMCompletionLogEvent
    StreamingDeltaEvent TokenEvent
"""
_PASSED_OVER = frozenset(_PASSED_OVER_NAMES.split())
# Words and thoughts that the client has tools for.
_SAYING = frozenset({"FinishAction", "FinishObservation"})
_THINKING = frozenset({"ThinkAction", "ThinkObservation"})
# What the client writes where a person gives no reason.
_NO_REASON = "User rejected the action"


class _Message(msgspec.Struct):
    role: Any = None
    content: list[Text] | str = []


class _Event(msgspec.Struct):
    id: Any = None
    timestamp: Any = None
    source: Any = None
    kind: Any = None
    sender: Any = None
    llm_message: _Message | None = None
    thought: list[Text] = []
    action: Action | None = None
    tool_name: Any = None
    tool_call_id: Any = None
    tool_call: ToolCall = msgspec.field(default_factory=ToolCall)
    observation: Observation | None = None
    error: Any = None
    rejection_reason: Any = None
    rejection_source: Any = None


_event = msgspec.json.Decoder(_Event)


class Records(ConversationDecoder):
    """Decodes the events of a conversation. All of them are known by their ids."""

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of an event."""
        event = _event.decode(line)
        if isinstance(event.id, str) and not self.is_new(event.id):
            return None, ()
        return parse_local_time(text_of(event.timestamp)), self._made(event)

    def _made(self, event: _Event) -> Iterator[NormalizedItem]:
        call_id = text_of(event.tool_call_id)
        match text_of(event.kind):
            case "MessageEvent":
                yield from self._message(event, event.llm_message or _Message())
            case "ActionEvent":
                yield from self._action(event, event.action or Action(), call_id)
            case "ObservationEvent":
                seen = event.observation or Observation()
                if text_of(seen.kind) not in _SAYING | _THINKING:
                    yield read_result(self.call_of(call_id), seen, call_id=call_id)
            case "AgentErrorEvent":
                yield output(self.call_of(call_id), call_id, text_of(event.error), ok=False)
            case "UserRejectObservation":
                yield from self._rejected(event, call_id)
            case "PauseEvent" | "InterruptEvent":
                yield stopped_by_user()
            case kind if kind in _SUMMARIES:
                self.stats.drop("compaction summary")
            case kind if kind in _PASSED_OVER:
                self.stats.drop("written by the client")
            case kind:
                self.stats.count_unknown(kind)

    def _message(self, event: _Event, message: _Message) -> Iterator[NormalizedItem]:
        text = joined(message.content)
        if not isinstance(message.content, str):
            self.stats.images += sum(part.type == "image" for part in message.content)
        if not text.strip():
            self.stats.drop("nothing said")
        elif event.source == "agent":
            yield said_by_assistant(text)
        elif event.source != "user":
            self.stats.drop("written by the client")
        elif event.sender is not None:
            yield said_by_agent(text)
        else:
            yield from self.prompt(text_of(event.id), text)

    def _action(self, event: _Event, action: Action, call_id: str) -> Iterator[NormalizedItem]:
        if (thought := joined(event.thought)).strip():
            yield said_by_assistant(thought)
        kind = text_of(action.kind)
        if kind in _SAYING:
            if (words := text_of(action.message)).strip():
                yield said_by_assistant(words)
        elif kind not in _THINKING and call_id and self.is_new(f"call {call_id}"):
            call = read_call(text_of(event.tool_name), action, event.tool_call, call_id=call_id, cwd=self.cwd)
            yield self.called(call_id, call)

    def _rejected(self, event: _Event, call_id: str) -> Iterator[NormalizedItem]:
        """A reason is a person's word; a hook's is not."""
        reason = text_of(event.rejection_reason)
        yield output(self.call_of(call_id), call_id, f"Action rejected: {reason}", ok=False)
        if event.rejection_source != "hook" and not reason.startswith(_NO_REASON) and reason.strip():
            yield said_by_agent(reason) if self.of_agent else said_by_user(reason)


# --- Sessions

AGENT = "openhands"
COPIES = True
_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
#: A conversation, a folder of conversations, or the client's own folder.
_PLACES = (STATE, f"*/{STATE}", f"conversations/*/{STATE}")
_SUB_AGENTS = "subagents"
# Sub-agents of sub-agents; links may go in circles.
_MAX_DEPTH = 8


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every conversation under `root`, oldest first. Its state is written after each event."""
    root = root.absolute()
    found = [root] if root.is_file() else [path for place in _PLACES for path in root.glob(place)]
    yield from scan(
        (each for path in found for each in _with_agents(path)),
        known,
        lambda file: _look(file, max_line_bytes, reading),
    )


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open the conversation whose state is at `path`. Raises `RolloutError` if it can't be opened.

    What the one that it was forked from holds too is left out, and what its user left behind is marked; with
    `stop_after_bytes` neither is looked for.
    """
    try:
        return _open(path, read_state(path), max_line_bytes, stop_after_bytes, reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error


def _open(
    path: Path, state: State, max_line_bytes: int, stop_after_bytes: int | None, reading: Reading
) -> ItemStream[Records]:
    events = events_of(path)
    whole = stop_after_bytes is None
    records = Records(
        ReadStats(),
        cwd=text_of(state.workspace.working_dir) or None,
        of_agent=_parent(path) is not None,
        past=Past(superseded(events, state, reading=reading), inherited(path, events)) if whole else NOTHING,
        reading=reading,
    )
    return stream_chunks(
        lines(events, reading=reading),
        path,
        records,
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _with_agents(path: Path, depth: int = 0) -> Iterator[Path]:
    yield path
    if depth < _MAX_DEPTH:
        for other in path.parent.glob(f"{_SUB_AGENTS}/*/{STATE}"):
            yield from _with_agents(other, depth + 1)


def _parent(path: Path) -> Path | None:
    """The state of the conversation that started this one."""
    folder = path.parent.parent
    return folder.with_name(STATE) if folder.name == _SUB_AGENTS else None


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    state = read_state(path)
    events = events_of(path)
    if not events:
        raise RolloutError(f"`{path}` can't be used: it has no events")
    with _open(path, state, max_line_bytes, reading.long_head_bytes, reading) as items:
        preview = preview_of(items, reading=reading)
    modified = file.mtime_ns // 1_000_000
    created = events[0].time_ms() or modified
    parent = _parent(path)
    thread = Thread(
        thread_id=_id(path, state),
        agent=AGENT,
        rollout_path=str(path),
        source=msgspec.json.encode({"subagent": "other"}).decode() if parent is not None else "cli",
        cwd=text_of(state.workspace.working_dir),
        created_at_ms=created,
        updated_at_ms=max(events[-1].time_ms() or modified, created),
        preview=preview,
        parent_thread_id=_id(parent, read_state(parent)) if parent is not None else None,
    )
    return Found(thread, file.stamp(0))


def _id(path: Path, state: State) -> str:
    """The folder is named by the id too, without dashes."""
    given = text_of(state.id)
    return given if _ID.fullmatch(given) else path.parent.name
