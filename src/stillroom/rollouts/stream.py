"""The items of a Codex rollout that memory keeps, one after the other, at constant memory (spec §5.3 to §5.5, §7)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import EmptyRollout, RolloutError
from stillroom.rollouts.fragments import IMAGE_TAG, MEMORY_TAG, clean
from stillroom.rollouts.item import Item
from stillroom.rollouts.lines import open_stored, read_lines
from stillroom.rollouts.meta import Git, SessionMeta, parse_meta
from stillroom.rollouts.policy import DROPPED_ITEMS, DROPPED_ROLES, MEMORY_ITEMS, OTHER_LINES
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.timestamps import parse_timestamp

# Codex writes the keys of a line in this order: `timestamp`, `ordinal` where there is one, `type`, `payload`. The first
# bytes then tell what a line is, and most lines need no more than this look.
_START = re.compile(rb'\{"timestamp":"([^"\\]{20,40})",(?:"ordinal":\d{1,18},)?"type":"(\w{1,64})"')
_ITEM = re.compile(rb',"payload":\{"type":"(\w{1,64})"(?:(?:,"(?:id|status)":"[^"\\]*")*,"role":"(\w{1,32})")?')
_OTHER_LINES = frozenset(kind.encode() for kind in OTHER_LINES)
# Half of all lines.
_EVENT = b'"type":"event_msg"'
_TIMESTAMP = b'{"timestamp":"'
_KEPT_KINDS = {kind.encode(): kind for kind in MEMORY_ITEMS}
_DROPPED_KINDS = frozenset(kind.encode() for kind in DROPPED_ITEMS)
_DROPPED_ROLES = frozenset(role.encode() for role in DROPPED_ROLES)
# Python objects take up to fifty times the room of their text.
_REPAIRED_BYTES = 1024 * 1024


class _Line(msgspec.Struct):
    type: str
    payload: msgspec.Raw
    timestamp: msgspec.Raw = msgspec.Raw(b"null")


class _Payload(msgspec.Struct):
    payload: msgspec.Raw


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
_payload = msgspec.json.Decoder(_Payload)
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
        # Where `"type"` stood in the line before; in the next it most often stands there again.
        at = 0
        try:
            for line in lines:
                some = True
                if line.startswith(_EVENT, at) and line.startswith(_TIMESTAMP):
                    if line[-2:] != b"}\n":
                        self._passed_over(line)
                else:
                    start = _START.match(line)
                    if start is not None:
                        at = start.start(2) - len(b'"type":"')
                    if (item := self._item(line, start)) is not None:
                        stats.kept += 1
                        yield item
                if stats.bytes > stop:
                    break
        except OSError as error:
            raise RolloutError(f"`{self._path}` can't be read: {error.strerror}") from error
        if not some:
            raise EmptyRollout(f"`{self._path}` holds no line")

    def _passed_over(self, line: bytes) -> None:
        if not line.rstrip().endswith(b"}"):
            self._count_bad()

    def _item(self, text: bytes, start: re.Match[bytes] | None) -> Item | None:
        """The item of a line, with as little decoding as its first bytes allow."""
        if start is not None and start[2] in _OTHER_LINES:
            self._passed_over(text)
            return None
        if start is None or start[2] != b"response_item" or (head := _ITEM.match(text, start.end())) is None:
            return self._decoded(text)
        kind, role = head.groups()
        if kind in _DROPPED_KINDS or role in _DROPPED_ROLES:
            self._passed_over(text)
            return None
        known = _KEPT_KINDS.get(kind)
        if known is None or (known == "message" and role is None):
            return self._decoded(text)
        try:
            payload = bytes(_payload.decode(text).payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._decoded(text)
        if not payload.isascii():
            payload = _utf8(payload)
        return self._kept(payload, known, role.decode() if role is not None else None, parse_timestamp(start[1]))

    def _decoded(self, text: bytes) -> Item | None:
        """The item of any line."""
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
                head = _head.decode(payload)
                if head.type in MEMORY_ITEMS:
                    return self._kept(payload, head.type, head.role, _time(line))
                if head.type not in DROPPED_ITEMS:
                    self.stats.count_unknown(f"response_item/{head.type}")
            elif line.type == "inter_agent_communication":
                return self._kept(_agent_message(_sent.decode(payload)), "agent_message", None, _time(line))
            elif line.type == "session_meta":
                self._learn(parse_meta(payload), line)
            elif line.type == "turn_context":
                self.stats.last_cwd = _turn.decode(payload).cwd or self.stats.last_cwd
            elif line.type not in OTHER_LINES:
                self.stats.count_unknown(line.type)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._count_bad()
        return None

    def _kept(self, raw: bytes, kind: str, role: str | None, timestamp_ms: int | None) -> Item | None:
        """An item of a kind that memory keeps, unless nothing is left of it (spec §7)."""
        if kind == "message":
            if role in DROPPED_ROLES:
                return None
        else:
            role = None
        if role == "user" or MEMORY_TAG in raw or IMAGE_TAG in raw:
            try:
                cleaned, images = clean(raw, user=role == "user")
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                self._count_bad()
                return None
            if cleaned is None:
                return None
            raw = cleaned
            self.stats.images += images
        return Item(kind, role, raw, timestamp_ms, self.stats.lines)

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
    """False only if the first bytes of `line` say that it holds nothing for memory."""
    start = _START.match(line)
    if start is None or start[2] != b"response_item":
        return start is None or start[2] not in _OTHER_LINES
    head = _ITEM.match(line, start.end())
    return head is None or not (head[1] in _DROPPED_KINDS or head[2] in _DROPPED_ROLES)


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
