"""Find message histories of programs built with Pydantic AI: a file each, a JSON list or lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.conversation import LineDecoder, text_of, time_of
from stillroom.sessions.discovery import Discovery, File, Found
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.lists import list_files, open_list, raw_lines, read_end, scan_lists
from stillroom.sessions.metadata import preview_of, read_small
from stillroom.sessions.names import thread_id
from stillroom.sessions.normalize import NormalizedItem, function_call, said_by_assistant, said_by_user
from stillroom.sessions.programs import Content, content_of, prompt_of, returned
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream
from stillroom.sessions.timestamps import parse_timestamp
from stillroom.thread import FileStamp, Thread

# --- Pydantic AI's message history as the items that memory keeps.

# Known, and nothing for memory.
_PASSED_OVER_NAMES = """
    thinking file instruction instruction-baseline instruction-delta instruction-digest capability-load-delta
    model-settings-delta tool-availability-delta
"""
_PASSED_OVER = frozenset(_PASSED_OVER_NAMES.split())
_CALLS = frozenset({"tool-call", "builtin-tool-call"})
_RETURNS = frozenset({"tool-return", "builtin-tool-return"})


class _Part(msgspec.Struct):
    part_kind: Any = None
    content: Any = None
    tool_name: Any = None
    tool_call_id: Any = None
    args: Any = None
    outcome: Any = None
    speaker: Any = None
    transcript: Any = None


class Message(msgspec.Struct):
    """A request to a model, or its response."""

    kind: str
    parts: msgspec.Raw = msgspec.Raw(b"[]")
    timestamp: Any = None

    @property
    def key(self) -> int:
        """The same for the same message wherever it is stored: parts have times, and ids of calls."""
        return hash((self.kind, text_of(self.timestamp), bytes(self.parts)))


_message = msgspec.json.Decoder(Message)
_messages = msgspec.json.Decoder(list[msgspec.Raw])
_parts = msgspec.json.Decoder(list[_Part])


def messages_of(line: bytes) -> Iterator[Message]:
    """The message, or the messages, of a line. Raises one of `UNREADABLE`."""
    if line.lstrip().startswith(b"["):
        yield from map(_message.decode, _messages.decode(line))
    else:
        yield _message.decode(line)


class Records(LineDecoder):
    """Decodes the messages of one file; `inherited` are the keys of those that another file holds too."""

    def __init__(self, stats: ReadStats, *, inherited: Set[int] = frozenset(), reading: Reading = READING) -> None:
        super().__init__(stats, reading=reading)
        self._inherited = inherited
        #: Messages that were understood.
        self.understood = 0
        self.first_ms: int | None = None

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a message, or of a list of them."""
        at: int | None = None
        made: list[NormalizedItem] = []
        for message in messages_of(line):
            time = time_of(message.timestamp)
            at = at or time
            self.first_ms = self.first_ms or time
            if message.key in self._inherited:
                self.stats.drop("seen before")
            elif self.is_new(str(message.key)):
                made += self._message(message)
        return at, made

    def _message(self, message: Message) -> Iterator[NormalizedItem]:
        if message.kind not in ("request", "response"):
            self.stats.count_unknown(f"message/{message.kind}")
            return
        self.understood += 1
        for part in _parts.decode(message.parts):
            kind = text_of(part.part_kind)
            if kind in _CALLS:
                yield from self._call(part)
            elif kind in _RETURNS or (kind == "retry-prompt" and part.tool_name):
                yield from self._result(part, kind)
            elif kind == "user-prompt":
                yield from self._prompt(content_of(part.content))
            elif kind == "text":
                yield from map(said_by_assistant, content_of(part.content).texts)
            elif kind == "speech":
                yield from self._speech(part)
            elif kind == "system-prompt":
                self.stats.drop("instructions")
            elif kind == "compaction":
                self.stats.drop("compaction summary")
            elif kind in ("retry-prompt", "retry-feedback"):
                self.stats.drop("written by the client")
            elif kind not in _PASSED_OVER:
                self.stats.count_unknown(f"{message.kind}/{kind}")

    def _prompt(self, content: Content) -> Iterator[NormalizedItem]:
        self.stats.images += content.images
        if words := prompt_of(content):
            yield said_by_user(*words)
        else:
            self.stats.drop("nothing said")

    def _speech(self, part: _Part) -> Iterator[NormalizedItem]:
        if part.speaker == "user":
            yield from self._prompt(content_of(part.transcript))
        else:
            yield from map(said_by_assistant, content_of(part.transcript).texts)

    def _call(self, part: _Part) -> Iterator[NormalizedItem]:
        call_id = text_of(part.tool_call_id)
        raw = part.args.encode() if isinstance(part.args, str) else msgspec.json.encode(part.args)
        if not call_id or self.is_new(f"call {call_id}"):
            yield self.called(call_id, function_call(text_of(part.tool_name), raw, call_id))

    def _result(self, part: _Part, kind: str) -> Iterator[NormalizedItem]:
        call_id = text_of(part.tool_call_id)
        if not call_id or self.is_new(f"result {call_id}"):
            # Newer versions tell how it ended; older ones only what had to be called again.
            ok = kind in _RETURNS and part.outcome in ("success", None)
            yield returned(self.call_of(call_id), call_id, part.content, ok=ok)


