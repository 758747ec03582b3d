"""Find Continue's threads: a document each, which the client writes anew with every message."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Set
from functools import cache
from itertools import islice, takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.conversation import UNREADABLE, LineDecoder, text_of
from stillroom.sessions.discovery import Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.documents import cut, elements, fields, lines
from stillroom.sessions.jsonl import open_stored
from stillroom.sessions.metadata import preview_of
from stillroom.sessions.normalize import (
    QUESTION,
    NormalizedItem,
    answers,
    function_call,
    output,
    questions_of,
    said_by_assistant,
    said_by_user,
)
from stillroom.sessions.scaffolding import without_blocks
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, stream_chunks
from stillroom.sessions.tools import calls_shell, read_call, read_result
from stillroom.thread import FileStamp, Thread

# --- Continue's tool calls and how they ended.

# The command line's client throws where a command wrote to its error stream, and tells the code of no other.
_THROWN = re.compile(r"(?:Error executing tool \w{1,80}: )?Error \(exit code (-?\d{1,10})\): ")
# The editor's writes it beside the output.
_FAILED = re.compile(r"Command failed with exit code (-?\d{1,10})")
_COMPLETED = "Command completed"
_ASKING = "AskQuestion"
_ANSWER = re.compile(r'User .{1,80}?: "(.*)"\s*', re.DOTALL)


class Output(msgspec.Struct):
    """A part of what a tool gave back."""

    content: Any = None
    status: Any = None


class Function(msgspec.Struct):
    """What a call asks for."""

    name: Any = None
    arguments: Any = None


class ToolCall(msgspec.Struct):
    """A call as the model wrote it."""

    id: Any = None
    function: Function = msgspec.field(default_factory=Function)


class State(msgspec.Struct, rename="camel"):
    """A call and its result."""

    tool_call_id: Any = None
    tool_call: ToolCall = msgspec.field(default_factory=ToolCall)
    status: Any = None
    output: list[Output] | None = None


class _Question(msgspec.Struct):
    question: str


def call_of(call: ToolCall, *, call_id: str, cwd: str | None) -> NormalizedItem:
    """The item that asks for what the client was asked for."""
    name, given = text_of(call.function.name), text_of(call.function.arguments).encode("utf-8", "replace")
    if name == _ASKING:
        try:
            asked = msgspec.json.decode(given, type=_Question)
        except UNREADABLE:
            return function_call(name, given, call_id)
        return function_call(QUESTION, msgspec.json.encode({"questions": [{"question": asked.question}]}), call_id)
    return read_call(name, given, call_id=call_id, cwd=cwd)


def result_of(call: NormalizedItem, state: State, *, call_id: str) -> NormalizedItem | None:
    """How the call ended; None: it has not. The client calls a command that failed done, if it was silent about it."""
    if state.status not in ("done", "errored", "canceled"):
        return None
    parts = state.output or []
    text = "\n".join(filter(None, (text_of(part.content) for part in parts)))
    failed = state.status != "done"
    if (answered := _ANSWER.fullmatch(text)) and (asked := questions_of(call)):
        return answers(call_id, {asked[0]: answered[1]})
    if not calls_shell(call):
        return read_result(call, text, call_id=call_id, failed=failed)
    if thrown := _THROWN.match(text):
        return output(call, call_id, text[thrown.end() :], exit_code=int(thrown[1]), ok=False)
    told = next(filter(None, (text_of(part.status).strip() for part in parts)), "")
    if exited := _FAILED.match(told):
        return output(call, call_id, text, exit_code=int(exited[1]), ok=False)
    if told == _COMPLETED:
        return output(call, call_id, text, exit_code=0, ok=True)
    return output(call, call_id, text, ok=False if failed else None)


# --- The elements of a Continue session's history as the items that memory keeps. They have neither ids nor times.

_SCAFFOLDING = "system-reminder"
# A tool's message repeats what stands in the state of its call.
_PASSED_OVER = frozenset({"system", "thinking", "tool"})


class _Part(msgspec.Struct):
    type: Any = None
    text: Any = None


class _Message(msgspec.Struct, rename="camel"):
    role: Any = None
    content: list[_Part] | str | None = None
    tool_calls: list[ToolCall] | None = None


class _Element(msgspec.Struct, rename="camel"):
    message: _Message
    tool_call_states: list[State] | None = None
    conversation_summary: Any = None


_element = msgspec.json.Decoder(_Element)


class Records(LineDecoder):
    """Decodes the elements of a history. `inherited` are the hashes of those that it begins with and another session
    holds too."""

    def __init__(
        self, stats: ReadStats, *, cwd: str | None = None, inherited: Set[int] = frozenset(), reading: Reading = READING
    ) -> None:
        super().__init__(stats, reading=reading)
        self._cwd = cwd
        self._inherited = inherited

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of an element."""
        if self._inherited and hash(line.strip()) in self._inherited:
            self.stats.drop("seen before")
            return None, ()
        self._inherited = frozenset()
        return None, self._made(_element.decode(line))

    def _made(self, element: _Element) -> Iterator[NormalizedItem]:
        message = element.message
        texts = _texts(message.content)
        if isinstance(message.content, list):
            self.stats.images += sum(part.type == "imageUrl" for part in message.content)
        match text_of(message.role):
            case "user":
                yield from self._prompt(texts)
            case "assistant":
                yield from self._answer(element, "\n".join(texts))
            case role if role in _PASSED_OVER:
                self.stats.drop("written by the client" if role == "system" else "told elsewhere")
            case role:
                self.stats.count_unknown(role)

    def _prompt(self, texts: list[str]) -> Iterator[NormalizedItem]:
        words = [text for text in (without_blocks(text, _SCAFFOLDING) for text in texts) if text.strip()]
        if words:
            yield said_by_user(*words)
        else:
            self.stats.drop("nothing said")

    def _answer(self, element: _Element, text: str) -> Iterator[NormalizedItem]:
        if text and text == element.conversation_summary:
            self.stats.drop("compaction summary")
        elif text.strip():
            yield said_by_assistant(text)
        states = {text_of(state.tool_call_id): state for state in element.tool_call_states or ()}
        asked = [state.tool_call for state in states.values()] or element.message.tool_calls or []
        for call in asked:
            call_id = text_of(call.id)
            if call_id and self.is_new(call_id):
                made = call_of(call, call_id=call_id, cwd=self._cwd)
                yield made
                if (state := states.get(call_id)) and (result := result_of(made, state, call_id=call_id)):
                    yield result


