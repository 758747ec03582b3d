"""LangGraph's checkpoints in SQLite: each holds the whole state of a thread, with all of its messages so far.

Most checkpoints repeat what the next one has. Read are those of which something is missing later: the last one, the
last of each branch that a program went back from, and those whose messages a summary took the place of.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zlib import crc32

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.chunks import enclosed
from stillroom.rollouts.agents.langchain.msgpack import MalformedError, Walker
from stillroom.rollouts.agents.rows import Row
from stillroom.rollouts.agents.sqlite import as_os_error, columns, opened
from stillroom.rollouts.item import UNREADABLE
from stillroom.rollouts.timestamps import parse_timestamp
from stillroom.thread import FileStamp

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
        return [_row(*values) for values in db.execute(_SESSIONS)]


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
    messages, first = 0, ""
    with db.blobopen("checkpoints", "checkpoint", rowid, readonly=True) as blob:
        walker = Walker(blob)
        try:
            places = _lists(walker)
            messages = sum(size for _, size in places)
            for place, _ in places[:1]:
                walker.go(place)
                first = _key(_message(walker.value(_MAX_FIRST_BYTES)))
        except MalformedError:
            pass
    return _Checkpoint(rowid, _text(name), _text(parent), messages, first)


def _messages(db: sqlite3.Connection, rowid: int, max_line_bytes: int) -> Iterator[tuple[dict[str, Any] | None, int]]:
    """Each message of a checkpoint; None for one that can't be read, with its bytes if it is too long."""
    with db.blobopen("checkpoints", "checkpoint", rowid, readonly=True) as blob:
        walker = Walker(blob)
        try:
            for place, size in _lists(walker):
                walker.go(place)
                for _ in range(size):
                    start = walker.at
                    data = walker.value(max_line_bytes)
                    yield _message(data), 0 if data else walker.at - start
        except MalformedError:
            yield None, 0


def _lists(walker: Walker) -> list[tuple[int, int]]:
    """Where the messages begin, and how many there are: those of the channel `messages`, else of all channels."""
    found: dict[str, tuple[int, int]] = {}
    for key in walker.names():
        if key != "channel_values":
            walker.skip()
            continue
        for channel in walker.names():
            start = walker.at
            head = walker.head()
            if head.kind == "list" and head.size:
                place = walker.at
                first = walker.head()
                if first.kind == "extension" and first.code in _OBJECTS:
                    found[channel] = (place, head.size)
            walker.go(start)
            walker.skip()
        break
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


def _row(thread: object, namespace: object, count: int, first: object, last: object) -> Row:
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
