"""Find Cursor's threads: one transcript a session, and one for each of its sub-agents."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.conversation import LineDecoder, number_of, text_of
from stillroom.sessions.discovery import Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.jsonl import open_stored, read_batches
from stillroom.sessions.metadata import preview_of, read_description
from stillroom.sessions.normalize import NormalizedItem, said_by_agent, said_by_assistant, said_by_user, stopped_by_user
from stillroom.sessions.programs import returned
from stillroom.sessions.scaffolding import without_blocks
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_stream, stream_chunks
from stillroom.sessions.tools import read_call
from stillroom.thread import FileStamp, Thread

# --- Where a Cursor session worked: the folder of a project is named after its path, which can't be read back from it.

# How many folders may be looked into for the one whose path has the name.
_MAX_FOLDERS = 64
_NOT_KEPT = re.compile(r"[^a-zA-Z0-9]+")


class Chat(msgspec.Struct, rename="camel"):
    """What the command line's client stores of a chat."""

    cwd: Any = None
    title: Any = None
    created_at_ms: Any = None
    is_subagent: Any = None


class _Trusted(msgspec.Struct, rename="camel"):
    workspace_path: Any = None


def chat_of(project: Path, session: str) -> Chat:
    """The description of a chat, if it was one of the command line's."""
    found = next(iter(project.parent.parent.glob(f"chats/*/{session}/meta.json")), None)
    return read_description(found, Chat) if found is not None else Chat()


def folder_of(project: Path, *, top: Path = Path("/")) -> str:
    """The path that a project's folder is named after: as its user trusted it, else the only one here that fits."""
    trusted = text_of(read_description(project / ".workspace-trusted", _Trusted).workspace_path)
    return trusted or _only_fitting(project.name, top)


def _only_fitting(name: str, top: Path) -> str:
    fitting: list[Path] = []
    open_folders = [(top, name)]
    for _ in range(_MAX_FOLDERS):
        if not open_folders:
            break
        folder, rest = open_folders.pop()
        for inner in _folders(folder):
            part = _NOT_KEPT.sub("-", inner).strip("-")
            if part and rest == part:
                fitting.append(folder / inner)
            elif part and rest.startswith(f"{part}-"):
                open_folders.append((folder / inner, rest[len(part) + 1 :]))
    return str(fitting[0]) if len(fitting) == 1 and not open_folders else ""


def _folders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []


# --- The lines of Cursor's transcripts as the items that memory keeps. They have no ids, no times, and few results.

_SCAFFOLDING = (
    "system[-_](?:reminder|notification)|user_info|git_status|project_layout|timestamp|rules|agent_[a-z_]{1,40}"
    "|[a-z_]{0,40}(?:files|skills|commands)|mcp_[a-z_]{1,40}|additional_data"
)
_QUERY, _QUERY_END = "<user_query>", "</user_query>"
_REDACTED = "[REDACTED]"


class Block(msgspec.Struct):
    """A part of a message, of any kind."""

    type: Any = None
    text: Any = None
    id: Any = None
    name: Any = None
    input: msgspec.Raw = msgspec.Raw(b"{}")
    tool_use_id: Any = None
    content: Any = None


class Message(msgspec.Struct):
    """What was said and done."""

    content: list[Block] | str | None = None


class Line(msgspec.Struct):
    """A line: a message, or the end of a turn."""

    role: Any = None
    type: Any = None
    status: Any = None
    message: Message | None = None


_record_line = msgspec.json.Decoder(Line)


