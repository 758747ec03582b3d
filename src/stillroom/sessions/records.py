"""One line of a Codex rollout as the item that memory keeps, with as little decoding as its first bytes allow."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from stillroom.sessions.fragments import Message, clean, is_marked, keeps_all_parts
from stillroom.sessions.item import MESSAGES, Item, valid_utf8
from stillroom.sessions.meta import Git, SessionMeta, meta_id, parse_meta
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.timestamps import parse_timestamp

# --- What of a Codex rollout may feed memory (spec §5.5).

MEMORY_ITEMS = frozenset(
    {
        "message",
        "agent_message",
        "local_shell_call",
        "function_call",
        "function_call_output",
        "tool_search_call",
        "tool_search_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "web_search_call",
    }
)
"""Kinds of `ResponseItem` that memory keeps; messages unless their role is `developer`."""

DROPPED_ITEMS = frozenset(
    {
        "reasoning",
        "image_generation_call",
        "compaction",
        "compaction_summary",
        "context_compaction",
        "compaction_trigger",
        "additional_tools",
        "other",
    }
)
"""Kinds that are known and never kept."""

OTHER_LINES = frozenset(
    {
        "inter_agent_communication_metadata",
        "compacted",
        "world_state",
        "security_risk_score",
        "event_msg",
        "token_usage_record",
        "realtime_item",
        "retained_context",
    }
)
"""Kinds of lines that are known and hold nothing for memory."""

DROPPED_ROLES = frozenset({"developer", "system"})
"""The harness speaking: instructions, and memory itself when it was injected."""


# Codex writes the keys of a line in this order: `timestamp`, `ordinal` where there is one, `type`, `payload`. The first
# bytes then tell what a line is, and most lines need no more than this look.
_BEFORE_TYPE = re.compile(rb'\{"timestamp":"(?P<time>[^"\\]{20,40})",(?:"ordinal":\d{1,18},)?')
_START = re.compile(
    _BEFORE_TYPE.pattern + rb'"type":"(?:response_item","payload":\{"type":"(?P<kind>\w{1,64})"'
    rb'(?:(?:,"(?:id|status)":"[^"\\]*")*,"role":"(?P<role>\w{1,32})")?|(?P<line>\w{1,64})")'
)
_OTHER_LINES = frozenset(kind.encode() for kind in OTHER_LINES)
_KEPT_KINDS = {kind.encode(): kind for kind in MEMORY_ITEMS}
_DROPPED_KINDS = frozenset(kind.encode() for kind in DROPPED_ITEMS)
_DROPPED_ROLES = frozenset(role.encode() for role in DROPPED_ROLES)
# The same look where it is guessed already at which byte `"type"` stands.
# Quotes inside of strings are escaped: nothing that a session says can pose as a key. Of lines without use damage ahead
# of that place is not noticed, as damage behind it isn't; items are decoded.
_TYPE = b'"type":"'
_TIMESTAMP = b'{"timestamp":"'
_EVENT = b'"type":"event_msg"'
_ITEM = b'"type":"response_item","payload":{"type":"'
_TURN = b'"type":"turn_context"'
_META = b'"type":"session_meta"'
_MESSAGE = _ITEM + b'message"'
_PASSED_OVER = (
    _EVENT,
    *(b'"type":"%s"' % kind for kind in sorted(_OTHER_LINES)),
    *(_ITEM + kind + b'"' for kind in sorted(_DROPPED_KINDS)),
)
# Calls of functions are most of them.
_KEPT_WHOLE = tuple(
    _ITEM + kind + b'"'
    for kind, name in sorted(_KEPT_KINDS.items(), key=lambda known: not known[1].startswith("function"))
    if name not in MESSAGES
)
# Slices that are made once, and a look into a table, take a third of the time of `startswith`.
_HEAD = slice(len(_TIMESTAMP))
_LOOK_BYTES = len(_EVENT)
_ITEM_LOOK, _TURN_LOOK, _META_LOOK = (start[:_LOOK_BYTES] for start in (_ITEM, _TURN, _META))
_PASSED_BY_LOOK = {
    look: tuple(start for start in _PASSED_OVER if start.startswith(look))
    for look in (start[:_LOOK_BYTES] for start in _PASSED_OVER)
}
_LOOKS = frozenset((*_PASSED_BY_LOOK, _TURN_LOOK, _META_LOOK))
_BRACE = 0x7D
# Python objects take up to fifty times the room of their text.
_REPAIRED_BYTES = 1024 * 1024
# A repair takes twenty microseconds. A file that wants more of them than a long session has lines is not worth it.
_MAX_REPAIRS = 100_000
# Without it a line says nothing; only an escape could spell it in another way.
_PAYLOAD_KEY = b'"payload"'
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Line(msgspec.Struct):
    type: str
    payload: msgspec.Raw
    timestamp: msgspec.Raw = msgspec.Raw(b"null")


class _Payload(msgspec.Struct, gc=False):
    payload: msgspec.Raw


class _Head(msgspec.Struct):
    type: str
    role: str | None = None


class _Turn(msgspec.Struct):
    cwd: str | None = None


class _TurnLine(msgspec.Struct):
    payload: _Turn


class _Sent(msgspec.Struct):
    """A message between agents."""

    author: str = ""
    recipient: str = ""
    content: str = ""
    encrypted_content: str | None = None
    trigger_turn: bool = False


_line = msgspec.json.Decoder(_Line)
_payload = msgspec.json.Decoder(_Payload)
_messages = msgspec.json.Decoder(list[Message])
_head = msgspec.json.Decoder(_Head)
_turn = msgspec.json.Decoder(_Turn)
_turn_line = msgspec.json.Decoder(_TurnLine)
_sent = msgspec.json.Decoder(_Sent)


class Records:
    """Decodes the lines of one rollout, in their order, and counts into `stats`. Nothing that a line holds raises."""

    def __init__(self, stats: ReadStats, *, max_repairs: int = _MAX_REPAIRS) -> None:
        self.stats = stats
        #: The first `session_meta` line: who the thread is.
        self.meta: SessionMeta | None = None
        #: The newest that a `session_meta` line of this thread tells.
        self.git: Git | None = None
        #: When that line was written.
        self.first_ms: int | None = None
        # Where `"type"` stood in the line looked at last; in the next it most often stands there again.
        self._type_at = 0
        self._repairs_left = max_repairs

    def items(self, lines: list[bytes], line_no: int) -> Iterator[Item]:
        """The items of `lines`, of which the first has the number `line_no`."""
        for number, line in enumerate(lines, line_no):
            if line.startswith(_PASSED_OVER, self._type_at) and line.startswith(_TIMESTAMP) and line[-2:] == b"}\n":
                continue
            if (item := self.item(line, number)) is not None:
                self._count(item)
                yield item

    def joined(self, lines: list[bytes]) -> bytes:
        """The same items, but only their `raw`, with commas between; at a fraction of the cost."""
        texts: list[bytes] = []
        plain: list[bytes] = []  # lines that are kept as they are, if nothing is found in them
        said: list[int] = []  # which of them are messages
        at = self._type_at
        look = slice(at, at + _LOOK_BYTES)
        for line in lines:
            begins = line[look]
            if begins == _EVENT:  # half of all lines
                if line[-2] == _BRACE and line[_HEAD] == _TIMESTAMP:
                    continue
            elif line[_HEAD] == _TIMESTAMP:
                if begins not in _LOOKS:
                    before = _BEFORE_TYPE.match(line)
                    at = before.end() if before is not None else 0
                    look = slice(at, at + _LOOK_BYTES)
                    begins = line[look]
                if begins == _ITEM_LOOK:
                    if line.startswith(_KEPT_WHOLE, at):
                        plain.append(line)
                        continue
                    if line.startswith(_MESSAGE, at):
                        said.append(len(plain))
                        plain.append(line)
                        continue
                elif begins == _TURN_LOOK:
                    if line.startswith(_TURN, at) and self._is_plain_turn(line):
                        continue
                elif begins == _META_LOOK and line.startswith(_META, at) and self._is_of_another(line):
                    continue
                if line.startswith(_PASSED_BY_LOOK.get(begins, ()), at) and line[-2] == _BRACE:
                    continue
            if (item := self.item(line, 0)) is not None:
                self._count(item)
                texts += (self._payloads(plain, said), item.raw)
                plain, said = [], []
        self._type_at = at
        texts.append(self._payloads(plain, said))
        return b",".join(filter(None, texts))

    def _is_plain_turn(self, line: bytes) -> bool:
        """Note where the agent worked; False where the line wants a closer look."""
        try:
            self.stats.last_cwd = _turn_line.decode(line).payload.cwd or self.stats.last_cwd
        except _UNREADABLE:
            return False
        return True

    def _is_of_another(self, line: bytes) -> bool:
        """True only of a `session_meta` line of another thread, of which nothing is learnt."""
        try:
            return self.meta is not None and meta_id(_payload.decode(line).payload) != self.meta.id
        except _UNREADABLE:
            return False

    def _payloads(self, lines: list[bytes], said: list[int]) -> bytes:
        """What stands in plain lines, of which those at `said` are messages, with commas between.

        A tag or damage anywhere, and each is looked at alone.
        """
        try:
            payloads: list[msgspec.Raw | bytes] = [_payload.decode(line).payload for line in lines]
            messages = _messages.decode(b"[" + b",".join([payloads[at] for at in said]) + b"]")
        except _UNREADABLE:
            return self._one_by_one(lines)
        joined = b",".join(payloads)
        if is_marked(joined) or valid_utf8(joined) is not joined:
            return self._one_by_one(lines)
        odd = [(at, message) for at, message in zip(said, messages, strict=True) if not _stays(message)]
        for at, message in reversed(odd):  # from the end, as most of them go
            item = self.item(lines[at], 0) if message.role == "user" else None
            payloads[at : at + 1] = () if item is None else (item.raw,)
        self.stats.kept += len(payloads)
        self.stats.messages += len(said) - (len(lines) - len(payloads))
        return b",".join(payloads) if odd else joined

    def _one_by_one(self, lines: list[bytes]) -> bytes:
        items = [item for line in lines if (item := self.item(line, 0)) is not None]
        for item in items:
            self._count(item)
        return b",".join([item.raw for item in items])

    def _count(self, item: Item) -> None:
        self.stats.kept += 1
        self.stats.messages += item.type in MESSAGES

    def may_matter(self, beginning: bytes) -> bool:
        """False only if the first bytes of a line say that it holds nothing for memory."""
        start = _START.match(beginning)
        if start is None:
            return True
        _, kind, role, line = start.groups()
        return line not in _OTHER_LINES if kind is None else not (kind in _DROPPED_KINDS or role in _DROPPED_ROLES)

    def item(self, text: bytes, line_no: int) -> Item | None:
        """What memory keeps of a line; None for most."""
        start = _START.match(text)
        if start is None:
            return None if not text or text.isspace() else self._decoded(text, line_no)
        time, kind, _, line = start.groups()
        self._type_at = start.start("line") - len(_TYPE) if kind is None else start.start("kind") - len(_ITEM)
        if kind is None:
            if line not in _OTHER_LINES:
                return self._decoded(text, line_no)
            self._pass_over(text)
            return None
        if kind in _DROPPED_KINDS:
            self._pass_over(text)
            return None
        known = _KEPT_KINDS.get(kind)
        if known is None:
            return self._decoded(text, line_no)
        try:
            payload = valid_utf8(bytes(_payload.decode(text).payload))
            spoken_by = _head.decode(payload).role if known == "message" else None
        except _UNREADABLE:
            return self._decoded(text, line_no)
        return self._kept(payload, known, spoken_by, parse_timestamp(time), line_no)

    def _pass_over(self, text: bytes) -> None:
        """Count a line that holds nothing for memory as bad if it has no end."""
        if not text.rstrip().endswith(b"}"):
            self._count_bad()

    def _decoded(self, text: bytes, line_no: int) -> Item | None:
        """The item of any line."""
        if _PAYLOAD_KEY not in text and b"\\u" not in text:
            self._count_bad()
            return None
        try:
            line = _line.decode(text)
        except _UNREADABLE:
            repaired = self._repaired(text)
            if repaired is None:
                self._count_bad()
                return None
            line = repaired
        payload = valid_utf8(bytes(line.payload))
        try:
            if line.type == "response_item":
                head = _head.decode(payload)
                if head.type in MEMORY_ITEMS:
                    return self._kept(payload, head.type, head.role, _time(line), line_no)
                if head.type not in DROPPED_ITEMS:
                    self.stats.count_unknown(f"response_item/{head.type}")
            elif line.type == "inter_agent_communication":
                return self._kept(_agent_message(_sent.decode(payload)), "agent_message", None, _time(line), line_no)
            elif line.type == "session_meta":
                # A fork carries the lines of the thread that it was made from.
                if self.meta is None or meta_id(payload) == self.meta.id:
                    self._learn(parse_meta(payload), line)
            elif line.type == "turn_context":
                self.stats.last_cwd = _turn.decode(payload).cwd or self.stats.last_cwd
            elif line.type not in OTHER_LINES:
                self.stats.count_unknown(line.type)
        except _UNREADABLE:
            self._count_bad()
        return None

    def _repaired(self, text: bytes) -> _Line | None:
        if self._repairs_left == 0:
            return None
        self._repairs_left -= 1
        return _repair(text)

    def _kept(self, raw: bytes, kind: str, role: str | None, timestamp_ms: int | None, line_no: int) -> Item | None:
        """An item of a kind that memory keeps, unless nothing is left of it (spec §7)."""
        if kind == "message":
            if role in DROPPED_ROLES:
                return None
        else:
            role = None
        if role == "user" or is_marked(raw):
            try:
                cleaned, images = clean(raw, user=role == "user")
            except _UNREADABLE:
                self._count_bad()
                return None
            if cleaned is None:
                return None
            raw = cleaned
            self.stats.images += images
        return Item(kind, role, raw, timestamp_ms, line_no)

    def _learn(self, meta: SessionMeta, line: _Line) -> None:
        if self.meta is None:
            self.meta = meta
            self.stats.copied_from = meta.copied_from_id
            self.first_ms = _time(line)
        self.stats.memory_mode = meta.memory_mode or self.stats.memory_mode
        self.stats.last_cwd = meta.cwd or self.stats.last_cwd
        self.git = meta.git or self.git

    def _count_bad(self) -> None:
        if not self.stats.torn:
            self.stats.bad_lines += 1


def _stays(message: Message) -> bool:
    """Whether a message is kept as it is."""
    return keeps_all_parts(message) if message.role == "user" else message.role not in DROPPED_ROLES


def _time(line: _Line) -> int | None:
    return parse_timestamp(bytes(line.timestamp)[1:-1])


def _repair(text: bytes) -> _Line | None:
    """A second, more tolerant look: NULs of a crash before the line, bare control characters, half surrogate pairs."""
    if len(text) > _REPAIRED_BYTES:
        return None
    import json  # hardly any line needs it

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
