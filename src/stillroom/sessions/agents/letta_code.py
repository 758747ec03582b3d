"""Find Letta Code's threads: one folder a conversation, of those that the client keeps on this machine."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.conversation import UNREADABLE, text_of, time_of
from stillroom.sessions.discovery import Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.metadata import Times, read_description, read_head, read_tail
from stillroom.sessions.normalize import NormalizedItem
from stillroom.sessions.pi_messages import Message, MessageDecoder, Shell, sent_at, texts_of
from stillroom.sessions.speech import preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_stream
from stillroom.thread import FileStamp, Thread

# --- The messages of Letta Code's local backend as the items that memory keeps.

# The client used to give messages times of its own, a second apart from the first one of 2026 on.
_INVENTED_MS = range(1_767_225_600_000, 1_767_225_600_000 + 24 * 3600 * 1000)
_EXITED = re.compile(r"Exit code: (-?\d{1,10})(?:\n|\Z)")
_IN_BACKGROUND = "Command running in background"
_REMINDER = "<system-reminder>"
_CWD = re.compile(r"^- \*\*Current working directory\*\*: ([^\n]{1,4096})$", re.MULTILINE)
_VERSION = re.compile(r"^- \*\*Letta Code version\*\*: (\S{1,40})$", re.MULTILINE)
_BRANCH = re.compile(r"^- \*\*Git repository\*\*: Yes \(branch: ([^)\n]{1,200})\)", re.MULTILINE)


class _Metadata(msgspec.Struct):
    created_at: Any = None
    agent_id: Any = None
    conversation_id: Any = None
    compaction: Any = None


class Line(Message, rename="camel"):
    """A line: a message with an id."""

    id: Any = None
    metadata: _Metadata | None = None


class Place(NamedTuple):
    """What the client tells its model of where it is; "" where it doesn't."""

    cwd: str
    branch: str
    version: str


line_of = msgspec.json.Decoder(Line).decode


class Records(MessageDecoder):
    """Decodes the lines of one conversation."""

    scaffolding = "system-reminder"
    _at: int | None = None

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a message, at its own time, or at the last one known."""
        read = line_of(line)
        if isinstance(read.id, str) and not self.is_new(f"message {read.id}"):
            return None, ()
        self._at = time_of_line(read) or self._at
        if read.metadata is not None and read.metadata.compaction is not None:
            self.stats.drop("compaction summary")
            return None, ()
        self.cwd = place_of(read).cwd or self.cwd
        return self._at, self.of_message(read, text_of(read.id))

    def shell(self, text: str, *, failed: bool) -> Shell:
        """The exit code of a command that failed stands in the first line, although nothing is marked as an error."""
        if (match := _EXITED.match(text)) is not None:
            return Shell(text[match.end() :], int(match[1]))
        return Shell(text, None if failed or text.startswith(_IN_BACKGROUND) else 0)


def time_of_line(line: Line) -> int | None:
    """When a message was sent, as far as that is no time that the client made up."""
    created = line.metadata.created_at if line.metadata is not None else None
    times = (sent_at(line), time_of(created))
    return next((time for time in times if time is not None and time not in _INVENTED_MS), None)


def place_of(line: Line) -> Place:
    """What the reminders of a user's message tell."""
    reminders = [text for text in texts_of(line) if text.startswith(_REMINDER)] if line.role == "user" else []
    found = [
        next((m[1] for text in reminders if (m := pattern.search(text))), "") for pattern in (_CWD, _BRANCH, _VERSION)
    ]
    return Place(*(text_of(value) for value in found))


# --- Sessions

AGENT = "letta-code"
COPIES = False
_ID = re.compile(r"[\w.-]{1,100}", re.ASCII)
_SUB_AGENT = "role:subagent"
# An agent's holds its system prompt, and a conversation's the ids of its messages.
_MAX_DESCRIPTION_BYTES = 1024 * 1024


