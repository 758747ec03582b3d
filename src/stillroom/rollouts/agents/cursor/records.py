"""The lines of Cursor's transcripts as the items that memory keeps. They have no ids, no times, and few results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.decoder import LineDecoder, text_of
from stillroom.rollouts.agents.made import Made, said_by_agent, said_by_assistant, said_by_user, stopped_by_user
from stillroom.rollouts.agents.programs import returned
from stillroom.rollouts.agents.scaffolding import without_blocks
from stillroom.rollouts.agents.tools import read_call
from stillroom.rollouts.stats import ReadStats

_SCAFFOLDING = (
    "system[-_](?:reminder|notification)|user_info|git_status|project_layout|timestamp|rules|agent_[a-z_]{1,40}"
    "|[a-z_]{0,40}(?:files|skills|commands)|mcp_[a-z_]{1,40}|additional_data"
)
_QUERY, _QUERY_END = "<user_query>", "</user_query>"
_REDACTED = "[REDACTED]"


class Block(msgspec.Struct):
    """A part of a message, of any kind."""

    type: Any = None
    text: Any = None
    id: Any = None
    name: Any = None
    input: msgspec.Raw = msgspec.Raw(b"{}")
    tool_use_id: Any = None
    content: Any = None


class Message(msgspec.Struct):
    """What was said and done."""

    content: list[Block] | str | None = None


class Line(msgspec.Struct):
    """A line: a message, or the end of a turn."""

    role: Any = None
    type: Any = None
    status: Any = None
    message: Message | None = None


_line = msgspec.json.Decoder(Line)


class Records(LineDecoder):
    """Decodes the lines of one transcript; `of_agent` for a sub-agent's."""

    def __init__(
        self, stats: ReadStats, *, of_agent: bool = False, cwd: str | None = None, reading: Reading = READING
    ) -> None:
        super().__init__(stats, reading=reading)
        self._of_agent = of_agent
        self._cwd = cwd

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a line."""
        return None, self._made(_line.decode(line), line)

    def _made(self, read: Line, line: bytes) -> Iterator[Made]:
        content = read.message.content if read.message is not None else None
        blocks = [Block("text", content)] if isinstance(content, str) else content or []
        match read.role:
            case "user":
                yield from self._user(blocks)
            case "assistant":
                yield from self._answer(blocks, line)
            case None if read.type == "turn_ended":
                if read.status == "aborted":
                    yield stopped_by_user()
            case role:
                self.stats.count_unknown(str(role or read.type or "line"))

    def _user(self, blocks: list[Block]) -> Iterator[Made]:
        yield from self._results(blocks)
        self.stats.images += sum(block.type == "image" for block in blocks)
        texts = [text_of(block.text) for block in blocks if block.type == "text"]
        words = [words for text in texts if (words := _typed(text))]
        if words and self._of_agent:
            yield said_by_agent("\n".join(words))
        elif words:
            yield said_by_user(*words)
        elif texts:
            self.stats.drop("written by the client")

    def _answer(self, blocks: list[Block], line: bytes) -> Iterator[Made]:
        for number, block in enumerate(blocks):
            if block.type == "text":
                text = text_of(block.text).replace(_REDACTED, "").strip()
                if text:
                    yield said_by_assistant(text)
            elif block.type == "tool_use":
                call_id = text_of(block.id) or f"{hashlib.blake2b(line, digest_size=8).hexdigest()}-{number}"
                call = read_call(text_of(block.name), bytes(block.input), call_id=call_id, cwd=self._cwd)
                yield self.called(call_id, call)
        yield from self._results(blocks)

    def _results(self, blocks: list[Block]) -> Iterator[Made]:
        for block in blocks:
            call_id = text_of(block.tool_use_id)
            if block.type == "tool_result" and call_id:
                yield returned(self.call_of(call_id), call_id, block.content, ok=None)


def _typed(text: str) -> str:
    """What a person typed. Where the client marks it, all else in the text is its own."""
    if _QUERY in text:
        marked = (part.partition(_QUERY_END)[0].strip() for part in text.split(_QUERY)[1:])
        return "\n".join(filter(None, marked))
    return without_blocks(text, _SCAFFOLDING).strip()
