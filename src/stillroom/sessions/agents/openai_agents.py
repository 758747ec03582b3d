"""Find the sessions of programs built with the OpenAI Agents SDK: rows of a database that the program chose.

The `rollout_path` is the database's path with the session's name as a fragment: `…/app.db#user-1`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.sessions.conversation import LineDecoder, number_of, text_of
from stillroom.sessions.discovery import Discovery
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.metadata import preview_of
from stillroom.sessions.names import place_of, thread_id
from stillroom.sessions.normalize import (
    NormalizedItem,
    function_call,
    output,
    patch_call,
    said_by_assistant,
    said_by_user,
    taken_back,
    web_call,
)
from stillroom.sessions.programs import content_of, prompt_of, returned
from stillroom.sessions.sqlite_source import Row, as_os_error, columns, databases, opened, pieces, quoted, scan_rows
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, enclosed, stream_chunks
from stillroom.sessions.timestamps import parse_timestamp
from stillroom.thread import FileStamp, Thread

# --- Calls of the Responses API that have a form of their own, as Codex would have recorded them.

Fields = dict[str, Any]
_PATCHES = {"create_file": "Add", "update_file": "Update", "delete_file": "Delete"}


def _local_shell(item: Fields, call_id: str) -> Iterator[NormalizedItem]:
    action = _fields(item, "action")
    given = {"command": action.get("command"), "workdir": action.get("working_directory")}
    yield function_call("shell", msgspec.json.encode(given), call_id)


def _shell(item: Fields, call_id: str) -> Iterator[NormalizedItem]:
    commands = _fields(item, "action").get("commands")
    given = {"command": "\n".join(map(text_of, commands)) if isinstance(commands, list) else ""}
    yield function_call("shell", msgspec.json.encode(given), call_id)


def _patch(item: Fields, call_id: str) -> Iterator[NormalizedItem]:
    operation = _fields(item, "operation")
    verb, path = _PATCHES.get(text_of(operation.get("type"))), text_of(operation.get("path"))
    if verb is None or not path or "\n" in path:
        yield function_call("apply_patch", msgspec.json.encode(operation), call_id)
        return
    body = [] if verb == "Delete" else [text_of(operation.get("diff"))]
    yield patch_call("\n".join(["*** Begin Patch", f"*** {verb} File: {path}", *body, "*** End Patch"]), call_id)


def _web(item: Fields, call_id: str) -> Iterator[NormalizedItem]:
    action = _fields(item, "action")
    yield web_call(call_id, query=text_of(action.get("query")) or None, url=text_of(action.get("url")) or None)


def _files(item: Fields, call_id: str) -> Iterator[NormalizedItem]:
    yield function_call("file_search", msgspec.json.encode({"queries": item.get("queries")}), call_id)


def _code(item: Fields, call_id: str) -> Iterator[NormalizedItem]:
    yield (call := function_call("code_interpreter", msgspec.json.encode({"code": item.get("code")}), call_id))
    outputs: list[Any] = item["outputs"] if isinstance(item.get("outputs"), list) else []
    logs = "\n".join(text_of(each.get("logs")) for each in outputs if isinstance(each, dict))
    yield output(call, call_id, logs, ok=False if item.get("status") == "failed" else None)


def _mcp(item: Fields, call_id: str) -> Iterator[NormalizedItem]:
    name = f"mcp__{text_of(item.get('server_label'))}__{text_of(item.get('name'))}"
    yield (call := function_call(name, text_of(item.get("arguments")).encode("utf-8", "replace"), call_id))
    error = item.get("error")
    yield output(call, call_id, text_of(item.get("output")) or text_of(error), ok=error is None)


def _computer(item: Fields, call_id: str) -> Iterator[NormalizedItem]:
    yield function_call("computer", msgspec.json.encode(item.get("action")), call_id)


def _custom(item: Fields, call_id: str) -> Iterator[NormalizedItem]:
    yield function_call(text_of(item.get("name")), msgspec.json.encode(item.get("input")), call_id)


CALLS: dict[str, Callable[[Fields, str], Iterator[NormalizedItem]]] = {
    "local_shell_call": _local_shell,
    "shell_call": _shell,
    "apply_patch_call": _patch,
    "web_search_call": _web,
    "file_search_call": _files,
    "code_interpreter_call": _code,
    "mcp_call": _mcp,
    "computer_call": _computer,
    "custom_tool_call": _custom,
}
"""By the type of the item; some come with their result."""


def shell_output(call: NormalizedItem | None, call_id: str, results: list[Any]) -> NormalizedItem:
    """How the commands of a `shell_call` ended: with the code of the first that failed."""
    texts: list[str] = []
    codes: list[int | None] = []
    for each in results:
        if isinstance(each, dict):
            texts += filter(None, (text_of(each.get("stdout")), text_of(each.get("stderr"))))
            codes.append(number_of(_fields(each, "outcome").get("exit_code")))
    code = next((code for code in codes if code != 0), 0 if codes else None)
    return output(call, call_id, "\n".join(texts) or "\n".join(content_of(results).texts), exit_code=code, ok=False)


def _fields(item: Fields, name: str) -> Fields:
    value = item.get(name)
    return value if isinstance(value, dict) else {}


# --- The tables of the OpenAI Agents SDK's sessions, whatever they are called: one row a Responses item.

# What `SQLiteSession` and `SQLAlchemySession` call the columns; only the tables can be renamed.
_TABLES = """
    SELECT own.name FROM sqlite_master AS own, pragma_table_info(own.name) AS field
    WHERE own.type = 'table' AND field.name IN ('id', 'session_id', 'message_data', 'created_at')
    GROUP BY own.name HAVING count(*) = 4 ORDER BY own.name
