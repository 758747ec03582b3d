"""Find LangGraph's threads, rows of a database of checkpoints, and files of LangChain's messages.

The `rollout_path` of a thread in a database is the database's with the thread's name as a fragment; that of a graph
inside of a graph has the graph's name behind it. Such a graph is a sub-agent of the thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zlib import crc32

import msgspec

from stillroom.config import READING, Reading
from stillroom.sessions.conversation import LineDecoder, text_of
from stillroom.sessions.discovery import Discovery, File, Found
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.lists import open_list, scan_lists
from stillroom.sessions.metadata import preview_of
from stillroom.sessions.names import place_of, thread_id
from stillroom.sessions.normalize import (
    NormalizedItem,
    function_call,
    said_by_agent,
    said_by_assistant,
    said_by_user,
    taken_back,
)
from stillroom.sessions.programs import content_of, prompt_of, returned
from stillroom.sessions.sqlite_source import Row, as_os_error, columns, databases, is_database, opened, scan_rows
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, enclosed, stream_chunks
from stillroom.sessions.timestamps import parse_timestamp
from stillroom.thread import FileStamp, Thread

# --- LangGraph's checkpoints in SQLite: each holds the whole state of a thread, with all of its messages so far.
#
# Most checkpoints repeat what the next one has. Read are those of which something is missing later: the last one, the
# last of each branch that a program went back from, and those whose messages a summary took the place of.

_COLUMNS = {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint"}
# By the index of the primary key.
_SESSIONS = """
    SELECT thread_id, checkpoint_ns, count(*), min(checkpoint_id), max(checkpoint_id) FROM checkpoints
    GROUP BY thread_id, checkpoint_ns
"""
_CHECKPOINTS = """
    SELECT rowid, checkpoint_id, parent_checkpoint_id FROM checkpoints
    WHERE thread_id = ? AND checkpoint_ns = ? AND type = 'msgpack' AND typeof(checkpoint) IN ('text', 'blob')
    ORDER BY checkpoint_id DESC LIMIT ?
"""
# Pickles, and the JSON of the first versions.
_OTHER_TYPES = """
    SELECT DISTINCT type FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ? AND type <> 'msgpack'
"""
# What a thread has at most: a checkpoint is written a step. And those that are read in full, beside the last one.
_MAX_CHECKPOINTS = 20_000
_MAX_READ = 64
# The first message is looked at in each of them.
_MAX_FIRST_BYTES = 64 * 1024
# The state of a longer one is not held.
_MAX_CHECKPOINT_BYTES = 64 * 1024 * 1024
# Between the thread's name and that of a graph inside of the graph.
_INSIDE = "\x1f"
# Objects are stored as extensions `[module, class, fields, …]`: of Pydantic, 1 and 2.
_OBJECTS = frozenset({4, 5})
#: Nothing is ever made of an object but its fields, and only of these.
ALLOWED_MODULES = ("langchain_core.messages.", "langchain.schema.messages")
_CLASSES = """
    AIMessage AIMessageChunk ChatMessage ChatMessageChunk FunctionMessage FunctionMessageChunk HumanMessage
    HumanMessageChunk RemoveMessage SystemMessage SystemMessageChunk ToolMessage ToolMessageChunk
"""
ALLOWED_CLASSES = frozenset(_CLASSES.split())
_FIELDS = ("type", "role", "content", "id", "name", "tool_calls", "tool_call_id", "status", "additional_kwargs")
# UUIDs count 100 ns from the calendar's reform.
_REFORM = datetime(1582, 10, 15, tzinfo=UTC)
_EPOCH_TICKS = -int(_REFORM.timestamp()) * 10_000_000
_object = msgspec.msgpack.Decoder(tuple[str, str, dict[Any, Any], str], ext_hook=lambda code, data: None)
_short_object = msgspec.msgpack.Decoder(tuple[str, str, dict[Any, Any]], ext_hook=lambda code, data: None)
# What stands inside is decoded one by one, if at all.
_map = msgspec.msgpack.Decoder(dict[Any, msgspec.Raw])
_list = msgspec.msgpack.Decoder(list[msgspec.Raw])
_extension = msgspec.msgpack.Decoder(msgspec.msgpack.Ext)


class Stored(msgspec.Struct):
    """What is known of a message beside what stands in it."""

    #: For one without an id: where it stands.
    number: int
    #: It stands on a branch that the program went back from.
    left: bool = False
    #: Bytes of a message that is too long to be read.
    cut: int = 0


class _Checkpoint(NamedTuple):
    rowid: int
    name: str
    parent: str
    messages: int
    #: The id of the first message: another one took its place where the beginning was summed up.
    first: str


def sessions(path: Path) -> list[Row] | None:
    """Every thread, and graph inside of one, as it looks now; None if there is no table of checkpoints.

    Raises `sqlite3.Error` or `OSError`.
    """
    with opened(path) as db:
        if not columns(db, "checkpoints") >= _COLUMNS:
            return None
        return [_session_row(*values) for values in db.execute(_SESSIONS)]


def inside_of(session: str) -> tuple[str, str]:
    """The thread's own name, and that of the graph inside of it; "" for the thread itself."""
    thread, _, namespace = session.partition(_INSIDE)
    return thread, namespace


