"""Find Kimi Code's threads: one wire a session, and one for each of its sub-agents; and its predecessor's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.agents.kimi_code import predecessor
from stillroom.sessions.agents.kimi_code.records import Records, appended_of, head_of, is_prompt, key_of
from stillroom.sessions.conversation import UNREADABLE, Past, lines_of, number_of, text_of, time_of
from stillroom.sessions.discovery import Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.metadata import Times, read_description, read_head, read_tail
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_stream
from stillroom.thread import FileStamp, Thread

# --- Which prompts of a Kimi Code session were undone, and where a fork begins; it shows only in the whole wire.

_MATTERS = (
    *(b'"context.append_message"', b'"context.undo"', b'"context.clear"', b'"context.apply_compaction"'),
    b'"forked"',
)


class Marks(NamedTuple):
    """What the whole of a wire tells."""

    #: The keys of the prompts that were undone, as hashes.
    undone: frozenset[int]
    #: How often the session was forked. What stands ahead of the last mark is the origin's.
    forks: int


class _Undo(msgspec.Struct):
    count: Any = None


_undo = msgspec.json.Decoder(_Undo)


def marks_of(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> Marks:
    """Read a wire for its marks. Raises `OSError` or `RolloutError`."""
    talk = _Talk(reading.remembered_records)
    for line in lines_of(path, max_line_bytes=max_line_bytes, reading=reading):
        if any(mark in line[:200] for mark in _MATTERS):
            try:
                talk.follow(line)
            except UNREADABLE:
                continue
    return Marks(frozenset(talk.undone), talk.forks)


class _Talk:
    """The prompts that can still be undone: none from before the context was cleared or compacted."""

    def __init__(self, limit: int) -> None:
        self.undone: set[int] = set()
        self.forks = 0
        self._limit = limit
        self._prompts: list[int] = []

    def follow(self, line: bytes) -> None:
        match head_of(line).type:
            case "context.append_message":
                message = appended_of(line).message
                if message.role == "user" and is_prompt(message.origin) and len(self._prompts) < self._limit:
                    self._prompts.append(hash(key_of(message, line)))
            case "context.undo":
                count = min(number_of(_undo.decode(line).count) or 0, len(self._prompts))
                if count > 0:
                    self.undone.update(self._prompts[-count:])
                    del self._prompts[-count:]
            case "forked":
                self.forks += 1
            case "context.clear" | "context.apply_compaction":
                self._prompts.clear()


# --- Sessions

AGENT = "kimi-code"
COPIES = True
_MAIN = "main"
_NAME = re.compile(r"[\w.-]{1,120}", re.ASCII)
# It tells of every agent of the session.
_MAX_STATE_BYTES = 1024 * 1024


class _Place(NamedTuple):
    folder: Path
    session: str
    agent: str


class _Labels(msgspec.Struct, rename="camel"):
    profile_name: Any = None


class _Agent(msgspec.Struct, rename="camel"):
    parent_agent_id: Any = None
    labels: _Labels | None = None


class _State(msgspec.Struct, rename="camel"):
    cwd: Any = None
    title: Any = None
    archived: Any = None
    created_at: Any = None
    forked_from: Any = None
    agents: dict[str, _Agent] = {}


class _Disclosure(msgspec.Struct):
    cwd: Any = None


class _Line(msgspec.Struct, rename="camel"):
    type: Any = None
    time: Any = None
    created_at: Any = msgspec.field(default=None, name="created_at")
    environment_disclosure: _Disclosure | None = None


_line = msgspec.json.Decoder(_Line)


@dataclass(slots=True)
class _Traits(Times):
    """What the lines at both ends tell."""

    some: bool = False
    cwd: str = ""

    def learn(self, line: bytes) -> None:
        try:
            told = _line.decode(line)
        except UNREADABLE:
            return
        self.some = self.some or isinstance(told.type, str)
        self.saw(number_of(told.time) or number_of(told.created_at))
        if told.environment_disclosure is not None:
            self.cwd = self.cwd or text_of(told.environment_disclosure.cwd)


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session and sub-agent under `home`, oldest first."""
    yield from scan(_files(home.absolute()), known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open the wire of a session or of a sub-agent. Raises `RolloutError` if it can't be opened.

    What its user undid is marked, and what the session that it was forked from holds too is left out; with
    `stop_after_bytes` neither is looked for.
    """
    if path.name == predecessor.NAME:
        return predecessor.open_session(
            path, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading
        )
    state, marks = _state(path), Marks(frozenset(), 0)
    if stop_after_bytes is None:
        try:
            marks = marks_of(path, max_line_bytes=max_line_bytes, reading=reading)
        except OSError as error:
            raise RolloutError(f"`{path}` can't be read: {error.strerror}") from error
    records = Records(
        ReadStats(),
        of_agent=_place(path).agent != _MAIN,
        cwd=text_of(state.cwd) or None,
        past=Past(superseded=marks.undone),
        forks=marks.forks if _origin_is_there(path, state) else 0,
        reading=reading,
    )
    return open_stream(path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


def _files(home: Path) -> Iterator[Path]:
    if home.is_file():
        yield home
    yield from home.glob("sessions/*/*/agents/*/wire.jsonl")
    yield from home.glob(f"sessions/*/*/{predecessor.NAME}")


def _place(path: Path) -> _Place:
    """Whose wire it is. One that lies somewhere else is a session's, named as the file."""
    agent = path.parent
    if agent.parent.name != "agents":
        return _Place(path.parent, path.stem, _MAIN)
    session = agent.parent.parent
    return _Place(session, session.name, agent.name)


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    if path.name == predecessor.NAME:
        thread = predecessor.thread_of(AGENT, file, max_line_bytes=max_line_bytes, reading=reading)
        return Found(thread, file.stamp(0))
    _, session, agent_id = _place(path)
    if _NAME.fullmatch(session) is None or _NAME.fullmatch(agent_id) is None:
        raise RolloutError(f"`{path}` can't be used: its folders are no ids")
    is_agent = agent_id != _MAIN
    traits, state = _Traits(), _state(path)
    records = Records(ReadStats(), of_agent=is_agent, reading=reading)
    preview = read_head(path, records, traits.learn, max_line_bytes=max_line_bytes, reading=reading)
    offset = read_tail(path, traits.learn, size=file.size, reading=reading)
    if not traits.some:
        raise RolloutError(f"`{path}` can't be used: it has no complete record")
    agent = state.agents.get(agent_id) or _Agent()
    span = traits.span(file, began_ms=None if is_agent else _time(state.created_at))
    parent = text_of(agent.parent_agent_id) or _MAIN
    kind = {"subagent": text_of(agent.labels.profile_name if agent.labels is not None else None) or "other"}
    thread = Thread(
        thread_id=_thread_id(session, agent_id),
        agent=AGENT,
        rollout_path=str(path),
        source=msgspec.json.encode(kind).decode() if is_agent else "cli",
        cwd=text_of(state.cwd) or traits.cwd,
        created_at_ms=span.began,
        updated_at_ms=span.went_on,
        title="" if is_agent else preview_text(text_of(state.title), max_chars=reading.preview_chars),
        preview=preview,
        archived=state.archived is True,
        parent_thread_id=_thread_id(session, parent) if is_agent else None,
    )
    return Found(thread, file.stamp(offset))


def _thread_id(session: str, agent: str) -> str:
    return session if agent == _MAIN else f"{session}:{agent}"


def _state(path: Path) -> _State:
    return read_description(_place(path).folder / "state.json", _State, max_bytes=_MAX_STATE_BYTES)


def _origin_is_there(path: Path, state: _State) -> bool:
    """Whether the wire that this one is a copy of up to its mark can still be read."""
    origin, (folder, session, agent) = text_of(state.forked_from), _place(path)
    if _NAME.fullmatch(origin) is None or origin == session:
        return False
    return (folder.parent / origin / "agents" / agent / path.name).is_file()


def _time(value: Any) -> int | None:
    """In milliseconds, or as a text where the session was taken over from the client's predecessor."""
    return number_of(value) or time_of(value)
