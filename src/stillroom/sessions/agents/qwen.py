"""Find Qwen Code's threads: one file a session, one a sub-agent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.conversation import (
    NOTHING,
    UNREADABLE,
    ConversationDecoder,
    lines_of,
    number_of,
    past_of,
    text_of,
    time_of,
)
from stillroom.sessions.discovery import Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.google_parts import Part, read_call, read_result
from stillroom.sessions.jsonl import open_stored
from stillroom.sessions.metadata import Times, read_description, read_head, read_tail
from stillroom.sessions.normalize import NormalizedItem, said_by_agent, said_by_assistant
from stillroom.sessions.scaffolding import finding_of, is_notification, without_blocks
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_stream
from stillroom.sessions.tree import Tree
from stillroom.thread import FileStamp, Thread

# --- Qwen Code's lines as the items that memory keeps. The client says of each line who wrote it.

_SCAFFOLDING = r"qwen:[a-z-]{1,60}-context|system-reminder"
# The client's bookkeeping: nothing in it was said or done.
_SYSTEM_NAMES = """
    at_command attribution_snapshot branch_checkpoint chat_compression custom_title file_history_snapshot rewind
    session_model session_source slash_command ui_telemetry
"""
_SYSTEM = frozenset(_SYSTEM_NAMES.split())
_GOALS = "goal_"
#: A prompt of a person: all that is typed has no subtype, or this one.
_TYPED = (None, "mid_turn_user_message")
_PASSED_OVER = b'"type":"system","provenance":"system"'


class Message(msgspec.Struct):
    """What Google's API calls a content."""

    parts: list[Part] = []


class _Display(msgspec.Struct, rename="camel"):
    exit_code: Any = None


class _Result(msgspec.Struct, rename="camel"):
    status: Any = None
    result_display: msgspec.Raw = msgspec.Raw(b"null")


class Line(msgspec.Struct, rename="camel"):
    """A line."""

    uuid: Any = None
    parent_uuid: Any = None
    timestamp: Any = None
    type: Any = None
    subtype: Any = None
    provenance: Any = None
    cwd: Any = None
    is_sidechain: Any = None
    message: Message | None = None
    tool_call_result: _Result | None = None


line_of = msgspec.json.Decoder(Line).decode


class Records(ConversationDecoder):
    """Decodes the lines of one file. All of them are known by their ids."""

    def may_matter(self, beginning: bytes) -> bool:
        """False of the client's own records: their type stands in the first bytes."""
        return _PASSED_OVER not in beginning[:600]

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a line."""
        read = line_of(line)
        if isinstance(read.uuid, str) and not self.is_new(read.uuid):
            return None, ()
        return time_of(read.timestamp), self._made(read)

    def _made(self, line: Line) -> Iterator[NormalizedItem]:
        match line.type:
            case "user":
                yield from self._user(line)
            case "assistant":
                yield from self._answer(line)
            case "tool_result":
                yield from self._results(line)
            case "system":
                if text_of(line.subtype) not in _SYSTEM and not text_of(line.subtype).startswith(_GOALS):
                    self.stats.count_unknown(f"system/{line.subtype}")
            case kind:
                self.stats.count_unknown(str(kind))

    def _user(self, line: Line) -> Iterator[NormalizedItem]:
        words = words_of(line)
        joined = "\n".join(words)
        if is_notification(joined):
            yield from map(said_by_agent, filter(None, [finding_of(joined)]))
        elif not is_typed(line):
            self.stats.drop("written by the client")
        elif not words:
            self.stats.drop("nothing said")
        else:
            yield from self.prompt(text_of(line.uuid), *words)
        self.stats.images += sum(part.inline_data is not None for part in _parts(line))

    def _answer(self, line: Line) -> Iterator[NormalizedItem]:
        for part in _parts(line):
            text = text_of(part.text)
            if part.function_call is not None:
                call_id = text_of(part.function_call.id)
                if call_id and self.is_new(f"call {call_id}"):
                    call = read_call(part.function_call, call_id=call_id, cwd=text_of(line.cwd) or None)
                    yield self.called(call_id, call)
            elif text.strip() and not part.thought:
                yield said_by_assistant(text)

    def _results(self, line: Line) -> Iterator[NormalizedItem]:
        told = line.tool_call_result or _Result()
        for part in _parts(line):
            if (returned := part.function_response) is None:
                continue
            call_id = text_of(returned.id)
            if call_id and self.is_new(f"result {call_id}"):
                yield read_result(
                    self.call_of(call_id),
                    returned,
                    call_id=call_id,
                    failed=told.status not in (None, "success"),
                    exit_code=_exit_code(told),
                )


def is_typed(line: Line) -> bool:
    """Whether a user's line is a person's, or, in a sub-agent's file, another agent's."""
    return line.subtype in _TYPED and line.provenance in (None, "real_user")


def words_of(line: Line) -> list[str]:
    """What is said in a user's line, without what hooks put beside it."""
    texts = (without_blocks(text_of(part.text), _SCAFFOLDING) for part in _parts(line))
    return [text for text in texts if text.strip()]


