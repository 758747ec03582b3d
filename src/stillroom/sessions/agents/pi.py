"""Find the pi agent's threads: one file a session, in a folder for each project."""

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
from stillroom.sessions.conversation import NOTHING, UNREADABLE, lines_of, past_of, text_of, time_of
from stillroom.sessions.discovery import Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.jsonl import open_stored
from stillroom.sessions.metadata import Times, read_head, read_tail
from stillroom.sessions.normalize import NormalizedItem
from stillroom.sessions.pi_messages import Message, MessageDecoder, Shell, sent_at
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_stream
from stillroom.sessions.tree import Tree
from stillroom.thread import FileStamp, Thread

# --- The entries of the pi agent's sessions as the items that memory keeps.

# What is said of the session itself; nothing in it was said or done.
_NOISE_NAMES = """
    context_edit context_transform credential_pin custom ephemeral label mcp_tool_selection mode_change model_change
    model_usage reset_boundary service_tier_change session session_info session_init thinking_level_change title_change
    ttsr_injection usage
"""
_NOISE = frozenset(_NOISE_NAMES.split())
_SUMMARIES = frozenset({"compaction", "branch_summary"})
_EXITED = re.compile(r"\n*Command exited with code (-?\d{1,10})\s*\Z")


class Entry(msgspec.Struct, rename="camel"):
    """A line."""

    type: Any = None
    id: Any = None
    parent_id: Any = None
    timestamp: Any = None
    cwd: Any = None
    message: Message | None = None


entry_of = msgspec.json.Decoder(Entry).decode


class Records(MessageDecoder):
    """Decodes the lines of one file. The past's prompts are known by their ids, its other records by their keys."""

    # The last two: a skill's text, and files that were named on the command line.
    scaffolding = "system-reminder|skill(?= name=)|file(?= name=)"

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of an entry."""
        entry = entry_of(line)
        kind = text_of(entry.type)
        if entry.message is not None and kind == "message":
            if not self.is_new(key_of(entry, line)):
                return None, ()
            at = time_of(entry.timestamp) or sent_at(entry.message)
            return at, self.of_message(entry.message, text_of(entry.id))
        if kind == "session":
            self.cwd = self.cwd or text_of(entry.cwd) or None
        elif kind == "custom_message":
            self.stats.drop("written by the client")
        elif kind in _SUMMARIES:
            self.stats.drop("compaction summary")
        elif kind not in _NOISE:
            self.stats.count_unknown(kind or "line")
        return None, ()

    def shell(self, text: str, *, failed: bool) -> Shell:
        """The exit code stands behind the output of a command that failed; of one that was stopped there is none."""
        if not failed:
            return Shell(text, 0)
        match = _EXITED.search(text, max(len(text) - 200, 0))
        return Shell(text[: match.start()], int(match[1])) if match else Shell(text, None)


def key_of(entry: Entry, line: bytes) -> str:
    """What tells an entry from all others of all sessions: ids are short, and the oldest versions have none."""
    return f"{entry.id} {entry.timestamp}" if isinstance(entry.id, str) else str(hash(line.rstrip()))


# --- What a session of the pi agent took over from another one, and which prompts its user went back behind.

#: The name of a session's file: when it began, and its id.
NAME = re.compile(r"\d{4}-\d\d-\d\dT[\d-]{6,20}Z?_[\w.-]{1,120}\.jsonl", re.ASCII)


_START = re.compile(
    rb'\{"type":"message","id":"([\w-]{1,80})","parentId":(?:null|"([\w-]{1,80})"),"timestamp":"([\w:.+-]{1,40})"'
    rb',"message":\{"role":"(\w{1,40})"'
)


class _Header(msgspec.Struct, rename="camel"):
    parent_session: Any = None
    branched_from: Any = None


def superseded(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The ids of the prompts that were left behind, as hashes. Raises `OSError` or `RolloutError`."""
    tree = Tree(max_records=reading.remembered_records)
    for line in lines_of(path, max_line_bytes=max_line_bytes, reading=reading):
        if (start := _START.match(line)) is not None:
            # As the client writes it: nothing else of an entry has to be decoded.
            is_prompt = start[4] == b"user"
            tree.add(start[1].decode(), start[2].decode() if start[2] else None, is_prompt=is_prompt)
            continue
        entry = _entry(line)
        if isinstance(entry.id, str) and entry.type != "session":
            parent = entry.parent_id if isinstance(entry.parent_id, str) else None
            tree.add(entry.id, parent, is_prompt=entry.message is not None and entry.message.role == "user")
    return tree.left()


