"""OpenCode's parts and rows as the items that memory keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.decoder import LineDecoder, text_of
from stillroom.rollouts.agents.made import (
    Made,
    run_by_user,
    said_by_agent,
    said_by_assistant,
    said_by_user,
    taken_back,
)
from stillroom.rollouts.agents.opencode.calls import State, read_call, read_result
from stillroom.rollouts.agents.opencode.session import Message
from stillroom.rollouts.stats import ReadStats

# Parts and rows that are known and hold nothing for memory.
_PASSED_OVER = frozenset(
    {"reasoning", "step-start", "step-finish", "patch", "snapshot", "agent", "subtask", "retry", "compaction"}
)
_ROWS_PASSED_OVER = frozenset({"synthetic", "system", "compaction", "agent-switched", "model-switched"})


class Part(msgspec.Struct):
    """A part of a message, of any type. Newer rows have the same parts, under a few other names."""

    type: Any = None
    text: Any = None
    synthetic: Any = None
    ignored: Any = None
    mime: Any = None
    id: Any = None
    name: Any = None
    tool: Any = None
    call_id: Any = msgspec.field(default=None, name="callID")
    state: State = msgspec.field(default_factory=State)


class _Row(msgspec.Struct):
    text: Any = None
    files: Any = None
    content: list[Part] = []
    command: Any = None
    output: Any = None


class _Line(msgspec.Struct):
    message: Message
    part: Part | None = None
    row: _Row | None = None


_line = msgspec.json.Decoder(_Line)


class Records(LineDecoder):
    """Decodes the lines of either store. In a session `of_agent` the prompts are another agent's."""

    def __init__(
        self, stats: ReadStats, *, of_agent: bool = False, quoted: bool = False, reading: Reading = READING
    ) -> None:
        super().__init__(stats, reading=reading)
        self._of_agent = of_agent
        self._quoted = quoted

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a part or a row."""
        read = _line.decode(line)
        message = read.message
        if message.taken:
            self.stats.drop("seen before")
            return None, ()
        if read.part is not None:
            return message.at, self._part(read.part, message)
        return message.at, self._row(read.row or _Row(), message)

    def _part(self, part: Part, message: Message) -> Iterator[Made]:
        if part.type in _PASSED_OVER:
            return
        if message.role == "user":
            yield from self._of_user(part, message)
        elif message.role == "assistant":
            yield from self._of_assistant(part, message)
        else:
            self.stats.count_unknown(f"message/{message.role}")

    def _of_user(self, part: Part, message: Message) -> Iterator[Made]:
        if part.type == "file":
            self.stats.images += text_of(part.mime).startswith("image/")
        elif part.type != "text":
            self.stats.count_unknown(f"user/{part.type}")
        elif part.synthetic or part.ignored:
            self.stats.drop("written by the client")
        else:
            yield from self._prompt(text_of(part.text), message)

    def _prompt(self, text: str, message: Message) -> Iterator[Made]:
        if self._quoted:
            text = _without_quotes(text)
        if not text.strip():
            self.stats.drop("nothing said")
        elif self._of_agent:
            yield said_by_agent(text)
        elif message.undone:
            self.stats.superseded += 1
            yield taken_back(text)
        else:
            yield said_by_user(text)

    def _of_assistant(self, part: Part, message: Message) -> Iterator[Made]:
        if message.summary:
            self.stats.drop("compaction summary")
        elif part.type == "text":
            text = text_of(part.text)
            if text.strip() and not (part.synthetic or part.ignored):
                yield said_by_assistant(text)
        elif part.type == "tool":
            yield from self._tool(part, message)
        elif part.type not in _PASSED_OVER and part.type != "file":
            self.stats.count_unknown(f"assistant/{part.type}")

    def _tool(self, part: Part, message: Message) -> Iterator[Made]:
        call_id = text_of(part.call_id) or text_of(part.id)
        if not call_id or not self.is_new(call_id):
            return
        call = read_call(text_of(part.tool) or text_of(part.name), part.state, call_id=call_id, cwd=message.cwd)
        yield call
        if (result := read_result(call, part.state, call_id=call_id)) is not None:
            yield result

    def _row(self, row: _Row, message: Message) -> Iterator[Made]:
        if message.role == "user":
            files = row.files if isinstance(row.files, list) else []
            self.stats.images += len(files)
            yield from self._prompt(text_of(row.text), message)
        elif message.role == "assistant":
            for part in row.content:
                yield from self._of_assistant(part, message)
        elif message.role == "shell":
            yield run_by_user(text_of(row.command), text_of(row.output))
        elif message.role in _ROWS_PASSED_OVER:
            self.stats.drop("compaction summary" if message.role == "compaction" else "written by the client")
        else:
            self.stats.count_unknown(f"row/{message.role}")


def _without_quotes(text: str) -> str:
    """`opencode run` stores a prompt of several words within quotes."""
    stripped = text.strip()
    return stripped[1:-1] if len(stripped) > 1 and stripped[0] == stripped[-1] == '"' else text