"""
# What `AdvancedSQLiteSession` has beside them.
_STRUCTURE = "message_structure"
_BRANCHES = {"session_id", "message_id", "branch_id"}
# The first two by the index that the SDK makes; times of two rows a session.
_SESSIONS = """
    SELECT own.session_id, own.count, own.last, first.created_at, last.created_at
    FROM (
        SELECT session_id, count(*) AS count, min(rowid) AS first, max(rowid) AS last FROM {table}
        GROUP BY session_id
    ) AS own
    JOIN {table} AS first ON first.rowid = own.first
    JOIN {table} AS last ON last.rowid = own.last
"""
_ROWS = """
    SELECT rowid, created_at FROM {table}
    WHERE session_id = ? AND typeof(message_data) IN ('text', 'blob') ORDER BY rowid
"""
# A branch takes over the messages ahead of its beginning, by their ids. The one that was written to last is alive.
_LEFT = """
    SELECT message_id FROM message_structure WHERE session_id = :id
    EXCEPT SELECT message_id FROM message_structure WHERE session_id = :id AND branch_id = (
        SELECT branch_id FROM message_structure WHERE session_id = :id ORDER BY message_id DESC, rowid DESC LIMIT 1
    )
"""


class Stored(msgspec.Struct):
    """What the database knows of an item beside what stands in it."""

    at: int | None = None
    #: It stands on a branch that the program left.
    left: bool = False


def sessions(path: Path) -> list[Row] | None:
    """Every session as it looks now; None if there is no table of them. Raises `sqlite3.Error` or `OSError`."""
    found: dict[str, Row] = {}
    with opened(path) as db:
        tables = _tables(db)
        for table in tables:
            for name, count, last, first_at, last_at in db.execute(_SESSIONS.format(table=quoted(table))):
                row = _row(_text(name), count, last, _time(first_at), _time(last_at))
                found[row.session] = _joined(found[row.session], row) if row.session in found else row
    return list(found.values()) if tables else None


def lines(path: Path, session: str, *, reading: Reading = READING) -> Generator[bytes, None, None]:
    """The lines of a session, in pieces. Raises `OSError` where the database can't be read."""
    try:
        with opened(path) as db:
            left = _left(db, session)
            for table in _tables(db):
                for rowid, at in db.execute(_ROWS.format(table=quoted(table)), (session,)):
                    data = pieces(db, table, "message_data", rowid, reading.chunk_bytes)
                    yield from enclosed("item", data, Stored(at=_time(at), left=rowid in left))
    except sqlite3.Error as error:
        raise as_os_error(error) from error


def _tables(db: sqlite3.Connection) -> list[str]:
    return [_text(name) for (name,) in db.execute(_TABLES)]


def _left(db: sqlite3.Connection, session: str) -> Set[int]:
    """Rows of branches that the program went back from."""
    if not columns(db, _STRUCTURE) >= _BRANCHES:
        return frozenset()
    return {row for (row,) in db.execute(_LEFT, {"id": session})}


def _row(name: str, count: int, last: int, first_at: int | None, last_at: int | None) -> Row:
    # Numbers of rows are never used twice: a row that was taken away and written anew shows, too.
    stamp = FileStamp(size=-count, mtime_ns=(last_at or 0) * 1_000_000, offset=last)
    return Row(name, stamp, first_at, last_at)


def _joined(one: Row, other: Row) -> Row:
    """Of a session with rows in two tables."""
    created = [at for at in (one.created_ms, other.created_ms) if at is not None]
    updated = [at for at in (one.updated_ms, other.updated_ms) if at is not None]
    stamp = FileStamp(
        size=one.stamp.size + other.stamp.size,
        mtime_ns=max(one.stamp.mtime_ns, other.stamp.mtime_ns),
        offset=one.stamp.offset + other.stamp.offset,
    )
    return Row(one.session, stamp, min(created, default=None), max(updated, default=None))


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _time(value: object) -> int | None:
    return parse_timestamp(value) if isinstance(value, bytes) else None


