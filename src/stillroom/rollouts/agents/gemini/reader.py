"""Find Gemini CLI's threads: one file a session and one a sub-agent, in a folder for each project.

Up to about 0.3x a session was one JSON object: it is read as if it were the log of its messages.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents import documents
from stillroom.rollouts.agents.chunks import stream_chunks
from stillroom.rollouts.agents.decoder import UNREADABLE, text_of, time_of
from stillroom.rollouts.agents.ends import Times, preview_of, read_head, read_small, read_tail
from stillroom.rollouts.agents.gemini.records import Records
from stillroom.rollouts.agents.gemini.rewinds import superseded
from stillroom.rollouts.agents.scan import File, scan
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.agents.talk import Past
from stillroom.rollouts.found import Discovery, Found
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.speech import preview_text
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream, open_stream
from stillroom.thread import FileStamp, Thread

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