def _texts(content: list[_Part] | str | None) -> list[str]:
    if isinstance(content, list):
        return [text for part in content if (text := text_of(part.text))]
    return [content] if content else []


# --- Continue's files: a document a session, and the index that tells when each began.

INDEX = "sessions.json"
HISTORY = ("history",)
_MAX_FIELD_BYTES = 64 * 1024
_MAX_ENTRY_BYTES = 64 * 1024
# Of a session of which only the first element is looked at.
_GLANCE = Reading(chunk_bytes=64 * 1024, batch_bytes=64 * 1024)


class Session(msgspec.Struct, rename="camel"):
    """What a session tells of itself."""

    session_id: Any = None
    title: Any = None
    workspace_directory: Any = None

    @property
    def is_of_editor(self) -> bool:
        """An editor names a folder as it names files."""
        return "://" in text_of(self.workspace_directory)[:32]

    @property
    def cwd(self) -> str:
        given = text_of(self.workspace_directory)
        return unquote(urlsplit(given).path) if given.startswith("file://") else given


class _Entry(msgspec.Struct, rename="camel"):
    session_id: Any = None
    date_created: Any = None


_entry = msgspec.json.Decoder(_Entry)


def read_session(path: Path, *, reading: Reading = READING) -> Session:
    """Raises `OSError` or `RolloutError`."""
    with open_stored(path, reading=reading) as file:
        found = fields(file, Session.__struct_encode_fields__, max_bytes=_MAX_FIELD_BYTES, reading=reading)
    try:
        return msgspec.json.decode(msgspec.json.encode(found), type=Session)
    except UNREADABLE:
        return Session()


def read_index(folder: Path) -> dict[str, int]:
    """When each session of a folder began, in milliseconds; empty if the index can't be read."""
    began: dict[str, int] = {}
    try:
        with open_stored(folder / INDEX) as file:
            for line in elements(file, (), max_line_bytes=_MAX_ENTRY_BYTES):
                try:
                    entry = _entry.decode(line)
                    began[text_of(entry.session_id)] = int(str(entry.date_created))
                except (*UNREADABLE, ValueError):
                    continue
    except (OSError, RolloutError):
        pass
    return began