def lines(path: Path, session: str, *, max_line_bytes: int, reading: Reading = READING) -> Generator[bytes, None, None]:
    """The lines of a thread, in pieces. Raises `OSError` where the database can't be read."""
    try:
        with opened(path) as db:
            for (kind,) in db.execute(_OTHER_TYPES, inside_of(session)):
                unread = {"type": f"checkpoint/{_text(kind)}"}
                yield from enclosed("item", [_encoded(unread)], Stored(number=0))
            rows = db.execute(_CHECKPOINTS, (*inside_of(session), _MAX_CHECKPOINTS)).fetchall()
            chosen, alive = _chosen([_checkpoint(db, *row) for row in reversed(rows)])
            kept: set[int] = set()
            if not all(each.name in alive for each in chosen):
                for each in chosen:
                    if each.name in alive:
                        kept |= {hash(_key(item)) for item, _ in _messages(db, each.rowid, max_line_bytes)}
            for each in chosen:
                for number, (item, cut) in enumerate(_messages(db, each.rowid, max_line_bytes)):
                    left = each.name not in alive and item is not None and hash(_key(item)) not in kept
                    yield from enclosed("item", [_encoded(item)], Stored(number=number, left=left, cut=cut))
    except sqlite3.Error as error:
        raise as_os_error(error) from error


def _chosen(checkpoints: list[_Checkpoint]) -> tuple[list[_Checkpoint], set[str]]:
    """Those to be read, in their order, and the names of those that the last one follows."""
    parents = {each.name: each.parent for each in checkpoints}
    followed: dict[tuple[str, str], int] = {}
    for each in checkpoints:
        place = each.parent, each.first
        followed[place] = max(followed.get(place, 0), each.messages)
    alive: set[str] = set()
    name = checkpoints[-1].name if checkpoints else ""
    while name and name not in alive:
        alive.add(name)
        name = parents.get(name, "")
    chosen = [each for each in checkpoints if followed.get((each.name, each.first), 0) < each.messages]
    return chosen[-_MAX_READ:], alive


def _checkpoint(db: sqlite3.Connection, rowid: int, name: object, parent: object) -> _Checkpoint:
    lists = _lists(_state(db, rowid))
    first = bytes(lists[0][0]) if lists else b""
    key = _key(_message(first)) if len(first) <= _MAX_FIRST_BYTES else ""
    return _Checkpoint(rowid, _text(name), _text(parent), sum(map(len, lists)), key)


def _messages(db: sqlite3.Connection, rowid: int, max_line_bytes: int) -> Iterator[tuple[dict[str, Any] | None, int]]:
    """Each message of a checkpoint; None for one that can't be read, with its bytes if it is too long."""
    state = _state(db, rowid)
    if isinstance(state, int):
        yield None, state
        return
    for each in _lists(state):
        for message in each:
            data = bytes(message)
            yield (None, len(data)) if len(data) > max_line_bytes else (_message(data), 0)


def _state(db: sqlite3.Connection, rowid: int) -> bytes | int:
    """The state that a checkpoint holds; of one that is too long only how long it is."""
    with db.blobopen("checkpoints", "checkpoint", rowid, readonly=True) as blob:
        return blob.read() if len(blob) <= _MAX_CHECKPOINT_BYTES else len(blob)


def _lists(state: bytes | int) -> list[list[msgspec.Raw]]:
    """The messages in a state: those of the channel `messages`, else of all channels. None of a damaged one."""
    found: dict[Any, list[msgspec.Raw]] = {}
    try:
        channels = _map.decode(_map.decode(state)["channel_values"]) if isinstance(state, bytes) else {}
    except (KeyError, *UNREADABLE):
        return []
    for channel, value in channels.items():
        try:
            messages = _list.decode(value)
            if messages and _extension.decode(messages[0]).code in _OBJECTS:
                found[channel] = messages
        except UNREADABLE:
            continue
    return [found["messages"]] if "messages" in found else list(found.values())


def _message(data: bytes) -> dict[str, Any] | None:
    try:
        value = msgspec.msgpack.decode(data, ext_hook=_fields_of)
    except UNREADABLE:
        return None
    return value if isinstance(value, dict) else None


