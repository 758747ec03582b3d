"""Pydantic AI's message history as the items that memory keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.decoder import LineDecoder, text_of, time_of
from stillroom.rollouts.agents.made import Made, function_call, said_by_assistant, said_by_user
from stillroom.rollouts.agents.programs import Content, content_of, prompt_of, returned
from stillroom.rollouts.stats import ReadStats

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

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a message, or of a list of them."""
        at: int | None = None
        made: list[Made] = []
        for message in messages_of(line):
            time = time_of(message.timestamp)
            at = at or time
            self.first_ms = self.first_ms or time
            if message.key in self._inherited:
                self.stats.drop("seen before")
            elif self.is_new(str(message.key)):
                made += self._message(message)
        return at, made

    def _message(self, message: Message) -> Iterator[Made]:
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

    def _prompt(self, content: Content) -> Iterator[Made]:
        self.stats.images += content.images
        if words := prompt_of(content):
            yield said_by_user(*words)
        else:
            self.stats.drop("nothing said")

    def _speech(self, part: _Part) -> Iterator[Made]:
        if part.speaker == "user":
            yield from self._prompt(content_of(part.transcript))
        else:
            yield from map(said_by_assistant, content_of(part.transcript).texts)

    def _call(self, part: _Part) -> Iterator[Made]:
        call_id = text_of(part.tool_call_id)
        raw = part.args.encode() if isinstance(part.args, str) else msgspec.json.encode(part.args)
        if not call_id or self.is_new(f"call {call_id}"):
            yield self.called(call_id, function_call(text_of(part.tool_name), raw, call_id))

    def _result(self, part: _Part, kind: str) -> Iterator[Made]:
        call_id = text_of(part.tool_call_id)
        if not call_id or self.is_new(f"result {call_id}"):
            # Newer versions tell how it ended; older ones only what had to be called again.
            ok = kind in _RETURNS and part.outcome in ("success", None)
            yield returned(self.call_of(call_id), call_id, part.content, ok=ok)