def _parts(line: Line) -> list[Part]:
    return line.message.parts if line.message is not None else []


def _exit_code(told: _Result) -> int | None:
    try:
        return number_of(msgspec.json.decode(told.result_display, type=_Display).exit_code)
    except msgspec.DecodeError:
        return None


# --- What a Qwen Code session took over from another one, and which prompts its user went back behind.

_UUID = re.compile(rb'\{"uuid": ?"([\w-]{1,80})"')
_BRANCH_SESSION = re.compile(rb'"sessionId": ?"([\w-]{1,80})"')
# Both stand in the first fields of the first line.
_HEAD_BYTES = 4096


def superseded(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The ids of the prompts that were left behind, as hashes. Raises `OSError` or `RolloutError`."""
    tree = Tree(max_records=reading.remembered_records)
    for line in lines_of(path, max_line_bytes=max_line_bytes, reading=reading):
        try:
            read = line_of(line)
        except UNREADABLE:
            continue
        if isinstance(read.uuid, str):
            parent = read.parent_uuid if isinstance(read.parent_uuid, str) else None
            is_prompt = read.type == "user" and is_typed(read) and bool(words_of(read))
            tree.add(read.uuid, parent, is_prompt=is_prompt)
    return tree.left()


def inherited(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The ids of the lines that an earlier session of the folder holds too, as hashes: a fork begins with them.

    Its first lines may still name the session that they come from. Where they don't, a file of which all stands in
    the other is the earlier one. Raises `OSError` or `RolloutError`.
    """
    first, origin = _beginning(path)
    if not first:
        return frozenset()
    own: frozenset[int] | None = None
    taken: set[int] = set()
    for other in path.parent.glob("*.jsonl"):
        if other == path or _beginning(other)[0] != first:
            continue
        own = own if own is not None else _uuids(path, max_line_bytes, reading)
        theirs = _uuids(other, max_line_bytes, reading)
        # Of two equal files the one that comes first by its name keeps what both hold.
        if other.stem == origin or theirs < own or (theirs == own and other.name < path.name):
            taken |= theirs
    return frozenset(taken)


def _beginning(path: Path) -> tuple[bytes, str]:
    """The id of the first line, and of the session that it names; both "" where there is none."""
    try:
        with open_stored(path) as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, RolloutError):
        return b"", ""
    match, session = _UUID.match(head), _BRANCH_SESSION.search(head)
    return match[1] if match else b"", session[1].decode() if session else ""


def _uuids(path: Path, max_line_bytes: int, reading: Reading) -> frozenset[int]:
    found = (
        match for line in lines_of(path, max_line_bytes=max_line_bytes, reading=reading) if (match := _UUID.match(line))
    )
    return frozenset(hash(match[1].decode()) for match in islice(found, reading.remembered_records))


# --- Sessions