# --- Responses items, which the SDK stores as the model was given them, as the items that memory keeps.

# Known, and nothing for memory.
_PASSED_OVER_NAMES = """
    reasoning image_generation_call mcp_list_tools mcp_approval_request mcp_approval_response item_reference compaction
    compaction_summary tool_search_call tool_search_output additional_tools program program_output
"""
_PASSED_OVER = frozenset(_PASSED_OVER_NAMES.split())
_ENDS = "_output"
# The SDK's for models that give none.
_NO_ID = "__fake_id__"
# How the SDK answers for a tool that raised.
_RAISED = "An error occurred while running the tool."
# A handoff can pack the talk so far into one message, in either role.
_PACKED = "<CONVERSATION HISTORY>"
_PACKED_CHARS = 400


class _Line(msgspec.Struct):
    item: dict[str, Any]
    message: Stored


_line = msgspec.json.Decoder(_Line)


class Records(LineDecoder):
    """Decodes the lines that `database.lines` writes."""

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a row."""
        read = _line.decode(line)
        item_id = text_of(read.item.get("id"))
        if item_id and item_id != _NO_ID and not self.is_new(f"item {item_id}"):
            return None, ()
        return read.message.at, self._made(read.item, left=read.message.left)

    def _made(self, item: Fields, *, left: bool) -> Iterator[NormalizedItem]:
        kind = text_of(item.get("type")) or "message"
        call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
        if kind == "message":
            yield from self._message(item, left=left)
        elif kind in _PASSED_OVER:
            return
        elif kind == "function_call" or kind in CALLS:
            if not call_id or self.is_new(f"call {call_id}"):
                for made in self._call(kind, item, call_id):
                    yield made if made.type.endswith(_ENDS) else self.called(call_id, made)
        elif kind.endswith(_ENDS) and "output" in item:
            if not call_id or self.is_new(f"result {call_id}"):
                yield self._result(item, call_id)
        else:
            self.stats.count_unknown(kind)

    def _message(self, item: Fields, *, left: bool) -> Iterator[NormalizedItem]:
        role, content = item.get("role"), content_of(item.get("content"))
        if any(_PACKED in text[:_PACKED_CHARS] for text in content.texts):
            self.stats.drop("compaction summary")
        elif role == "user":
            self.stats.images += content.images
            words = prompt_of(content)
            if not words:
                self.stats.drop("nothing said")
            elif left:
                self.stats.superseded += 1
                yield taken_back(*words)
            else:
                yield said_by_user(*words)
        elif role == "assistant":
            yield from map(said_by_assistant, content.texts)
        elif role in ("system", "developer"):
            self.stats.drop("instructions")
        else:
            self.stats.count_unknown(f"message/{role}")

    def _call(self, kind: str, item: Fields, call_id: str) -> Iterator[NormalizedItem]:
        if kind in CALLS:
            return CALLS[kind](item, call_id)
        arguments = text_of(item.get("arguments")).encode("utf-8", "replace")
        return iter([function_call(text_of(item.get("name")), arguments, call_id)])

    def _result(self, item: Fields, call_id: str) -> NormalizedItem:
        call, value = self.call_of(call_id), item["output"]
        if item.get("type") == "shell_call_output" and isinstance(value, list):
            return shell_output(call, call_id, value)
        ok = {"failed": False, "incomplete": False}.get(text_of(item.get("status")))
        if item.get("type") == "apply_patch_call_output" and ok is None:
            ok = True
        return returned(call, call_id, value, ok=False if text_of(value).startswith(_RAISED) else ok)


# --- Sessions

AGENT = "openai-agents"
COPIES = False


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session in the database `root`, or in those under that folder."""

    def look(path: Path, row: Row) -> Thread:
        return _thread(path, row, max_line_bytes, reading)

    for path in databases(root.absolute()):
        yield from scan_rows(path, known, sessions, look)


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session. What stands on a branch that the program left is marked."""
    place, session = place_of(path)
    return stream_chunks(
        lines(place, session, reading=reading),
        path,
        Records(ReadStats(), reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _thread(path: Path, row: Row, max_line_bytes: int, reading: Reading) -> Thread:
    place, session = place_of(path)
    with open_items(
        path, max_line_bytes=max_line_bytes, stop_after_bytes=reading.long_head_bytes, reading=reading
    ) as items:
        preview = preview_of(items, reading=reading)
    updated = row.updated_ms or 0
    return Thread(
        thread_id=thread_id(place, session),
        agent=AGENT,
        rollout_path=str(path),
        source="cli",  # of whoever it is: a person named this database as a source
        cwd="",
        created_at_ms=row.created_ms or updated,
        updated_at_ms=updated,
        title=session,
        preview=preview,
    )
