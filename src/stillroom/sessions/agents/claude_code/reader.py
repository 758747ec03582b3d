"""Find Claude Code's threads: one file a session, one a sub-agent; one that has not changed is not opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.agents.claude_code.items import Record, Records, is_typed, parse_record, spoken
from stillroom.sessions.conversation import NOTHING, past_of
from stillroom.sessions.discovery import Broken, Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.jsonl import open_stored, read_batches
from stillroom.sessions.metadata import read_description
from stillroom.sessions.metadata import read_tail as read_last_lines
from stillroom.sessions.speech import first_words, preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_stream
from stillroom.sessions.timestamps import parse_timestamp
from stillroom.thread import FileStamp, Thread

# --- What a Claude Code session took over from others, and what its user took back; both show only in whole files.

_USER = b'"user"'
_RESULT = b'"tool_result"'
_ROOT = b'"parentUuid":null'
_CHILD = b'{"parentUuid":"'
# All stand ahead of what a message says, and behind a few fields of which one is a path.
_WITHIN_BYTES = 8192
_BRANCH_UUID = re.compile(rb'"uuid": ?"([\w-]{1,80})"')
_REQUESTED_BY = re.compile(rb'"requestSessionId": ?"([\w-]{1,80})"')
_BRANCH_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")
# The first message of a session, and the session that it was forked from, stand in the first bytes.
_HEAD_BYTES = 256 * 1024


def superseded(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The prompts that the user went back behind, as hashes of their ids.

    Whoever goes back writes a second prompt under the same parent, or under none if it is the first one that is taken
    back; what was said from the first one on is left behind.
    """
    seen: set[int] = set()
    branch: list[int] = []
    under: dict[str, int] = {}
    left: set[int] = set()
    for line in _where_a_branch_may_begin(path, max_line_bytes, reading):
        if (record := parse_record(line)) is None:
            continue
        parent = record.parent_uuid or f"none in {record.session_id}"
        if not _is_prompt(record):
            # A compaction begins a new tree: what comes under none from here on takes back nothing of the old one.
            if record.parent_uuid is None and not record.is_sidechain:
                under[parent] = len(branch)
            continue
        if hash(record.uuid) in seen:
            continue
        if len(seen) == reading.remembered_records:
            break
        # Where the branch went on from this parent before; past its end if that was left already.
        before = under.get(parent, len(branch))
        left.update(branch[before:])
        del branch[before:]
        under[parent] = len(branch)
        branch.append(hash(record.uuid))
        seen.add(hash(record.uuid))
    return frozenset(left)


