"""The items of a Codex rollout that memory keeps, one after the other, at constant memory (spec §5.3 to §5.5, §7)."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import EmptyRollout, RolloutError
from stillroom.rollouts.fragments import without_images, without_instructions, without_memory
from stillroom.rollouts.item import Item
from stillroom.rollouts.lines import open_stored, read_lines
from stillroom.rollouts.meta import Git, SessionMeta, parse_meta
from stillroom.rollouts.policy import DROPPED_ITEMS, DROPPED_ROLES, MEMORY_ITEMS, OTHER_LINES
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.timestamps import parse_timestamp

# Codex writes the keys of a line in this order: `timestamp`, `ordinal` where there is one, `type`, `payload`.
_TIMESTAMP = b'{"timestamp":"'
_AFTER_TIMESTAMP = len('{"timestamp":"2026-11-29T12:16:15.270Z",')
_SKIPPED_LINES = frozenset(kind.encode() for kind in OTHER_LINES)
_SKIPPED_ITEMS = frozenset(kind.encode() for kind in DROPPED_ITEMS)
# Python objects take up to fifty times the room of their text.
_REPAIRED_BYTES = 1024 * 1024


class _Line(msgspec.Struct):
    type: str
    payload: msgspec.Raw
    timestamp: msgspec.Raw = msgspec.Raw(b"null")


class _Head(msgspec.Struct):
    type: str
    role: str | None = None


class _Turn(msgspec.Struct):
    cwd: str | None = None


class _Sent(msgspec.Struct):
    """A message between agents."""

    author: str = ""
    recipient: str = ""
    content: str = ""
    encrypted_content: str | None = None
    trigger_turn: bool = False


_line = msgspec.json.Decoder(_Line)
_head = msgspec.json.Decoder(_Head)
_turn = msgspec.json.Decoder(_Turn)
_sent = msgspec.json.Decoder(_Sent)


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream:
    """Open a rollout, `.jsonl` or `.jsonl.zst`. Raises `RolloutError` if the file can't be opened.

    With `stop_after_bytes` the iteration ends after the line that passes that mark.
    """
    try:
        file = open_stored(path, reading=reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error
    return ItemStream(file, path, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


class ItemStream:
    """Iterate over it once, inside `with`. `stats` is complete when the iteration has ended.

    Raises `EmptyRollout` at the end of a file without any line, and `RolloutError` where the disk fails. Nothing that
    stands in the file raises.
    """

    def __init__(
        self, file: BinaryIO, path: Path, *, max_line_bytes: int, stop_after_bytes: int | None, reading: Reading
    ) -> None:
        self.stats = ReadStats()
        #: The first `session_meta` line: who the thread is.
        self.meta: SessionMeta | None = None
        #: The newest that a `session_meta` line of this thread tells.
        self.git: Git | None = None
        #: When that line was written.
        self.first_ms: int | None = None
        self._file = file
        self._path = path
        self._items = self._read(
            max_line_bytes, stop_after_bytes if stop_after_bytes is not None else sys.maxsize, reading
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        self._items.close()
        self._file.close()

    def __iter__(self) -> Iterator[Item]:
        return self._items

    def _read(self, max_line_bytes: int, stop: int, reading: Reading) -> Generator[Item, None, None]:
        stats = self.stats
        lines = read_lines(self._file, stats, max_line_bytes=max_line_bytes, wanted=_may_matter, reading=reading)
        some = False
        try:
            for line in lines:
                some = True
                if not _may_matter(line):
                    if not line.rstrip().endswith(b"}"):
                        self._count_bad()
                elif (item := self._item(line)) is not None:
                    stats.kept += 1
                    yield item
                if stats.bytes > stop:
                    break
        except OSError as error:
            raise RolloutError(f"`{self._path}` can't be read: {error.strerror}") from error
        if not some:
            raise EmptyRollout(f"`{self._path}` holds no line")

    def _item(self, text: bytes) -> Item | None:
        try:
            line = _line.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            repaired = _repair(text)
            if repaired is None:
                self._count_bad()
                return None
            line = repaired
        payload = _utf8(bytes(line.payload))
        try:
            if line.type == "response_item":
                return self._response_item(payload, line)
            if line.type == "inter_agent_communication":
                return self._made(_agent_message(_sent.decode(payload)), line, type="agent_message")
            if line.type == "session_meta":
                self._learn(parse_meta(payload), line)
            elif line.type == "turn_context":
                self.stats.last_cwd = _turn.decode(payload).cwd or self.stats.last_cwd
            elif line.type not in OTHER_LINES:
                self.stats.count_unknown(line.type)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._count_bad()
        return None

    def _response_item(self, payload: bytes, line: _Line) -> Item | None:
        head = _head.decode(payload)
        if head.type not in MEMORY_ITEMS:
            if head.type not in DROPPED_ITEMS:
                self.stats.count_unknown(f"response_item/{head.type}")
            return None
        user = False
        kept: bytes | None = payload
        if head.type == "message":
            if head.role in DROPPED_ROLES:
                return None
            user = head.role == "user"
            if user:
                kept = without_instructions(payload)
        if kept is not None:
            kept = without_memory(kept, user=user)
        return self._made(kept, line, type=head.type, role=head.role) if kept is not None else None

    def _made(self, raw: bytes, line: _Line, *, type: str, role: str | None = None) -> Item:
        raw, images = without_images(raw)
        self.stats.images += images
        return Item(type, role, raw, _time(line), self.stats.lines)

    def _learn(self, meta: SessionMeta, line: _Line) -> None:
        if self.meta is None:
            self.meta = meta
            self.first_ms = _time(line)
        # A fork carries the lines of the thread that it was made from.
        if meta.id == self.meta.id:
            self.stats.memory_mode = meta.memory_mode or self.stats.memory_mode
            self.stats.last_cwd = meta.cwd or self.stats.last_cwd
            self.git = meta.git or self.git

    def _count_bad(self) -> None:
        if not self.stats.torn:
            self.stats.bad_lines += 1


def _may_matter(line: bytes) -> bool:
    """False only if the first bytes of `line` say that it holds nothing for memory; no JSON is decoded."""
    if not line.startswith(_TIMESTAMP):
        return True
    at = _AFTER_TIMESTAMP
    if line.startswith(b'"ordinal":', at):
        comma = line.find(b",", at, at + 32)
        if not line[at + 10 : comma].isdigit():
            return True
        at = comma + 1
    if line[_AFTER_TIMESTAMP - 2 : _AFTER_TIMESTAMP] != b'",' or not line.startswith(b'"type":"', at):
        return True
    at += 8
    kind = line[at : line.find(b'"', at, at + 64)]
    if kind == b"response_item":
        at += len(b'response_item"')
        if not line.startswith(b',"payload":{"type":"', at):
            return True
        at += len(b',"payload":{"type":"')
        return line[at : line.find(b'"', at, at + 64)] not in _SKIPPED_ITEMS
    return kind not in _SKIPPED_LINES


def _time(line: _Line) -> int | None:
    return parse_timestamp(bytes(line.timestamp)[1:-1])


def _utf8(raw: bytes) -> bytes:
    if raw.isascii():
        return raw
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace").encode()
    return raw


def _repair(text: bytes) -> _Line | None:
    """A second, more tolerant look: NULs of a crash before the line, bare control characters, half surrogate pairs."""
    if len(text) > _REPAIRED_BYTES:
        return None
    try:
        value = json.loads(text.lstrip(b"\0").decode("utf-8", "replace"), strict=False)
        clean = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return _line.decode(clean.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _agent_message(sent: _Sent) -> bytes:
    """The `agent_message` item that a message between agents stands for; what is encrypted tells nobody anything."""
    text = sent.content
    if sent.encrypted_content:
        kind = "NEW_TASK" if sent.trigger_turn else "MESSAGE"
        text = f"{kind} from {sent.author} to {sent.recipient}: [encrypted: {len(sent.encrypted_content)} bytes]"
    return msgspec.json.encode(
        {
            "type": "agent_message",
            "author": sent.author,
            "recipient": sent.recipient,
            "content": [{"type": "input_text", "text": text}],
        }
    )