class _Conversation(msgspec.Struct):
    id: Any = None
    agent_id: Any = None
    archived: Any = None
    summary: Any = None


class _Manifest(msgspec.Struct):
    created_at: Any = None


class _Agent(msgspec.Struct):
    tags: list[Any] = []


@dataclass(slots=True)
class _Traits(Times):
    """What the lines at both ends tell."""

    agent_id: str = ""
    conversation_id: str = ""
    cwd: str = ""
    branch: str = ""
    version: str = ""

    def learn(self, line: bytes) -> None:
        try:
            read = line_of(line)
        except UNREADABLE:
            return
        if read.metadata is not None and not self.agent_id:
            self.agent_id = text_of(read.metadata.agent_id)
            self.conversation_id = text_of(read.metadata.conversation_id)
        # Of the last line; none if it has no real time.
        self.last_ms = time_of_line(read)
        self.first_ms = self.first_ms or self.last_ms
        place = place_of(read)
        self.cwd = self.cwd or place.cwd
        self.branch, self.version = place.branch or self.branch, place.version or self.version


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every conversation under `home`, oldest first."""
    yield from scan(_files(home.absolute()), known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a conversation's messages. Raises `RolloutError` if they can't be opened."""
    records = Records(ReadStats(), of_agent=_is_sub_agent(path, _conversation(path)), reading=reading)
    return open_stream(path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


def _files(home: Path) -> Iterator[Path]:
    if home.is_file():
        yield home
    yield from (path for path in home.glob("conversations/*/messages.jsonl") if _is_used(path))


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    told = _conversation(path)
    is_agent = _is_sub_agent(path, told)
    traits = _Traits()
    records = Records(ReadStats(), of_agent=is_agent, reading=reading)
    preview = read_head(path, records, traits.learn, max_line_bytes=max_line_bytes, reading=reading)
    offset = read_tail(path, traits.learn, size=file.size, reading=reading)
    agent_id = text_of(told.agent_id) or traits.agent_id
    conversation_id = text_of(told.id) or traits.conversation_id
    if _ID.fullmatch(agent_id) is None or _ID.fullmatch(conversation_id) is None:
        raise RolloutError(f"`{path}` can't be used: neither its messages nor `conversation.json` say whose it is")
    manifest = read_description(path.with_name("manifest.json"), _Manifest)
    span = traits.span(file, began_ms=time_of(manifest.created_at))
    thread = Thread(
        # Ids of conversations are counted from 1 on every machine.
        thread_id=f"{agent_id}:{conversation_id}",
        agent=AGENT,
        rollout_path=str(path),
        source='{"subagent":"other"}' if is_agent else "cli",
        cwd=traits.cwd,
        created_at_ms=span.began,
        updated_at_ms=span.went_on,
        title=preview_text(text_of(told.summary), max_chars=reading.preview_chars),
        preview=preview,
        archived=told.archived is True,
        git_branch=traits.branch or None,
        cli_version=traits.version or None,
    )
    return Found(thread, file.stamp(offset))


def _conversation(path: Path) -> _Conversation:
    return read_description(path.with_name("conversation.json"), _Conversation, max_bytes=_MAX_DESCRIPTION_BYTES)


def _is_used(path: Path) -> bool:
    """Each agent has a conversation in which nothing may ever have been said: it is a lone newline."""
    try:
        return path.stat().st_size > 1
    except OSError:
        return False


def _is_sub_agent(path: Path, told: _Conversation) -> bool:
    """Whether the conversation is one of an agent that another agent made for a task."""
    name = base64.urlsafe_b64encode(text_of(told.agent_id)[:200].encode("utf-8", "replace")).decode().rstrip("=")
    agent = path.parent.parent.parent / "agents" / f"{name}.json"
    return _SUB_AGENT in read_description(agent, _Agent, max_bytes=_MAX_DESCRIPTION_BYTES).tags