def _fields_of(code: int, data: memoryview) -> object:
    """The fields of a message; None for any other object."""
    if code not in _OBJECTS:
        return None
    try:
        module, name, fields, _ = _object.decode(data)
    except UNREADABLE:
        module, name, fields = _short_object.decode(data)
    if name not in ALLOWED_CLASSES or not module.startswith(ALLOWED_MODULES):
        return {"type": f"{module}.{name}"}
    return {key: fields[key] for key in _FIELDS if key in fields}


def _encoded(item: dict[str, Any] | None) -> bytes:
    try:
        return msgspec.json.encode(item)
    except (TypeError, ValueError, RecursionError):
        return b"null"


def _key(item: dict[str, Any] | None) -> str:
    name = item.get("id") if item is not None else None
    return name if isinstance(name, str) else ""


def _session_row(thread: object, namespace: object, count: int, first: object, last: object) -> Row:
    inside = _text(namespace)
    name = f"{_text(thread)}{_INSIDE}{inside}" if inside else _text(thread)
    created, updated = _ticks(_text(first)), _ticks(_text(last))
    stamp = FileStamp(size=-count, mtime_ns=(updated or 0) * 100, offset=crc32(_text(last).encode("utf-8", "replace")))
    return Row(name, stamp, *(ticks and ticks // 10_000 for ticks in (created, updated)))


def _ticks(checkpoint_id: str) -> int | None:
    """When a checkpoint was written, in units of 100 ns: its id is a time-ordered UUID, in old versions a time."""
    try:
        uuid = UUID(checkpoint_id)
    except ValueError:
        at = parse_timestamp(checkpoint_id.encode("utf-8", "replace"))
        return at * 10_000 if at is not None else None
    number = uuid.int
    ticks = ((number >> 80) << 12 | ((number >> 64) & 0x0FFF)) - _EPOCH_TICKS
    return ticks if uuid.version == 6 and ticks > 0 else None


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)


# --- LangChain's messages, in each form in which they are stored, as the items that memory keeps.

# By `type`, or by `role` of messages that are plain objects.
_WHO = {
    **dict.fromkeys(("human", "HumanMessage", "HumanMessageChunk", "user"), "user"),
    **dict.fromkeys(("ai", "AIMessage", "AIMessageChunk", "assistant"), "assistant"),
    **dict.fromkeys(("tool", "function", "ToolMessage", "FunctionMessage", "ToolMessageChunk"), "tool"),
    **dict.fromkeys(("system", "developer", "SystemMessage", "SystemMessageChunk"), "system"),
    **dict.fromkeys(("remove", "RemoveMessage"), "remove"),
}
# How LangChain's summarizing middleware marks its message, and how that began before it did.
_SUMMARY = ("lc_source", "summarization")
_SUMMARY_WORDS = "Here is a summary of the conversation to date:"


class _Line(msgspec.Struct):
    """All forms: a checkpoint's message; `messages_to_dict`; `dumps`; a plain object."""

    item: dict[str, Any] | None = None
    message: Stored | None = None
    data: dict[str, Any] | None = None
    kwargs: dict[str, Any] | None = None
    id: Any = None
    type: Any = None
    role: Any = None
    content: Any = None
    name: Any = None
    tool_calls: Any = None
    tool_call_id: Any = None
    status: Any = None


_line = msgspec.json.Decoder(_Line)


class Records(LineDecoder):
    """Decodes the lines of one thread. In a graph `of_agent` the prompts are another agent's."""

    def __init__(self, stats: ReadStats, *, of_agent: bool = False, reading: Reading = READING) -> None:
        super().__init__(stats, reading=reading)
        self._of_agent = of_agent
        #: Messages that were understood.
        self.understood = 0

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a message."""
        read = _line.decode(line)
        stored = read.message or Stored(number=0)
        if stored.cut:
            self.stats.long_lines += 1
            self.stats.cut_bytes += stored.cut
            return None, ()
        fields = _fields(read)
        name = text_of(fields.get("id"))
        if read.message is not None and read.item is None:
            self.stats.bad_lines += 1
        elif (not name and read.message is None) or self.is_new(name or f"{stored.number} {hash(line)}"):
            return None, self._made(fields, left=stored.left)
        return None, ()

    def _made(self, fields: dict[str, Any], *, left: bool) -> Iterator[NormalizedItem]:
        kind = text_of(fields.get("type"))
        who = _WHO.get(kind if kind != "chat" else text_of(fields.get("role"))) or _WHO.get(text_of(fields.get("role")))
        self.understood += who is not None
        if who == "user":
            yield from self._prompt(fields, left=left)
        elif who == "assistant":
            yield from map(said_by_assistant, content_of(fields.get("content")).texts)
            yield from self._asked(fields.get("tool_calls"))
        elif who == "tool":
            call_id = text_of(fields.get("tool_call_id"))
            if not call_id or self.is_new(f"result {call_id}"):
                ok = {"error": False, "success": True}.get(text_of(fields.get("status")))
                yield returned(self.call_of(call_id), call_id, fields.get("content"), ok=ok)
        elif who == "system":
            self.stats.drop("instructions")
        elif who is None:
            self.stats.count_unknown(f"message/{kind}")

    def _prompt(self, fields: dict[str, Any], *, left: bool) -> Iterator[NormalizedItem]:
        content = content_of(fields.get("content"))
        self.stats.images += content.images
        words = prompt_of(content)
        if _is_summary(fields, words):
            self.stats.drop("compaction summary")
        elif not words:
            self.stats.drop("nothing said")
        elif self._of_agent or text_of(fields.get("name")):
            # Graphs of several agents pass on what one says as a prompt under its name.
            yield said_by_agent("\n".join(words))
        elif left:
            self.stats.superseded += 1
            yield taken_back(*words)
        else:
            yield said_by_user(*words)

    def _asked(self, calls: Any) -> Iterator[NormalizedItem]:
        for call in calls if isinstance(calls, list) else ():
            if not isinstance(call, dict):
                continue
            call_id, given = text_of(call.get("id")), call
            if isinstance(call.get("function"), dict):  # as OpenAI has it
                given = call["function"]
            arguments = given.get("args", given.get("arguments"))
            raw = arguments.encode() if isinstance(arguments, str) else msgspec.json.encode(arguments)
            if not call_id or self.is_new(f"call {call_id}"):
                yield self.called(call_id, function_call(text_of(given.get("name")), raw, call_id))


def _fields(line: _Line) -> dict[str, Any]:
    if line.kwargs is not None and isinstance(line.id, list) and line.id:
        return {"type": line.id[-1], **line.kwargs}
    if line.data is not None:
        return {**line.data, "type": line.type}
    return line.item if line.item is not None else msgspec.structs.asdict(line)


def _is_summary(fields: dict[str, Any], words: list[str]) -> bool:
    told = fields.get("additional_kwargs")
    name, value = _SUMMARY
    if isinstance(told, dict) and told.get(name) == value:
        return True
    return bool(words) and words[0].startswith(_SUMMARY_WORDS)


# --- Sessions

AGENT = "langchain"
COPIES = False


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every thread in the database or file `root`, or in those under that folder."""
    root = root.absolute()

    def look(path: Path, row: Row) -> Thread:
        return _row(path, row, max_line_bytes, reading)

    if not root.is_file() or is_database(root):
        for path in databases(root):
            yield from scan_rows(path, known, sessions, look)
    if not is_database(root):
        yield from scan_lists(
            root, known, lambda file: _file(file, max_line_bytes, reading), lacking="no message of LangChain's"
        )


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a thread. What stands on a branch that the program went back from is marked."""
    place, session = place_of(path)
    if not session or not is_database(place):
        return open_list(
            path,
            Records(ReadStats(), reading=reading),
            max_line_bytes=max_line_bytes,
            stop_after_bytes=stop_after_bytes,
            reading=reading,
        )
    return stream_chunks(
        lines(place, session, max_line_bytes=max_line_bytes, reading=reading),
        path,
        Records(ReadStats(), of_agent=bool(inside_of(session)[1]), reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _row(path: Path, row: Row, max_line_bytes: int, reading: Reading) -> Thread:
    place, session = place_of(path)
    thread, graph = inside_of(session)
    parent = thread_id(place, thread) if graph else None
    preview = "" if graph else _begun(path, max_line_bytes, reading)[0]
    agent = {"subagent": graph.partition(":")[0]}
    updated = row.updated_ms or 0
    return Thread(
        thread_id=thread_id(place, session),
        agent=AGENT,
        rollout_path=str(path),
        # Else of whoever it is: a person named this database as a source.
        source=msgspec.json.encode(agent).decode() if graph else "cli",
        cwd="",
        created_at_ms=row.created_ms or updated,
        updated_at_ms=updated,
        title=graph or thread,
        preview=preview,
        parent_thread_id=parent,
    )


def _file(file: File, max_line_bytes: int, reading: Reading) -> Found | None:
    path = file.path
    preview, understood = _begun(path, max_line_bytes, reading)
    if not understood:
        return None
    at = file.mtime_ns // 1_000_000  # messages have no times
    thread = Thread(
        thread_id=thread_id(path, path.stem),
        agent=AGENT,
        rollout_path=str(path),
        source="cli",
        cwd="",
        created_at_ms=at,
        updated_at_ms=at,
        title=path.stem,
        preview=preview,
    )
    return Found(thread, file.stamp(file.size))


def _begun(path: Path, max_line_bytes: int, reading: Reading) -> tuple[str, int]:
    """The first words of the user, and how many messages were understood down to there."""
    with open_items(
        path, max_line_bytes=max_line_bytes, stop_after_bytes=reading.long_head_bytes, reading=reading
    ) as items:
        return preview_of(items, reading=reading), items.decoder.understood