def inherited(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The records that an earlier session holds too, as hashes of their ids.

    A fork names the session that it came from in the answers that it copied. Older clients copy the whole session when
    it is resumed, and say nothing: all of the earlier file then stands in the later one.
    """
    origin = _origin(path)
    if origin is not None:
        return _uuids(origin, max_line_bytes, reading)
    family = _family(path, reading)
    if not family:
        return frozenset()
    own = _uuids(path, max_line_bytes, reading)
    taken: set[int] = set()
    for other in family:
        try:
            theirs = _uuids(other, max_line_bytes, reading)
        except (OSError, RolloutError):  # gone, or nobody's to read
            continue
        # Of two equal files the one that comes first by its name keeps what both hold.
        if theirs < own or (theirs == own and other.name < path.name):
            taken |= theirs
    return frozenset(taken)


def _is_prompt(record: Record) -> bool:
    if record.type != "user" or record.message is None or record.is_sidechain or not is_typed(record):
        return False
    if not isinstance(record.uuid, str) or not isinstance(record.parent_uuid, str | None):
        return False
    return any(words.who == "user" for words in spoken(record.message.content))


def _where_a_branch_may_begin(path: Path, max_line_bytes: int, reading: Reading) -> Iterator[bytes]:
    """The lines with prompts and roots, and a few others."""
    for lines in _batches(path, max_line_bytes, reading):
        # Of every line of the file: a loop that calls nothing else.
        yield from [
            line
            for line in lines
            if (line.find(_USER, 0, _WITHIN_BYTES) >= 0 and line.find(_RESULT, 0, _WITHIN_BYTES) < 0)
            or (not line.startswith(_CHILD) and line.find(_ROOT, 0, _WITHIN_BYTES) >= 0)
        ]


def _batches(path: Path, max_line_bytes: int, reading: Reading) -> Iterator[list[bytes]]:
    with open_stored(path, reading=reading) as file:
        yield from read_batches(file, ReadStats(), max_line_bytes=max_line_bytes, reading=reading)


def _uuids(path: Path, max_line_bytes: int, reading: Reading) -> frozenset[int]:
    """The ids in a file, as far as they are remembered; a few stand in what tools said."""
    batches = _batches(path, max_line_bytes, reading)
    found = (hash(uuid.decode()) for lines in batches for line in lines for uuid in _BRANCH_UUID.findall(line))
    return frozenset(islice(found, reading.remembered_records))


def _family(path: Path, reading: Reading) -> list[Path]:
    """Other sessions of the folder that begin with the same prompt: first those that are a little smaller."""
    first = _first_prompt(path)
    if not first:
        return []
    try:
        names = _by_first_prompt(path.parent, path.parent.stat().st_mtime_ns).get(first, ())
    except OSError:
        return []
    at = names.index(path.name) if path.name in names else -1
    near = [*names[at + 1 :], *reversed(names[: max(at, 0)])]
    return [path.with_name(name) for name in near[: reading.copies_looked_at]]


# A backfill asks it for every session of a folder, and goes from folder to folder.
@lru_cache(maxsize=1000)
def _by_first_prompt(folder: Path, mtime_ns: int) -> dict[str, list[str]]:
    """The names of a folder's sessions, the largest first, by the id of the prompt that they begin with.

    `mtime_ns` is the folder's: a copy is a new name in it, and its origin has begun before.
    """
    del mtime_ns
    with os.scandir(folder) as entries:
        sizes = {entry.name: _size(entry) for entry in entries if _BRANCH_SESSION.fullmatch(entry.name)}
    found: dict[str, list[str]] = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        if first := _first_prompt(folder / name):
            found.setdefault(first, []).append(name)
    return {first: names for first, names in found.items() if len(names) > 1}


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except OSError:
        return 0


def _origin(path: Path) -> Path | None:
    match = _REQUESTED_BY.search(_head(path))
    if match is None or match[1].decode() == path.stem:
        return None
    origin = path.with_name(match[1].decode() + ".jsonl")
    return origin if _BRANCH_SESSION.fullmatch(origin.name) and origin.is_file() else None


def _first_prompt(path: Path) -> str:
    """The id of the first user record; "" where there is none in the first bytes."""
    try:
        with open_stored(path) as file:
            while file.tell() < _HEAD_BYTES and (line := file.readline(_HEAD_BYTES)):
                if _USER in line and (record := parse_record(line)) is not None and record.type == "user":
                    return record.uuid if isinstance(record.uuid, str) else ""
    except (OSError, RolloutError):
        pass
    return ""


def _head(path: Path) -> bytes:
    try:
        with open_stored(path) as file:
            return file.read(_HEAD_BYTES)
    except (OSError, RolloutError):
        return b""


# --- What the lines at both ends of a Claude Code file tell of the session: where, when, how it was started, its name.

# How the client names the ways to start it. A way that is not here is taken as it is, and nobody's memory is fed by it.
_SOURCES = {"cli": "cli", "claude-vscode": "vscode", "claude-desktop": "vscode"}
_HEADLESS = "sdk-"
# Names of sessions, the user's own first. A `summary` names another session more often than its own.
_TITLES = ("custom-title", "ai-title")
_TITLED = b'-title"'


class _Line(msgspec.Struct, rename="camel"):
    """Every field is looked at alone, so that one of a strange type spoils no other."""

    type: Any = None
    timestamp: Any = None
    session_id: Any = None
    cwd: Any = None
    git_branch: Any = None
    version: Any = None
    entrypoint: Any = None
    operation: Any = None
    custom_title: Any = None
    ai_title: Any = None


_line = msgspec.json.Decoder(_Line)


@dataclass(slots=True)
class Traits:
    """Learned line by line; None where no line said anything."""

    #: Whether the first line is the first of the file.
    from_start: bool = True
    session_id: str | None = None
    cwd: str | None = None
    branch: str | None = None
    version: str | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    #: `cli`, `vscode`, `exec`, or the client's own word.
    source: str | None = None
    #: Of the lines, in their order, without repetition.
    kinds: list[str] = field(default_factory=list)
    _titles: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The best name of the session."""
        return next((self._titles[kind] for kind in _TITLES if kind in self._titles), "")

    def learn(self, line: bytes) -> None:
        """Take in a line; one that can't be read tells nothing."""
        try:
            told = _line.decode(line)
        except UNREADABLE:
            return
        if not isinstance(told.type, str):
            return
        # Without an entrypoint: versions that put every prompt of a script into a queue, and none of a person at rest.
        if told.type == "queue-operation" and told.operation == "enqueue" and self.from_start and not self.kinds:
            self.source = "exec"
        if told.type not in self.kinds and len(self.kinds) < 100:
            self.kinds.append(told.type)
        self.session_id = self.session_id or _text(told.session_id)
        self.cwd = self.cwd or _text(told.cwd)
        self.branch = _text(told.git_branch) or self.branch
        self.version = _text(told.version) or self.version
        if entrypoint := _text(told.entrypoint):
            self.source = "exec" if entrypoint.startswith(_HEADLESS) else _SOURCES.get(entrypoint, entrypoint)
        time = parse_timestamp(told.timestamp.encode()) if isinstance(told.timestamp, str) else None
        if time is not None:
            self.first_ms = self.first_ms or time
            self.last_ms = time
        title = {"custom-title": told.custom_title, "ai-title": told.ai_title}.get(told.type)
        if text := _text(title):
            self._titles[told.type] = text


def read_tail(path: Path, *, size: int, reading: Reading = READING) -> tuple[Traits, int]:
    """What the last lines tell, and where the last whole line ends.

    However much was appended, a window is enough: the client repeats its titles.
    """
    traits = Traits(from_start=False)
    return traits, read_last_lines(path, traits.learn, size=size, telling=(_TITLED,), reading=reading)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


# --- Sessions

AGENT = "claude-code"
COPIES = True
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_SESSION = re.compile(rf"({_UUID})\.jsonl")
_SUB_AGENT = re.compile(r"(agent-[\w-]{1,100})\.jsonl", re.ASCII)
_FOLDER = re.compile(_UUID)
# Workflows keep their agents' files two folders deeper.
_DEPTH = 3
_SUB_AGENTS = "subagents"


class _Described(msgspec.Struct, rename="camel"):
    """What stands beside a sub-agent's file."""

    agent_type: str = ""
    description: str = ""


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session and sub-agent under `home`, oldest first; `known` are the stamps by path."""
    files = [home.absolute()] if home.is_file() else []
    for project in _entries(home.absolute() / "projects"):
        try:
            files += _files(project.path, is_session=False, depth=_DEPTH)
        except OSError as error:
            yield Broken(project.path, f"`{project.path}` can't be looked at: {error.strerror}")
    yield from scan(files, known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session or a sub-agent's file. Raises `RolloutError` if it can't be opened, or is no file.

    What an earlier session holds too is left out, and what its user took back is marked; with `stop_after_bytes`
    neither is looked for, and the iteration ends after the line that passes that mark.
    """
    of_agent, past = _SUB_AGENT.fullmatch(path.name) is not None, NOTHING
    if not of_agent and stop_after_bytes is None:
        past = past_of(path, superseded, inherited, max_line_bytes=max_line_bytes, reading=reading)
    records = Records(ReadStats(), of_agent=of_agent, past=past, reading=reading)
    return open_stream(path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


def _files(folder: str, *, is_session: bool, depth: int) -> Iterator[Path]:
    for entry in _entries(folder):
        try:
            if _SUB_AGENT.fullmatch(entry.name) or (not is_session and _SESSION.fullmatch(entry.name)):
                if entry.is_file():
                    yield Path(entry.path)
            elif is_session:
                if depth and entry.is_dir(follow_symlinks=False):
                    yield from _files(entry.path, is_session=True, depth=depth - 1)
            elif _FOLDER.fullmatch(entry.name):
                yield from _files(os.path.join(entry.path, _SUB_AGENTS), is_session=True, depth=depth)  # noqa: PTH118
        except FileNotFoundError:  # gone since it was listed
            continue


def _session_of(path: Path) -> str | None:
    """The session in whose folder a sub-agent's file lies; older clients lay it beside the sessions."""
    folders = path.parts[-_DEPTH - 3 : -1]
    under = (name for name, below in pairwise(folders) if below == _SUB_AGENTS and _FOLDER.fullmatch(name))
    return next(under, None)


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    """What is no folder has no entries."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = str(file.path)
    traits, preview, stats = _read_head(file.path, max_line_bytes, reading)
    tail, offset = read_tail(file.path, size=file.size, reading=reading)
    if not traits.kinds and not tail.kinds:
        return Broken(path, f"`{path}` can't be used: {stats.broken or 'it has no complete record'}")
    is_agent = _SUB_AGENT.fullmatch(file.path.name) is not None
    parent = (_session_of(file.path) or traits.session_id) if is_agent else None
    described = read_description(file.path.with_suffix(".meta.json"), _Described) if is_agent else _Described()
    mtime_ms = file.mtime_ns // 1_000_000
    created = traits.first_ms or tail.first_ms or mtime_ms
    title = described.description or tail.title or traits.title
    thread = Thread(
        thread_id=f"{parent}:{file.path.stem}" if parent else _session_id(file.path, traits),
        agent=AGENT,
        rollout_path=path,
        source=_source(traits, tail, described.agent_type or "other" if is_agent else None),
        cwd=traits.cwd or tail.cwd or "",
        created_at_ms=created,
        updated_at_ms=max(tail.last_ms or mtime_ms, created),
        title=preview_text(title, max_chars=reading.preview_chars),
        preview=preview,
        parent_thread_id=parent,
        git_branch=tail.branch or traits.branch,
        cli_version=tail.version or traits.version,
    )
    return Found(thread, file.stamp(offset))


def _session_id(path: Path, traits: Traits) -> str:
    """The file's name; of one that was renamed, what it says itself."""
    return path.stem if _SESSION.fullmatch(path.name) else traits.session_id or path.stem


def _read_head(path: Path, max_line_bytes: int, reading: Reading) -> tuple[Traits, str, ReadStats]:
    """What the first bytes tell, down to the first words of the user if they are not too far away.

    In a sub-agent's file no user speaks, and its first line tells all.
    """
    of_agent = _SUB_AGENT.fullmatch(path.name) is not None
    traits, stats = Traits(), ReadStats()
    records = Records(ReadStats(), of_agent=of_agent, reading=reading)
    with open_stored(path, reading=reading) as file:
        for lines in read_batches(
            file,
            stats,
            max_line_bytes=max_line_bytes,
            stop_after_bytes=0 if of_agent else reading.long_head_bytes,
            wanted=records.may_matter,
            reading=reading,
        ):
            for line in lines:
                if stats.bytes <= reading.head_bytes:
                    traits.learn(line)
                elif b'"user"' not in line:
                    continue
                for item in records.items([line], 0):
                    if words := first_words(item, max_chars=reading.preview_chars):
                        return traits, words, stats
    return traits, "", stats


def _source(head: Traits, tail: Traits, agent_type: str | None) -> str:
    """How the session was started, in Codex's words. A session that was ever a person's is one."""
    if agent_type is not None:
        return msgspec.json.encode({"subagent": agent_type}).decode()
    sources = [traits.source for traits in (tail, head) if traits.source]
    return next((source for source in sources if source != "exec"), sources[0] if sources else "cli")
