"""Find Gemini CLI's threads: one file a session and one a sub-agent, in a folder for each project.

Up to about 0.3x a session was one JSON object: it is read as if it were the log of its messages.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions import documents
from stillroom.sessions.conversation import UNREADABLE, ConversationDecoder, Past, lines_of, text_of, time_of
from stillroom.sessions.discovery import Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.google_parts import Called, Part, Returned, read_call, read_result
from stillroom.sessions.jsonl import open_stored
from stillroom.sessions.metadata import Times, preview_of, read_head, read_small, read_tail
from stillroom.sessions.normalize import NormalizedItem, said_by_assistant
from stillroom.sessions.scaffolding import without_blocks
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_stream, stream_chunks
from stillroom.thread import FileStamp, Thread

# --- Gemini CLI's log of operations as the items that memory keeps: the union of all messages, each once.
#
# The client replays the log and shows what is left of the talk. Here what was compressed away stays, and what was
# rewound is marked. A snapshot of the whole talk (`$set.messages`) tells nothing new where messages stand ahead of it:
# ids that first appear in it are the client's rewriting, as of a compression.

_NOTICES = frozenset({"info", "error", "warning"})
_SCAFFOLDING = "session_context|hook_context|loaded_context|system-reminder"
# Commands that steer the client; a path has a second slash.
_COMMAND = re.compile(r"\s*(?:/[\w:-]*(?:\s|\Z)|\?\s*\Z)")


class ToolCall(Called, rename="camel"):
    """A call with its result, as far as there is one."""

    result: Any = None
    status: Any = None
    result_display: msgspec.Raw = msgspec.Raw(b"null")


class Message(msgspec.Struct, rename="camel"):
    """A message of the log, or of a snapshot."""

    id: Any = None
    type: Any = None
    timestamp: Any = None
    content: list[Part] | str | None = None
    display_content: list[Part] | str | None = None
    tool_calls: list[ToolCall] = []


class Change(msgspec.Struct):
    """A change of the session itself."""

    messages: list[msgspec.Raw] | None = None


class Line(Message, rename="camel"):
    """A line: a message, a header, or an operation."""

    session_id: Any = None
    change: Change | None = msgspec.field(default=None, name="$set")
    rewind_to: Any = msgspec.field(default=None, name="$rewindTo")


line_of = msgspec.json.Decoder(Line).decode
_message = msgspec.json.Decoder(Message)


class Records(ConversationDecoder):
    """Decodes the lines of one file. Prompts that were rewound are known by their ids."""

    _began = False

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a message, or, at the beginning, of a snapshot."""
        read = line_of(line)
        if read.change is not None:
            return None, self._snapshot(read.change.messages or ())
        if read.id is None:
            if read.session_id is None and read.rewind_to is None:
                self.stats.count_unknown("line")
            return None, ()
        return time_of(read.timestamp), self._message(read)

    def _snapshot(self, messages: Iterable[msgspec.Raw]) -> Iterator[NormalizedItem]:
        """Of what was said ahead of it a snapshot tells less than the log does."""
        began = self._began
        for raw in messages:
            message = _message.decode(raw)
            if not began:
                yield from self._message(message)
            elif self.is_new(f"message {message.id}"):
                self.stats.drop("compaction summary")

    def _message(self, message: Message) -> Iterator[NormalizedItem]:
        if message.type == "user":
            yield from self._user(message)
        elif message.type == "gemini":
            self._began = True
            yield from self._answer(message)
        elif text_of(message.type) in _NOTICES:
            self.stats.drop("written by the client")
        else:
            self.stats.count_unknown(f"message/{message.type}")

    def _user(self, message: Message) -> Iterator[NormalizedItem]:
        parts = parts_of(message.content)
        results = [part.function_response for part in parts if part.function_response is not None]
        for returned in results:
            yield from self._result(returned, failed=False)
        if results or not self.is_new(f"message {message.id}"):
            return
        words = prompt_of(message)
        self.stats.images += sum(part.inline_data is not None for part in parts)
        if not words:
            self.stats.drop("written by the client")
            return
        self._began = True
        yield from self.prompt(text_of(message.id), *words)

    def _answer(self, message: Message) -> Iterator[NormalizedItem]:
        parts = parts_of(message.content)
        text = "\n".join(text for part in parts if not part.thought and (text := text_of(part.text)).strip())
        # It is written again when its calls have ended.
        if text and self.is_new(f"message {message.id}"):
            yield said_by_assistant(text)
        for part in parts:
            if part.function_call is not None:
                yield from self._call(part.function_call)
        for call in message.tool_calls:
            yield from self._call(call)
            for returned in _responses(call):
                yield from self._result(returned, failed=call.status != "success")

    def _call(self, called: Called) -> Iterator[NormalizedItem]:
        call_id = text_of(called.id)
        if call_id and self.is_new(f"call {call_id}"):
            yield self.called(call_id, read_call(called, call_id=call_id, cwd=self.cwd))

    def _result(self, returned: Returned, *, failed: bool) -> Iterator[NormalizedItem]:
        call_id = text_of(returned.id)
        if call_id and self.is_new(f"result {call_id}"):
            yield read_result(self.call_of(call_id), returned, call_id=call_id, failed=failed)


