"""LangChain's messages, in each form in which they are stored, as the items that memory keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.decoder import LineDecoder, text_of
from stillroom.rollouts.agents.langchain.checkpoints import Stored
from stillroom.rollouts.agents.made import (
    Made,
    function_call,
    said_by_agent,
    said_by_assistant,
    said_by_user,
    taken_back,
)
from stillroom.rollouts.agents.programs import content_of, prompt_of, returned
from stillroom.rollouts.stats import ReadStats

# By `type`, or by `role` of messages that are plain objects.
_WHO = {
    **dict.fromkeys(("human", "HumanMessage", "HumanMessageChunk", "user"), "user"),
    **dict.fromkeys(("ai", "AIMessage", "AIMessageChunk", "assistant"), "assistant"),
    **dict.fromkeys(("tool", "function", "ToolMessage", "FunctionMessage", "ToolMessageChunk"), "tool"),
    **dict.fromkeys(("system", "developer", "SystemMessage", "SystemMessageChunk"), "system"),
    **dict.fromkeys(("remove", "RemoveMessage"), "remove"),
}
# How LangChain's summarizing middleware marks its message, and how that began before it did.
_SUMMARY = ("lc_source", "summarization")
_SUMMARY_WORDS = "Here is a summary of the conversation to date:"


class _Line(msgspec.Struct):
    """All forms: a checkpoint's message; `messages_to_dict`; `dumps`; a plain object."""

    item: dict[str, Any] | None = None
    message: Stored | None = None
    data: dict[str, Any] | None = None
    kwargs: dict[str, Any] | None = None
    id: Any = None
    type: Any = None
    role: Any = None
    content: Any = None
    name: Any = None
    tool_calls: Any = None
    tool_call_id: Any = None
    status: Any = None


_line = msgspec.json.Decoder(_Line)


class Records(LineDecoder):
    """Decodes the lines of one thread. In a graph `of_agent` the prompts are another agent's."""

    def __init__(self, stats: ReadStats, *, of_agent: bool = False, reading: Reading = READING) -> None:
        super().__init__(stats, reading=reading)
        self._of_agent = of_agent
        #: Messages that were understood.
        self.understood = 0

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a message."""
        read = _line.decode(line)
        stored = read.message or Stored(number=0)
        if stored.cut:
            self.stats.long_lines += 1
            self.stats.cut_bytes += stored.cut
            return None, ()
        fields = _fields(read)
        name = text_of(fields.get("id"))
        if read.message is not None and read.item is None:
            self.stats.bad_lines += 1
        elif (not name and read.message is None) or self.is_new(name or f"{stored.number} {hash(line)}"):
            return None, self._made(fields, left=stored.left)
        return None, ()

    def _made(self, fields: dict[str, Any], *, left: bool) -> Iterator[Made]:
        kind = text_of(fields.get("type"))
        who = _WHO.get(kind if kind != "chat" else text_of(fields.get("role"))) or _WHO.get(text_of(fields.get("role")))
        self.understood += who is not None
        if who == "user":
            yield from self._prompt(fields, left=left)
        elif who == "assistant":
            yield from map(said_by_assistant, content_of(fields.get("content")).texts)
            yield from self._asked(fields.get("tool_calls"))
        elif who == "tool":
            call_id = text_of(fields.get("tool_call_id"))
            if not call_id or self.is_new(f"result {call_id}"):
                ok = {"error": False, "success": True}.get(text_of(fields.get("status")))
                yield returned(self.call_of(call_id), call_id, fields.get("content"), ok=ok)
        elif who == "system":
            self.stats.drop("instructions")
        elif who is None:
            self.stats.count_unknown(f"message/{kind}")

    def _prompt(self, fields: dict[str, Any], *, left: bool) -> Iterator[Made]:
        content = content_of(fields.get("content"))
        self.stats.images += content.images
        words = prompt_of(content)
        if _is_summary(fields, words):
            self.stats.drop("compaction summary")
        elif not words:
            self.stats.drop("nothing said")
        elif self._of_agent or text_of(fields.get("name")):
            # Graphs of several agents pass on what one says as a prompt under its name.
            yield said_by_agent("\n".join(words))
        elif left:
            self.stats.superseded += 1
            yield taken_back(*words)
        else:
            yield said_by_user(*words)

    def _asked(self, calls: Any) -> Iterator[Made]:
        for call in calls if isinstance(calls, list) else ():
            if not isinstance(call, dict):
                continue
            call_id, given = text_of(call.get("id")), call
            if isinstance(call.get("function"), dict):  # as OpenAI has it
                given = call["function"]
            arguments = given.get("args", given.get("arguments"))
            raw = arguments.encode() if isinstance(arguments, str) else msgspec.json.encode(arguments)
            if not call_id or self.is_new(f"call {call_id}"):
                yield self.called(call_id, function_call(text_of(given.get("name")), raw, call_id))


def _fields(line: _Line) -> dict[str, Any]:
    if line.kwargs is not None and isinstance(line.id, list) and line.id:
        return {"type": line.id[-1], **line.kwargs}
    if line.data is not None:
        return {**line.data, "type": line.type}
    return line.item if line.item is not None else msgspec.structs.asdict(line)


def _is_summary(fields: dict[str, Any], words: list[str]) -> bool:
    told = fields.get("additional_kwargs")
    name, value = _SUMMARY
    if isinstance(told, dict) and told.get(name) == value:
        return True
    return bool(words) and words[0].startswith(_SUMMARY_WORDS)
