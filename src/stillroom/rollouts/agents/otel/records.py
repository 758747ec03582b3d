"""Messages of GenAI spans as the items that memory keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.decoder import LineDecoder, text_of
from stillroom.rollouts.agents.made import Made, function_call, said_by_agent, said_by_assistant, said_by_user
from stillroom.rollouts.agents.programs import Content, prompt_of, returned
from stillroom.rollouts.stats import ReadStats

_CALLS = frozenset({"tool_call", "server_tool_call"})
_RETURNS = frozenset({"tool_call_response", "server_tool_call_response"})
_WORDS = frozenset({"text", "input_text", "output_text"})
_MEDIA = frozenset({"blob", "file", "uri", "image", "image_url", "image-url", "binary", "document", "audio"})
_THOUGHTS = frozenset({"reasoning", "thinking", "compaction"})


class _Part(msgspec.Struct):
    type: Any = None
    content: Any = None
    text: Any = None
    modality: Any = None
    id: Any = None
    name: Any = None
    arguments: Any = None
    response: Any = None
    result: Any = None


class _Message(msgspec.Struct):
    role: Any = None
    parts: list[_Part] = []


_message = msgspec.json.Decoder(_Message)


class Records(LineDecoder):
    """Decodes the messages of one conversation, a line each. In a talk `of_agent` the prompts are another agent's."""

    def __init__(
        self, stats: ReadStats, *, at_ms: int | None = None, of_agent: bool = False, reading: Reading = READING
    ) -> None:
        super().__init__(stats, reading=reading)
        self._of_agent = of_agent
        # Messages have no times: that of their span.
        self._at_ms = at_ms

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a message."""
        return self._at_ms, self._made(_message.decode(line))

    def _made(self, message: _Message) -> Iterator[Made]:
        if message.role in ("system", "developer"):
            self.stats.drop("instructions")
            return
        texts: list[str] = []
        images = 0
        for part in message.parts:
            kind = text_of(part.type)
            text = text_of(part.content) or text_of(part.text)
            if kind in _CALLS:
                yield from self._call(part)
            elif kind in _RETURNS:
                yield from self._result(part)
            elif kind in _MEDIA:
                images += "image" in kind or part.modality == "image"
            elif kind not in _WORDS:
                if kind not in _THOUGHTS:
                    self.stats.count_unknown(f"part/{kind}")
            elif message.role == "assistant" and text.strip():
                yield said_by_assistant(text)
            elif text.strip():
                texts.append(text)
        if message.role == "user":
            yield from self._prompt(Content(texts, images))
        elif message.role not in ("assistant", "tool"):
            self.stats.count_unknown(f"message/{message.role}")

    def _prompt(self, content: Content) -> Iterator[Made]:
        self.stats.images += content.images
        if words := prompt_of(content):
            yield said_by_agent("\n".join(words)) if self._of_agent else said_by_user(*words)
        elif content.texts or content.images:
            self.stats.drop("nothing said")

    def _call(self, part: _Part) -> Iterator[Made]:
        call_id = text_of(part.id)
        raw = part.arguments.encode() if isinstance(part.arguments, str) else msgspec.json.encode(part.arguments)
        if not call_id or self.is_new(f"call {call_id}"):
            yield self.called(call_id, function_call(text_of(part.name), raw, call_id))

    def _result(self, part: _Part) -> Iterator[Made]:
        call_id = text_of(part.id)
        value = part.response if part.response is not None else part.result
        if not call_id or self.is_new(f"result {call_id}"):
            yield returned(self.call_of(call_id), call_id, value if value is not None else part.content, ok=None)