AGENT = "qwen-code"
COPIES = True
_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")
_SUB_AGENT = re.compile(r"agent-[\w-]{1,160}\.jsonl", re.ASCII)


class _Payload(msgspec.Struct, rename="camel"):
    custom_title: Any = None
    title: Any = None


class _Line(msgspec.Struct, rename="camel"):
    uuid: Any = None
    session_id: Any = None
    timestamp: Any = None
    cwd: Any = None
    git_branch: Any = None
    version: Any = None
    subtype: Any = None
    system_payload: msgspec.Raw = msgspec.Raw(b"null")


class _Described(msgspec.Struct, rename="camel"):
    agent_type: Any = None
    description: Any = None
    parent_session_id: Any = None


_line = msgspec.json.Decoder(_Line)


@dataclass(slots=True)
class _Traits(Times):
    """What the lines at both ends tell."""

    some: bool = False
    cwd: str = ""
    branch: str = ""
    version: str = ""
    title: str = ""

    def learn(self, line: bytes) -> None:
        try:
            told = _line.decode(line)
        except UNREADABLE:
            return
        self.some = self.some or isinstance(told.uuid, str)
        self.cwd = self.cwd or text_of(told.cwd)
        self.branch = text_of(told.git_branch) or self.branch
        self.version = text_of(told.version) or self.version
        self.saw(time_of(told.timestamp))
        if told.subtype == "custom_title":
            try:
                payload = msgspec.json.decode(told.system_payload, type=_Payload)
            except UNREADABLE:
                return
            self.title = text_of(payload.custom_title) or text_of(payload.title) or self.title


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session and sub-agent under `home`, oldest first."""
    yield from scan(_files(home.absolute()), known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session or a sub-agent's file. Raises `RolloutError` if it can't be opened.

    What an earlier session holds too is left out, and what its user left behind is marked; with `stop_after_bytes`
    neither is looked for.
    """
    of_agent = _is_sub_agent(path)
    past = NOTHING
    if stop_after_bytes is None and not of_agent:
        past = past_of(path, superseded, inherited, max_line_bytes=max_line_bytes, reading=reading)
    records = Records(ReadStats(), of_agent=of_agent, past=past, reading=reading)
    return open_stream(path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


def _files(home: Path) -> Iterator[Path]:
    if home.is_file():
        yield home
    yield from (path for path in home.glob("projects/*/chats/*.jsonl") if _SESSION.fullmatch(path.name))
    yield from (path for path in home.glob("projects/*/subagents/*/*.jsonl") if _is_sub_agent(path))


def _is_sub_agent(path: Path) -> bool:
    return _SUB_AGENT.fullmatch(path.name) is not None


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    is_agent = _is_sub_agent(path)
    traits = _Traits()
    records = Records(ReadStats(), of_agent=is_agent, reading=reading)
    preview = read_head(path, records, traits.learn, max_line_bytes=max_line_bytes, reading=reading)
    offset = read_tail(path, traits.learn, size=file.size, telling=(b"custom_title",), reading=reading)
    if not traits.some:
        raise RolloutError(f"`{path}` can't be used: it has no complete record")
    described = read_description(path.with_suffix(".meta.json"), _Described) if is_agent else _Described()
    parent = (text_of(described.parent_session_id) or path.parent.name) if is_agent else None
    agent = {"subagent": text_of(described.agent_type) or "other"}
    span = traits.span(file)
    thread = Thread(
        thread_id=f"{parent}:{path.stem}" if is_agent else path.stem,
        agent=AGENT,
        rollout_path=str(path),
        source=msgspec.json.encode(agent).decode() if is_agent else "cli",
        cwd=traits.cwd,
        created_at_ms=span.began,
        updated_at_ms=span.went_on,
        title=preview_text(text_of(described.description) or traits.title, max_chars=reading.preview_chars),
        preview=preview,
        parent_thread_id=parent,
        git_branch=traits.branch or None,
        cli_version=traits.version or None,
    )
    return Found(thread, file.stamp(offset))