def inherited(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The hashes of the elements that a session begins with and one that began earlier does too: a fork copies them.

    Two sessions may begin with the same prompt. Only one with the same answer is a copy. Raises `OSError` or
    `RolloutError`.
    """
    first = next(_hashes(path, max_line_bytes, _GLANCE), None)
    if first is None:
        return frozenset()
    began = read_index(path.parent)
    taken: list[int] = []
    latest = max(began.values(), default=0) + 1

    def order(file: Path) -> tuple[int, str]:
        """Of two that the index does not tell apart the one that comes first by its name keeps what both hold."""
        return began.get(file.stem, latest), file.name

    others = (other for other in path.parent.glob("*.json") if order(other) < order(path))
    copies = (other for other in others if _first(other, max_line_bytes) == first)
    for other in islice(copies, reading.copies_looked_at):
        both = zip(_hashes(path, max_line_bytes, reading), _hashes(other, max_line_bytes, reading), strict=False)
        common = [own for own, _ in takewhile(lambda pair: pair[0] == pair[1], both)]
        taken = max(taken, common, key=len)
    return frozenset(taken) if len(taken) > 1 else frozenset()


def _first(path: Path, max_line_bytes: int) -> int | None:
    try:
        return next(_hashes(path, max_line_bytes, _GLANCE), None)
    except (OSError, RolloutError):
        return None


def _hashes(path: Path, max_line_bytes: int, reading: Reading) -> Iterator[int]:
    with open_stored(path, reading=reading) as file:
        for line in elements(file, HISTORY, max_line_bytes=max_line_bytes, reading=reading):
            yield hash(line.strip())


# --- Sessions

AGENT = "continue"
COPIES = True
_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
_PLACES = ("sessions/*.json", "*.json")
_UNTITLED = frozenset({"Untitled Session", "New Session"})


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session under the client's home, oldest first; `root` may also be a folder of sessions, or one."""
    began = cache(read_index)
    yield from scan(_files(root.absolute()), known, lambda file: _look(file, began, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session. Raises `RolloutError` if it can't be opened.

    What the session that it was forked from holds too is left out; with `stop_after_bytes` that is not looked for.
    """
    try:
        session = read_session(path, reading=reading)
        taken: frozenset[int] = frozenset()
        if stop_after_bytes is None:
            taken = inherited(path, max_line_bytes=max_line_bytes, reading=reading)
        return _open(path, session, taken, max_line_bytes, stop_after_bytes, reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error


def _open(
    path: Path,
    session: Session,
    taken: frozenset[int],
    max_line_bytes: int,
    stop_after_bytes: int | None,
    reading: Reading,
) -> ItemStream[Records]:
    return stream_chunks(
        _lines(path, reading),
        path,
        Records(ReadStats(), cwd=session.cwd or None, inherited=taken, reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _lines(path: Path, reading: Reading) -> Generator[bytes, None, None]:
    with open_stored(path, reading=reading) as file:
        yield from lines(file, HISTORY, reading=reading)


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
    # In the client's home there are other documents beside the folder of sessions.
    places = _PLACES[:1] if (root / "sessions").is_dir() else _PLACES
    yield from (path for place in places for path in root.glob(place) if path.name != INDEX)


def _look(file: File, began: Callable[[Path], dict[str, int]], max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    session = read_session(path, reading=reading)
    session_id = text_of(session.session_id)
    if _ID.fullmatch(session_id) is None:
        whole = cut(path, reading=reading)
        raise RolloutError(f"`{path}` can't be used: it does not say which session it is{whole}")
    with _open(path, session, frozenset(), max_line_bytes, reading.long_head_bytes, reading) as items:
        preview = preview_of(items, reading=reading)
    modified = file.mtime_ns // 1_000_000
    created = began(path.parent).get(session_id, modified)
    title = text_of(session.title)
    thread = Thread(
        thread_id=session_id,
        agent=AGENT,
        rollout_path=str(path),
        source="vscode" if session.is_of_editor else "cli",
        cwd=session.cwd,
        created_at_ms=created,
        updated_at_ms=max(modified, created),
        title="" if title in _UNTITLED else preview_text(title, max_chars=reading.preview_chars),
        preview=preview,
    )
    return Found(thread, file.stamp(0))
