"""The messages of Cline and its editor extensions, which are Anthropic's, as the items that memory keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.cline import speech, written
from stillroom.rollouts.agents.cline.calls import (
    SAYING,
    answer,
    operations_of,
    part_id,
    read_calls,
    read_operation,
    read_text,
)
from stillroom.rollouts.agents.decoder import UNREADABLE, LineDecoder, number_of, text_of
from stillroom.rollouts.agents.made import Made, said_by_agent, said_by_assistant, said_by_user
from stillroom.rollouts.stats import ReadStats

_SUMMARIES = frozenset({"compaction", "compaction_summary"})
_SAID = "said"
_PASSED_OVER = frozenset({"thinking", "redacted_thinking", "reasoning", "file", "document"})


class _Block(msgspec.Struct):
    type: Any = None
    text: Any = None
    id: Any = None
    name: Any = None
    input: msgspec.Raw = msgspec.Raw(b"{}")
    tool_use_id: Any = None
    content: msgspec.Raw = msgspec.Raw(b"null")
    is_error: Any = None


class _Metadata(msgspec.Struct, rename="camel"):
    kind: Any = None
    display_role: Any = None


class _Message(msgspec.Struct):
    id: Any = None
    role: Any = None
    content: list[_Block] | str = []
    ts: Any = None
    metadata: _Metadata | None = None
    is_summary: Any = msgspec.field(default=None, name="isSummary")
    is_marker: Any = msgspec.field(default=None, name="isTruncationMarker")


class _Text(msgspec.Struct):
    type: Any = None
    text: Any = None


_message = msgspec.json.Decoder(_Message)
_texts = msgspec.json.Decoder(list[_Text])


class Records(LineDecoder):
    """Decodes the messages of a session. `of_editor`: an extension stored it, which marks what a person typed.
    `inherited` are the ids of messages that another session holds too, as hashes."""

    def __init__(
        self,
        stats: ReadStats,
        *,
        of_editor: bool = False,
        of_agent: bool = False,
        cwd: str | None = None,
        inherited: Set[int] = frozenset(),
        reading: Reading = READING,
    ) -> None:
        super().__init__(stats, reading=reading)
        self._of_editor = of_editor
        self._of_agent = of_agent
        self._cwd = cwd
        self._seen |= inherited
        self._position = 0
        self._asked: list[str] = []  # ids of calls that were written into a text, until their results come
        self._awaited = False  # the next text is a result

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a message."""
        message = _message.decode(line)
        self._position += 1
        if isinstance(message.id, str) and not self.is_new(message.id):
            return None, ()
        return number_of(message.ts), self._made(message)

    def _made(self, message: _Message) -> Iterator[Made]:
        metadata = message.metadata or _Metadata()
        if text_of(metadata.kind) in _SUMMARIES or message.is_summary is True:
            self.stats.drop("compaction summary")
            return
        content = message.content
        blocks = [_Block("text", content)] if isinstance(content, str) else content
        if message.role == "assistant":
            for block in blocks:
                yield from self._of_assistant(block)
        elif message.role != "user":
            self.stats.count_unknown(f"message/{message.role}")
        elif metadata.kind is not None or metadata.display_role is not None or message.is_marker is True:
            self.stats.drop("written by the client")
        else:
            self._awaited = False
            for block in blocks:
                yield from self._of_user(block)

    # --- the assistant

    def _of_assistant(self, block: _Block) -> Iterator[Made]:
        if block.type == "text":
            yield from self._answer(text_of(block.text))
        elif block.type == "tool_use":
            call_id = text_of(block.id)
            if call_id and self.is_new(f"call {call_id}"):
                yield from self._call(text_of(block.name), bytes(block.input), call_id)
        elif text_of(block.type) not in _PASSED_OVER:
            self.stats.count_unknown(f"assistant/{block.type}")

    def _answer(self, text: str) -> Iterator[Made]:
        call: written.Written | None = None
        if self._of_editor:
            text, call = written.split(text)
        if text.strip():
            yield said_by_assistant(text.strip())
        if call is not None:
            call_id = f"written {self._position}"
            self._asked = [call_id]
            yield from self._call(call.tool, msgspec.json.encode(call.arguments), call_id)

    def _call(self, tool: str, given: bytes, call_id: str) -> Iterator[Made]:
        if (name := SAYING.get(tool)) is not None:
            self.called(call_id, Made(_SAID, None, b""))
            if words := _field(given, name).strip():
                yield said_by_assistant(words)
            return
        for number, call in enumerate(read_calls(tool, given, call_id=call_id, cwd=self._cwd)):
            yield self.called(part_id(call_id, number), call)

    # --- the user, and what stands in their name

    def _of_user(self, block: _Block) -> Iterator[Made]:
        if block.type == "text":
            yield from self._text(text_of(block.text))
        elif block.type == "tool_result":
            call_id = text_of(block.tool_use_id)
            if self.is_new(f"result {call_id}"):
                yield from self._result(call_id, bytes(block.content), failed=block.is_error is True)
        elif block.type == "image":
            self.stats.images += 1
        elif text_of(block.type) not in _PASSED_OVER:
            self.stats.count_unknown(f"user/{block.type}")

    def _text(self, text: str) -> Iterator[Made]:
        if not self._of_editor:
            yield from self._prompt(speech.typed(text))
        elif self._awaited:
            self._awaited = False
            yield from self._written_result(text)
        elif (found := speech.result(text)) is not None:
            self._awaited = found.text is None
            if found.text is not None:
                yield from self._written_result(found.text)
        elif words := speech.tagged(text):
            yield from self._prompt(words)
        else:
            self.stats.drop("written by the client")

    def _prompt(self, words: str) -> Iterator[Made]:
        if not words:
            self.stats.drop("nothing said")
        else:
            yield said_by_agent(words) if self._of_agent else said_by_user(words)

    def _written_result(self, text: str) -> Iterator[Made]:
        call_id = self._asked.pop() if self._asked else f"result {self._position}"
        yield from self._text_result(self.call_of(call_id), text, call_id, failed=False)

    def _result(self, call_id: str, content: bytes, *, failed: bool) -> Iterator[Made]:
        for number, told in enumerate(operations := operations_of(content)):
            part = part_id(call_id, number)
            yield read_operation(self.call_of(part), told, call_id=part)
        if not operations:
            text, images = _content(content)
            self.stats.images += images
            yield from self._text_result(self.call_of(call_id), text, call_id, failed=failed)

    def _text_result(self, call: Made | None, text: str, call_id: str, *, failed: bool) -> Iterator[Made]:
        """Only the tools that a person answers hand on their words; what others print is theirs."""
        if call is not None and call.type == _SAID:
            if words := speech.tagged(speech.without_header(text)):
                yield from self._prompt(words)
            return
        words = speech.tagged(speech.without_header(text)) or ("" if self._of_editor else text)
        answered = answer(call, words, call_id=call_id) if not failed and not self._of_agent else None
        yield answered or read_text(call, text, call_id=call_id, failed=failed)


def _field(given: bytes, name: str) -> str:
    try:
        return text_of(msgspec.json.decode(given, type=dict[str, Any]).get(name))
    except UNREADABLE:
        return ""


def _content(raw: bytes) -> tuple[str, int]:
    """The text of a result, and how many images are in it."""
    try:
        if raw.startswith(b'"'):
            return msgspec.json.decode(raw, type=str), 0
        parts = _texts.decode(raw)
    except UNREADABLE:
        return "" if raw == b"null" else raw.decode("utf-8", "replace"), 0
    return "\n".join(filter(None, (text_of(part.text) for part in parts))), sum(part.type == "image" for part in parts)