class Records(LineDecoder):
    """Decodes the lines of one transcript; `of_agent` for a sub-agent's."""

    def __init__(
        self, stats: ReadStats, *, of_agent: bool = False, cwd: str | None = None, reading: Reading = READING
    ) -> None:
        super().__init__(stats, reading=reading)
        self._of_agent = of_agent
        self._cwd = cwd

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a line."""
        return None, self._made(_record_line.decode(line), line)

    def _made(self, read: Line, line: bytes) -> Iterator[NormalizedItem]:
        content = read.message.content if read.message is not None else None
        blocks = [Block("text", content)] if isinstance(content, str) else content or []
        match read.role:
            case "user":
                yield from self._user(blocks)
            case "assistant":
                yield from self._answer(blocks, line)
            case None if read.type == "turn_ended":
                if read.status == "aborted":
                    yield stopped_by_user()
            case role:
                self.stats.count_unknown(str(role or read.type or "line"))

    def _user(self, blocks: list[Block]) -> Iterator[NormalizedItem]:
        yield from self._results(blocks)
        self.stats.images += sum(block.type == "image" for block in blocks)
        texts = [text_of(block.text) for block in blocks if block.type == "text"]
        words = [words for text in texts if (words := _typed(text))]
        if words and self._of_agent:
            yield said_by_agent("\n".join(words))
        elif words:
            yield said_by_user(*words)
        elif texts:
            self.stats.drop("written by the client")

    def _answer(self, blocks: list[Block], line: bytes) -> Iterator[NormalizedItem]:
        for number, block in enumerate(blocks):
            if block.type == "text":
                text = text_of(block.text).replace(_REDACTED, "").strip()
                if text:
                    yield said_by_assistant(text)
            elif block.type == "tool_use":
                call_id = text_of(block.id) or f"{hashlib.blake2b(line, digest_size=8).hexdigest()}-{number}"
                call = read_call(text_of(block.name), bytes(block.input), call_id=call_id, cwd=self._cwd)
                yield self.called(call_id, call)
        yield from self._results(blocks)

    def _results(self, blocks: list[Block]) -> Iterator[NormalizedItem]:
        for block in blocks:
            call_id = text_of(block.tool_use_id)
            if block.type == "tool_result" and call_id:
                yield returned(self.call_of(call_id), call_id, block.content, ok=None)


def _typed(text: str) -> str:
    """What a person typed. Where the client marks it, all else in the text is its own."""
    if _QUERY in text:
        marked = (part.partition(_QUERY_END)[0].strip() for part in text.split(_QUERY)[1:])
        return "\n".join(filter(None, marked))
    return without_blocks(text, _SCAFFOLDING).strip()


# --- Cursor's older transcripts, which are plain text, as the lines of the newer ones.
#
# A line `user:` or `assistant:` begins a message; `[Thinking]`, `[Tool call] NAME` and `[Tool result] NAME` begin its
# parts. An answer and a tool's output may hold such lines too: behind a tool's output, and in a session of which a
# prompt was marked by the client, only what it marks is a person's.

_USER = re.compile(r"user:[ \t]*(.*)")
_ASSISTANT = re.compile(r"(?:assistant|A):[ \t]*(.*)")
_PART = re.compile(r"\[(Thinking|Tool call|Tool result)\][ \t]*(.*)")
_ARGUMENT = re.compile(r"[ \t]{0,8}(\w{1,60}): ?(.*)")
_MARK = "<"
# Calls whose result may still come.
_OPEN_CALLS = 100
# Of one part; what is over it is left out.
_MAX_PART_CHARS = 1024 * 1024
_encode = msgspec.json.Encoder().encode


def as_lines(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> Generator[bytes, None, None]:
    """One line for each part of each message, without thoughts. Raises `OSError` or `RolloutError`."""
    parts = _Parts()
    with open_stored(path, reading=reading) as file:
        for lines in read_batches(file, ReadStats(), max_line_bytes=max_line_bytes, reading=reading):
            for line in lines:
                yield from parts.take(line.decode("utf-8", "replace").rstrip("\r\n"))
    yield from parts.end()


class _Parts:
    """The part that the lines at hand belong to."""

    def __init__(self) -> None:
        self._kind = ""
        self._name = ""
        self._text: list[str] = []
        self._chars = 0
        self._calls = 0
        #: The calls without a result: names and ids.
        self._open: list[tuple[str, str]] = []
        self._blank = False
        #: Whether the client marks prompts.
        self._marked = False
        #: What may be the beginning of a prompt: the next line tells.
        self._held: str | None = None
        #: Inside of what a person typed nothing begins.
        self._typed = False

    def take(self, line: str) -> Iterator[bytes]:
        if self._held is not None:
            held, self._held = self._held, None
            self._marked = self._marked or line.startswith(_MARK)
            if line.startswith(_MARK) or self._may_speak():
                yield from self._begin("user")
            else:
                self._add(held)
        blank, self._blank = self._blank, not line.strip()
        user, assistant, part = _USER.fullmatch(line), _ASSISTANT.fullmatch(line), _PART.match(line)
        if self._typed:
            self._add(line)
        elif user is not None and not user[1]:
            self._held = line
        elif user is not None and self._may_speak():
            yield from self._begin("user")
            self._add(user[1])
        elif assistant is not None and (blank or self._kind != "Tool result"):
            yield from self._begin("assistant")
            self._add(assistant[1])
        elif part is not None and self._kind != "user":
            yield from self._begin(part[1], part[2].strip())
            if part[1] != "Tool call":
                self._add("" if part[1] == "Tool result" else part[2])
        else:
            self._add(line)

    def _may_speak(self) -> bool:
        """Whether a person may speak here without a mark."""
        return not self._marked and self._kind != "Tool result"

    def end(self) -> Iterator[bytes]:
        """The last part."""
        if self._held is not None:
            self._add(self._held)
        yield from self._begin("")

    def _begin(self, kind: str, name: str = "") -> Iterator[bytes]:
        text = "\n".join(self._text).strip()
        match self._kind:
            case "user" | "assistant" if text:
                yield _plain_text_line(self._kind, {"type": "text", "text": text})
            case "Tool call":
                block = {"type": "tool_use", "id": self._called(), "name": self._name, "input": _arguments(self._text)}
                yield _plain_text_line("assistant", block)
            case "Tool result":
                yield _plain_text_line(
                    "user", {"type": "tool_result", "tool_use_id": self._answered(), "content": text}
                )
        self._kind, self._name, self._text, self._chars, self._typed = kind, name, [], 0, False

    def _add(self, line: str) -> None:
        if self._kind == "user":
            opened, closed = line.rfind("<user_query>"), line.rfind("</user_query>")
            self._typed = opened > closed if opened >= 0 or closed >= 0 else self._typed
        self._chars += len(line) + 1
        if self._chars <= _MAX_PART_CHARS:
            self._text.append(line)

    def _called(self) -> str:
        self._calls += 1
        self._open.append((self._name, f"call-{self._calls}"))
        del self._open[:-_OPEN_CALLS]
        return self._open[-1][1]

    def _answered(self) -> str:
        """Results come in the order of their calls, with the same names."""
        place = next((place for place, (name, _) in enumerate(self._open) if name == self._name), 0)
        return self._open.pop(place)[1] if self._open else ""


def _arguments(lines: list[str]) -> dict[str, str]:
    """The fields of a call; a line that begins none goes on with the last one."""
    given: dict[str, list[str]] = {}
    values: list[str] = []
    for line in lines:
        if (match := _ARGUMENT.fullmatch(line)) is not None:
            values = given.setdefault(match[1], [])
            line = match[2]
        values.append(line)
    return {name: "\n".join(value).strip() for name, value in given.items()}


def _plain_text_line(role: str, block: dict[str, Any]) -> bytes:
    return _encode({"role": role, "message": {"content": [block]}}) + b"\n"


# --- Sessions

AGENT = "cursor"
COPIES = False
_TRANSCRIPTS = "agent-transcripts"
_SUB_AGENTS = "subagents"
_ID = re.compile(r"[\w.-]{1,120}", re.ASCII)


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every transcript under `home`, oldest first."""
    folders: dict[Path, str] = {}

    def look(file: File) -> Discovery:
        project = _project(file.path)
        if project not in folders:
            folders[project] = folder_of(project)
        return _look(file, folders[project], max_line_bytes, reading)

    yield from scan(_files(home.absolute()), known, look)


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a transcript. Raises `RolloutError` if it can't be opened."""
    project = _project(path)
    cwd = text_of(chat_of(project, _session(path)).cwd) or folder_of(project)
    return _open(path, cwd, max_line_bytes, stop_after_bytes, reading)