def inherited(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The keys of the entries that the session holds from which this one was forked, as hashes; none if that is gone.

    A fork copies entries as they are, and its header names where they come from. Raises `OSError` or `RolloutError`.
    """
    origin = _origin(path)
    if origin is None:
        return frozenset()
    lines = islice(lines_of(origin, max_line_bytes=max_line_bytes, reading=reading), reading.remembered_records)
    return frozenset(hash(_key(line)) for line in lines)


def _origin(path: Path) -> Path | None:
    """The named file: in the same folder, or in that of another project. Nothing outside of the sessions is opened."""
    with open_stored(path) as file:
        first = file.readline(READING.head_bytes)
    try:
        header = msgspec.json.decode(first, type=_Header)
    except UNREADABLE:
        return None
    named = re.split(r"[/\\]", text_of(header.parent_session) or text_of(header.branched_from))[-1]
    if NAME.fullmatch(named) is None or named == path.name:
        return None
    places = [path.with_name(named), *path.parent.parent.glob(f"*/{named}")]
    return next((place for place in places if place.is_file()), None)


def _key(line: bytes) -> str:
    start = _START.match(line)
    return key_of(_entry(line), line) if start is None else f"{start[1].decode()} {start[3].decode()}"


def _entry(line: bytes) -> Entry:
    try:
        return entry_of(line)
    except UNREADABLE:
        return Entry()


# --- Sessions

AGENT = "pi"
COPIES = True
_ID = re.compile(r"[\w.-]{1,120}", re.ASCII)
#: Under the agent's own folder, or under one that the user chose for sessions.
_PLACES = ("sessions/*/*.jsonl", "*/*.jsonl", "*.jsonl")


class _Line(msgspec.Struct):
    type: Any = None
    id: Any = None
    timestamp: Any = None
    cwd: Any = None
    #: In the header of a fork of the client; in entries as a name, or a title.
    title: Any = None
    name: Any = None


_line = msgspec.json.Decoder(_Line)


@dataclass(slots=True)
class _Traits(Times):
    """What the lines at both ends tell."""

    session_id: str = ""
    cwd: str = ""
    title: str = ""

    def learn(self, line: bytes) -> None:
        try:
            told = _line.decode(line)
        except UNREADABLE:
            return
        self.saw(time_of(told.timestamp))
        if told.type == "session" and not self.session_id:
            self.session_id, self.cwd, self.title = text_of(told.id), text_of(told.cwd), text_of(told.title)
        elif told.type in ("session_info", "title_change"):
            self.title = text_of(told.name) or text_of(told.title) or self.title


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session under `home`, oldest first."""
    yield from scan(_files(home.absolute()), known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session. Raises `RolloutError` if it can't be opened.

    What the session that it was forked from holds too is left out, and what its user left behind is marked; with
    `stop_after_bytes` neither is looked for.
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
    for path in (path for place in _PLACES for path in home.glob(place) if NAME.fullmatch(path.name)):
        yield path
        yield from path.with_suffix("").glob("*.jsonl")


def _is_sub_agent(path: Path) -> bool:
    """Of a fork of the client: its sub-agents' files lie in a folder that is named as the session."""
    return NAME.fullmatch(f"{path.parent.name}.jsonl") is not None


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    traits = _Traits()
    is_agent = _is_sub_agent(path)
    records = Records(ReadStats(), of_agent=is_agent, reading=reading)
    preview = read_head(path, records, traits.learn, max_line_bytes=max_line_bytes, reading=reading)
    offset = read_tail(path, traits.learn, size=file.size, telling=(b'"session_info"',), reading=reading)
    if _ID.fullmatch(traits.session_id) is None:
        raise RolloutError(f"`{path}` can't be used: it has no header")
    span = traits.span(file)
    thread = Thread(
        thread_id=traits.session_id,
        agent=AGENT,
        rollout_path=str(path),
        source='{"subagent":"other"}' if is_agent else "cli",
        cwd=traits.cwd,
        created_at_ms=span.began,
        updated_at_ms=span.went_on,
        title=preview_text(traits.title, max_chars=reading.preview_chars),
        preview=preview,
        parent_thread_id=path.parent.name.partition("_")[2] if is_agent else None,
    )
    return Found(thread, file.stamp(offset))