# --- Histories that hold all of an earlier one: a program that stores the whole history after each run writes such.

# Quotes inside of strings are escaped: nothing that was said can pose as this key.
_CONVERSATION = re.compile(rb'"conversation_id":\s*"([^"\\]{1,200})"')


def inherited(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The keys of messages that an earlier file of the folder holds too: all of it stands in this one.

    Of two equal files the one that comes first by its name is the earlier. Raises `OSError` or `RolloutError`.
    """
    conversation = _conversation(path)
    if not conversation:
        return frozenset()
    others = (other for other in list_files(path.parent, deep=False) if other != path)
    same = islice((other for other in others if _conversation(other) == conversation), reading.copies_looked_at)
    own: frozenset[int] | None = None
    taken: set[int] = set()
    for other in same:
        own = own if own is not None else _keys(path, max_line_bytes, reading)
        try:
            theirs = _keys(other, max_line_bytes, reading)
        except (OSError, RolloutError):
            continue  # it fails alone
        if theirs < own or (theirs == own and other.name < path.name):
            taken |= theirs
    return frozenset(taken)


def _conversation(path: Path) -> bytes:
    found = _CONVERSATION.search(read_small(path))
    return found[1] if found else b""


def _keys(path: Path, max_line_bytes: int, reading: Reading) -> frozenset[int]:
    keys: set[int] = set()
    for line in raw_lines(path, max_line_bytes=max_line_bytes, reading=reading):
        try:
            keys.update(message.key for message in messages_of(line))
        except UNREADABLE:
            continue
        if len(keys) > reading.remembered_records:
            break
    return frozenset(keys)


# --- Sessions

AGENT = "pydantic-ai"
COPIES = True
_TIME = re.compile(rb'"timestamp":\s*"([^"\\]{20,40})"')


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at the history `root`, or at those under that folder, oldest first."""
    yield from scan_lists(
        root.absolute(),
        known,
        lambda file: _look(file, max_line_bytes, reading),
        lacking="no message of Pydantic AI's",
    )


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a history. Raises `RolloutError` if it can't be opened.

    What an earlier file of the same conversation holds is left out; with `stop_after_bytes` it is not looked for.
    """
    taken: frozenset[int] = frozenset()
    if stop_after_bytes is None:
        try:
            taken = inherited(path, max_line_bytes=max_line_bytes, reading=reading)
        except OSError as error:
            raise RolloutError(f"`{path}` can't be read: {error.strerror}") from error
    return open_list(
        path,
        Records(ReadStats(), inherited=taken, reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _look(file: File, max_line_bytes: int, reading: Reading) -> Found | None:
    path = file.path
    with open_items(
        path, max_line_bytes=max_line_bytes, stop_after_bytes=reading.long_head_bytes, reading=reading
    ) as items:
        preview = preview_of(items, reading=reading)
        head = items.decoder
    if not head.understood:
        return None
    written = file.mtime_ns // 1_000_000
    times = map(parse_timestamp, _TIME.findall(read_end(path, file.size, reading=reading)))
    updated = max((time for time in times if time is not None), default=written)
    thread = Thread(
        thread_id=thread_id(path, path.stem),
        agent=AGENT,
        rollout_path=str(path),
        source="cli",  # of whoever it is: a person named this place as a source
        cwd="",
        created_at_ms=min(head.first_ms or updated, updated),
        updated_at_ms=updated,
        title=path.stem,
        preview=preview,
    )
    return Found(thread, file.stamp(file.size))