def _open(
    path: Path, cwd: str, max_line_bytes: int, stop_after_bytes: int | None, reading: Reading
) -> ItemStream[Records]:
    records = Records(ReadStats(), of_agent=_is_sub_agent(path), cwd=cwd or None, reading=reading)
    if path.suffix != ".txt":
        return open_stream(
            path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading
        )
    if not path.is_file():
        raise RolloutError(f"`{path}` can't be opened: it is no file")
    return stream_chunks(
        as_lines(path, max_line_bytes=max_line_bytes, reading=reading),
        path,
        records,
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _files(home: Path) -> Iterator[Path]:
    if home.is_file():
        yield home
    for path in home.glob(f"projects/*/{_TRANSCRIPTS}/*"):
        if path.suffix == ".jsonl":
            yield path
        elif path.suffix == ".txt":
            # It is what the client wrote before it wrote lines.
            if not (path.with_suffix("") / f"{path.stem}.jsonl").exists():
                yield path
        elif _ID.fullmatch(path.name):
            yield path / f"{path.name}.jsonl"
            yield from path.glob(f"{_SUB_AGENTS}/*.jsonl")


def _is_sub_agent(path: Path) -> bool:
    return path.parent.name == _SUB_AGENTS


def _session(path: Path) -> str:
    return path.parent.parent.name if _is_sub_agent(path) else path.stem


def _project(path: Path) -> Path:
    """The project's folder, which is above the transcripts."""
    above = next((folder for folder in path.parents if folder.name == _TRANSCRIPTS), path.parent)
    return above.parent


def _look(file: File, folder: str, max_line_bytes: int, reading: Reading) -> Discovery:
    path, session = file.path, _session(file.path)
    if _ID.fullmatch(session) is None or _ID.fullmatch(path.stem) is None:
        raise RolloutError(f"`{path}` can't be used: its name is no id")
    chat, is_agent = chat_of(_project(path), session), _is_sub_agent(path)
    cwd = text_of(chat.cwd) or folder
    with _open(path, cwd, max_line_bytes, reading.long_head_bytes, reading) as items:
        preview = preview_of(items, reading=reading)
    updated = file.mtime_ns // 1_000_000
    created = number_of(chat.created_at_ms) or min(_began(path), updated)
    thread = Thread(
        thread_id=f"{session}:{path.stem}" if is_agent else session,
        agent=AGENT,
        rollout_path=str(path),
        source='{"subagent":"other"}' if is_agent or chat.is_subagent is True else "cli",
        cwd=cwd,
        created_at_ms=created,
        updated_at_ms=max(updated, created),
        title="" if is_agent else preview_text(text_of(chat.title), max_chars=reading.preview_chars),
        preview=preview,
        parent_thread_id=session if is_agent else None,
    )
    return Found(thread, file.stamp(0))


def _began(path: Path) -> int:
    """When the folder of a session got its transcript; nothing in a transcript has a time."""
    folder = path.parent if path.parent.name == path.stem else path
    return folder.stat().st_mtime_ns // 1_000_000