def parts_of(content: list[Part] | str | None) -> list[Part]:
    """What a message consists of, in whichever form."""
    return [Part(text=content)] if isinstance(content, str) else content or []


def prompt_of(message: Message) -> list[str]:
    """What a person typed, without what the client and hooks put beside it; nothing for a command to the client."""
    shown = parts_of(message.display_content) or parts_of(message.content)
    texts = (without_blocks(text_of(part.text), _SCAFFOLDING) for part in shown)
    return [text for text in texts if text.strip() and not _COMMAND.match(text)]


def _responses(call: ToolCall) -> list[Returned]:
    parts = call.result if isinstance(call.result, list) else []
    try:
        read = msgspec.convert(parts, list[Part])
    except msgspec.ValidationError:
        return []
    return [part.function_response for part in read if part.function_response is not None]


# --- Which prompts of a Gemini CLI session were rewound; it shows only in the whole file.

_MATTERS = (b'"user"', b'"$rewindTo"')


def superseded(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The ids of the prompts that a rewind took back, as hashes. Raises `OSError` or `RolloutError`."""
    branch = _Branch(reading.remembered_records)
    for line in lines_of(path, max_line_bytes=max_line_bytes, reading=reading):
        if any(mark in line for mark in _MATTERS):
            try:
                branch.follow(line_of(line))
            except UNREADABLE:
                continue
    return frozenset(branch.left)


class _Branch:
    """The prompts of the talk as it stands; a snapshot may have given them other ids."""

    def __init__(self, limit: int) -> None:
        self.left: set[int] = set()
        self._limit = limit
        self._prompts: list[int] = []
        self._place: dict[int, int] = {}
        self._by_words: dict[int, int] = {}

    def follow(self, line: Line) -> None:
        if isinstance(line.rewind_to, str):
            place = self._place.get(hash(line.rewind_to), 0)
            self.left.update(self._prompts[place:])
            del self._prompts[place:]
        elif line.change is not None:
            for raw in line.change.messages or ():
                self._said(_message.decode(raw), again=bool(self._prompts))
        elif line.id is not None:
            self._said(line, again=False)

    def _said(self, message: Message, *, again: bool) -> None:
        number = hash(text_of(message.id))
        if number in self._place or len(self._place) >= self._limit or message.type != "user":
            return
        words = prompt_of(message)
        if not words:
            return
        spoken = hash("\n".join(words))
        if again:
            # The same prompt under a new id; what was never typed is the client's.
            self._place[number] = self._by_words.get(spoken, len(self._prompts))
            return
        self._place[number] = self._by_words[spoken] = len(self._prompts)
        self._prompts.append(number)


# --- Sessions

AGENT = "gemini-cli"
COPIES = False
_SESSION = re.compile(r"session-[\w-]{1,100}\.jsonl?", re.ASCII)
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SUB_AGENT = re.compile(rf"{_UUID}\.jsonl")
_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
_LOGGED = re.compile(rb'"sessionId": ?"([\w-]{1,100})"')
# The fields of an old session, which is one object.
_DESCRIBING = ("sessionId", "startTime", "lastUpdated", "summary", "directories")
_MAX_SMALL_BYTES = 1024 * 1024


class Project(NamedTuple):
    """What is known of the project that a folder belongs to."""

    cwd: str
    #: Sessions in which a person typed: a script's prompts are not logged. None: nothing is logged here.
    typed: frozenset[str]


class _Header(msgspec.Struct, rename="camel"):
    session_id: Any = None
    start_time: Any = None
    last_updated: Any = None
    timestamp: Any = None
    kind: Any = None
    summary: Any = None
    directories: Any = None
    change: msgspec.Raw = msgspec.field(default=msgspec.Raw(b"null"), name="$set")


class _Projects(msgspec.Struct):
    projects: dict[str, Any] = {}


_header = msgspec.json.Decoder(_Header)


@dataclass(slots=True)
class _Traits(Times):
    """What the lines at both ends tell."""

    session_id: str = ""
    title: str = ""
    folders: list[str] = field(default_factory=list)

    def learn(self, line: bytes) -> None:
        try:
            told = _header.decode(line)
            if bytes(told.change) != b"null":
                told = _header.decode(told.change)
        except UNREADABLE:
            return
        self.session_id = self.session_id or text_of(told.session_id)
        self.title = text_of(told.summary) or self.title
        if isinstance(told.directories, list):
            self.folders = self.folders or [folder for folder in told.directories if isinstance(folder, str)]
        for value in (told.start_time, told.last_updated, told.timestamp):
            self.saw(time_of(value))


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session and sub-agent under `home`, oldest first."""
    projects: dict[Path, Project] = {}

    def look(file: File) -> Discovery:
        return _look(file, home.absolute(), projects, max_line_bytes, reading)

    yield from scan(_files(home.absolute()), known, look)


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session or a sub-agent's file. Raises `RolloutError` if it can't be opened.

    With `stop_after_bytes` what was rewound is not looked for.
    """
    try:
        rewound: frozenset[int] = frozenset()
        if stop_after_bytes is None and path.suffix != ".json":
            rewound = superseded(path, max_line_bytes=max_line_bytes, reading=reading)
        records = Records(
            ReadStats(),
            of_agent=_is_sub_agent(path),
            cwd=_root(_project_folder(path)) or None,
            past=Past(superseded=rewound),
            reading=reading,
        )
        if path.suffix == ".json":
            return stream_chunks(
                _messages(path, reading),
                path,
                records,
                max_line_bytes=max_line_bytes,
                stop_after_bytes=stop_after_bytes,
                reading=reading,
            )
    except OSError as error:
        raise RolloutError(f"`{path}` can't be read: {error.strerror}") from error
    return open_stream(path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


def _files(home: Path) -> Iterator[Path]:
    if home.is_file():
        yield home
    for path in home.glob("tmp/*/chats/*"):
        if _SESSION.fullmatch(path.name):
            yield path
        elif _ID.fullmatch(path.name):
            yield from (file for file in path.glob("*.jsonl") if _SUB_AGENT.fullmatch(file.name))


def _is_sub_agent(path: Path) -> bool:
    return _SUB_AGENT.fullmatch(path.name) is not None and path.parent.name != "chats"


def _project_folder(path: Path) -> Path:
    """Of a file that was taken out of its place, some folder that says nothing."""
    return path.parents[min(2 if _is_sub_agent(path) else 1, len(path.parents) - 1)]


def _look(file: File, home: Path, projects: dict[Path, Project], max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    traits, offset = _Traits(), 0
    is_agent = _is_sub_agent(path)
    if path.suffix == ".json":
        traits.learn(_described(path, reading))
        stop = reading.long_head_bytes
        with open_items(path, max_line_bytes=max_line_bytes, stop_after_bytes=stop, reading=reading) as items:
            preview = preview_of(items, reading=reading)
    else:
        records = Records(ReadStats(), of_agent=is_agent, reading=reading)
        preview = read_head(path, records, traits.learn, max_line_bytes=max_line_bytes, reading=reading)
        first = traits.first_ms
        offset = read_tail(
            path, traits.learn, size=file.size, telling=(b'"summary"', b'"directories"'), reading=reading
        )
        traits.first_ms = first or traits.first_ms
    if _ID.fullmatch(traits.session_id) is None:
        raise RolloutError(f"`{path}` can't be used: it has no header")
    folder = _project_folder(path)
    if folder not in projects:
        projects[folder] = _project(folder, home, reading)
    project = projects[folder]
    span = traits.span(file)
    untold = path.suffix == ".json" or path.parent.name != "chats"
    source = "cli" if untold or traits.session_id in project.typed else "exec"
    thread = Thread(
        thread_id=traits.session_id,
        agent=AGENT,
        rollout_path=str(path),
        source='{"subagent":"other"}' if is_agent else source,
        cwd=project.cwd or next(iter(traits.folders), ""),
        created_at_ms=span.began,
        updated_at_ms=span.went_on,
        title=preview_text(traits.title, max_chars=reading.preview_chars),
        preview=preview,
        parent_thread_id=path.parent.name if is_agent else None,
    )
    return Found(thread, file.stamp(offset))


def _project(folder: Path, home: Path, reading: Reading) -> Project:
    typed: set[str] = set()
    try:
        with open_stored(folder / "logs.json", reading=reading) as file:
            while lines := file.readlines(reading.chunk_bytes):
                typed.update(name.decode() for line in lines for name in _LOGGED.findall(line))
    except (OSError, RolloutError):
        pass
    return Project(_cwd(folder, home), frozenset(typed))


def _root(folder: Path) -> str:
    """The path that the client left in a project's folder."""
    return read_small(folder / ".project_root", max_bytes=_MAX_SMALL_BYTES).decode("utf-8", "replace").strip()


def _cwd(folder: Path, home: Path) -> str:
    """Where the project is. Folders of older versions are named by a hash of that."""
    if root := _root(folder):
        return root
    try:
        paths = msgspec.json.decode(
            read_small(home / "projects.json", max_bytes=_MAX_SMALL_BYTES), type=_Projects
        ).projects
    except UNREADABLE:
        return ""
    for path, name in paths.items():
        if folder.name in (name, hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()):
            return path
    return ""


def _described(path: Path, reading: Reading) -> bytes:
    """What an old session tells of itself, beside its messages."""
    with open_stored(path, reading=reading) as file:
        return msgspec.json.encode(documents.fields(file, _DESCRIBING, max_bytes=_MAX_SMALL_BYTES, reading=reading))


def _messages(path: Path, reading: Reading) -> Generator[bytes, None, None]:
    with open_stored(path, reading=reading) as file:
        try:
            yield from documents.lines(file, ("messages",), reading=reading)
        except RolloutError as error:
            raise RolloutError(f"`{path}` can't be used: {error}") from error
