"""The elements of a Continue session's history as the items that memory keeps. They have neither ids nor times."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.continue_dev.calls import State, ToolCall, call_of, result_of
from stillroom.rollouts.agents.decoder import LineDecoder, text_of
from stillroom.rollouts.agents.made import Made, said_by_assistant, said_by_user
from stillroom.rollouts.agents.scaffolding import without_blocks
from stillroom.rollouts.stats import ReadStats

_SCAFFOLDING = "system-reminder"
# A tool's message repeats what stands in the state of its call.
_PASSED_OVER = frozenset({"system", "thinking", "tool"})


class _Part(msgspec.Struct):
    type: Any = None
    text: Any = None


class _Message(msgspec.Struct, rename="camel"):
    role: Any = None
    content: list[_Part] | str | None = None
    tool_calls: list[ToolCall] | None = None


class _Element(msgspec.Struct, rename="camel"):
    message: _Message
    tool_call_states: list[State] | None = None
    conversation_summary: Any = None


_element = msgspec.json.Decoder(_Element)


class Records(LineDecoder):
    """Decodes the elements of a history. `inherited` are the hashes of those that it begins with and another session
    holds too."""

    def __init__(
        self, stats: ReadStats, *, cwd: str | None = None, inherited: Set[int] = frozenset(), reading: Reading = READING
    ) -> None:
        super().__init__(stats, reading=reading)
        self._cwd = cwd
        self._inherited = inherited

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of an element."""
        if self._inherited and hash(line.strip()) in self._inherited:
            self.stats.drop("seen before")
            return None, ()
        self._inherited = frozenset()
        return None, self._made(_element.decode(line))

    def _made(self, element: _Element) -> Iterator[Made]:
        message = element.message
        texts = _texts(message.content)
        if isinstance(message.content, list):
            self.stats.images += sum(part.type == "imageUrl" for part in message.content)
        match text_of(message.role):
            case "user":
                yield from self._prompt(texts)
            case "assistant":
                yield from self._answer(element, "\n".join(texts))
            case role if role in _PASSED_OVER:
                self.stats.drop("written by the client" if role == "system" else "told elsewhere")
            case role:
                self.stats.count_unknown(role)

    def _prompt(self, texts: list[str]) -> Iterator[Made]:
        words = [text for text in (without_blocks(text, _SCAFFOLDING) for text in texts) if text.strip()]
        if words:
            yield said_by_user(*words)
        else:
            self.stats.drop("nothing said")

    def _answer(self, element: _Element, text: str) -> Iterator[Made]:
        if text and text == element.conversation_summary:
            self.stats.drop("compaction summary")
        elif text.strip():
            yield said_by_assistant(text)
        states = {text_of(state.tool_call_id): state for state in element.tool_call_states or ()}
        asked = [state.tool_call for state in states.values()] or element.message.tool_calls or []
        for call in asked:
            call_id = text_of(call.id)
            if call_id and self.is_new(call_id):
                made = call_of(call, call_id=call_id, cwd=self._cwd)
                yield made
                if (state := states.get(call_id)) and (result := result_of(made, state, call_id=call_id)):
                    yield result


def _texts(content: list[_Part] | str | None) -> list[str]:
    if isinstance(content, list):
        return [text for part in content if (text := text_of(part.text))]
    return [content] if content else []
