"""Gemini CLI's log of operations as the items that memory keeps: the union of all messages, each once.

The client replays the log and shows what is left of the talk. Here what was compressed away stays, and what was
rewound is marked. A snapshot of the whole talk (`$set.messages`) tells nothing new where messages stand ahead of it:
ids that first appear in it are the client's rewriting, as of a compression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import text_of, time_of
from stillroom.rollouts.agents.google_parts import Called, Part, Returned, read_call, read_result
from stillroom.rollouts.agents.made import Made, said_by_assistant
from stillroom.rollouts.agents.scaffolding import without_blocks
from stillroom.rollouts.agents.talk import TalkDecoder

_NOTICES = frozenset({"info", "error", "warning"})
_SCAFFOLDING = "session_context|hook_context|loaded_context|system-reminder"
# Commands that steer the client; a path has a second slash.
_COMMAND = re.compile(r"\s*(?:/[\w:-]*(?:\s|\Z)|\?\s*\Z)")


class ToolCall(Called, rename="camel"):
    """A call with its result, as far as there is one."""

    result: Any = None
    status: Any = None
    result_display: msgspec.Raw = msgspec.Raw(b"null")


class Message(msgspec.Struct, rename="camel"):
    """A message of the log, or of a snapshot."""

    id: Any = None
    type: Any = None
    timestamp: Any = None
    content: list[Part] | str | None = None
    display_content: list[Part] | str | None = None
    tool_calls: list[ToolCall] = []


class Change(msgspec.Struct):
    """A change of the session itself."""

    messages: list[msgspec.Raw] | None = None


class Line(Message, rename="camel"):
    """A line: a message, a header, or an operation."""

    session_id: Any = None
    change: Change | None = msgspec.field(default=None, name="$set")
    rewind_to: Any = msgspec.field(default=None, name="$rewindTo")


line_of = msgspec.json.Decoder(Line).decode
_message = msgspec.json.Decoder(Message)


class Records(TalkDecoder):
    """Decodes the lines of one file. Prompts that were rewound are known by their ids."""

    _began = False

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a message, or, at the beginning, of a snapshot."""
        read = line_of(line)
        if read.change is not None:
            return None, self._snapshot(read.change.messages or ())
        if read.id is None:
            if read.session_id is None and read.rewind_to is None:
                self.stats.count_unknown("line")
            return None, ()
        return time_of(read.timestamp), self._message(read)

    def _snapshot(self, messages: Iterable[msgspec.Raw]) -> Iterator[Made]:
        """Of what was said ahead of it a snapshot tells less than the log does."""
        began = self._began
        for raw in messages:
            message = _message.decode(raw)
            if not began:
                yield from self._message(message)
            elif self.is_new(f"message {message.id}"):
                self.stats.drop("compaction summary")

    def _message(self, message: Message) -> Iterator[Made]:
        if message.type == "user":
            yield from self._user(message)
        elif message.type == "gemini":
            self._began = True
            yield from self._answer(message)
        elif text_of(message.type) in _NOTICES:
            self.stats.drop("written by the client")
        else:
            self.stats.count_unknown(f"message/{message.type}")

    def _user(self, message: Message) -> Iterator[Made]:
        parts = parts_of(message.content)
        results = [part.function_response for part in parts if part.function_response is not None]
        for returned in results:
            yield from self._result(returned, failed=False)
        if results or not self.is_new(f"message {message.id}"):
            return
        words = prompt_of(message)
        self.stats.images += sum(part.inline_data is not None for part in parts)
        if not words:
            self.stats.drop("written by the client")
            return
        self._began = True
        yield from self.prompt(text_of(message.id), *words)

    def _answer(self, message: Message) -> Iterator[Made]:
        parts = parts_of(message.content)
        text = "\n".join(text for part in parts if not part.thought and (text := text_of(part.text)).strip())
        # It is written again when its calls have ended.
        if text and self.is_new(f"message {message.id}"):
            yield said_by_assistant(text)
        for part in parts:
            if part.function_call is not None:
                yield from self._call(part.function_call)
        for call in message.tool_calls:
            yield from self._call(call)
            for returned in _responses(call):
                yield from self._result(returned, failed=call.status != "success")

    def _call(self, called: Called) -> Iterator[Made]:
        call_id = text_of(called.id)
        if call_id and self.is_new(f"call {call_id}"):
            yield self.called(call_id, read_call(called, call_id=call_id, cwd=self.cwd))

    def _result(self, returned: Returned, *, failed: bool) -> Iterator[Made]:
        call_id = text_of(returned.id)
        if call_id and self.is_new(f"result {call_id}"):
            yield read_result(self.call_of(call_id), returned, call_id=call_id, failed=failed)


def parts_of(content: list[Part] | str | None) -> list[Part]:
    """What a message consists of, in whichever form."""
    return [Part(text=content)] if isinstance(content, str) else content or []


def prompt_of(message: Message) -> list[str]:
    """What a person typed, without what the client and hooks put beside it; nothing for a command to the client."""
    shown = parts_of(message.display_content) or parts_of(message.content)
    texts = (without_blocks(text_of(part.text), _SCAFFOLDING) for part in shown)
    return [text for text in texts if text.strip() and not _COMMAND.match(text)]


def _responses(call: ToolCall) -> list[Returned]:
    parts = call.result if isinstance(call.result, list) else []
    try:
        read = msgspec.convert(parts, list[Part])
    except msgspec.ValidationError:
        return []
    return [part.function_response for part in read if part.function_response is not None]
