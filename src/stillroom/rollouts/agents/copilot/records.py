"""Copilot CLI's events as the items that memory keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.copilot.calls import Completed, Request, read_call, read_result
from stillroom.rollouts.agents.decoder import LineDecoder, text_of, time_of
from stillroom.rollouts.agents.made import Made, said_by_agent, said_by_assistant, said_by_user, stopped_by_user
from stillroom.rollouts.agents.scaffolding import without_blocks
from stillroom.rollouts.stats import ReadStats

_SCAFFOLDING = "system_reminder|system-reminder|current_datetime"
# Nothing in these events was said or done, or they repeat what others hold: a call stands in the message that asks for
# it. More events with these beginnings come with every version.
_NOISE_NAMES = """
    session. hook. model. subagent. system. skill. permission. pending_messages. command. elicitation. user_input.
    external_tool. exit_plan_mode. assistant.turn_ assistant.intent assistant.usage assistant.message_delta
    assistant.reasoning tool.execution_start tool.execution_progress tool.execution_partial tool.user_requested
"""
_NOISE = tuple(_NOISE_NAMES.split())
_START = re.compile(rb'\{"type": ?"([\w.]{1,80})"')
_COMPACTED = "session.compaction_complete"


class Data(Completed, rename="camel"):
    """What an event holds, of any type."""

    content: Any = None
    source: Any = None
    attachments: Any = None
    tool_requests: list[Request] = msgspec.field(default_factory=list)
    parent_tool_call_id: Any = None


class Event(msgspec.Struct, rename="camel"):
    """A line."""

    type: Any = None
    id: Any = None
    timestamp: Any = None
    agent_id: Any = None
    data: Data = msgspec.field(default_factory=Data)


class _Head(msgspec.Struct):
    type: Any = None
    id: Any = None
    timestamp: Any = None


_event = msgspec.json.Decoder(Event)
_head = msgspec.json.Decoder(_Head)


class Records(LineDecoder):
    """Decodes the lines of one file. What a sub-agent did stands between those of its parent, and is left out."""

    def __init__(self, stats: ReadStats, *, cwd: str | None = None, reading: Reading = READING) -> None:
        super().__init__(stats, reading=reading)
        self._cwd = cwd

    def may_matter(self, beginning: bytes) -> bool:
        """False only if the first bytes of a line say that it holds nothing for memory."""
        start = _START.match(beginning)
        return start is None or not start[1].decode().startswith(_NOISE)

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of an event."""
        if not self.may_matter(line[:100]):
            # The type is enough; that the line is whole is looked at all the same.
            head = _head.decode(line)
            if head.type == _COMPACTED:
                self.stats.drop("compaction summary")
            return None, ()
        event = _event.decode(line)
        if isinstance(event.id, str) and not self.is_new(event.id):
            return None, ()
        return time_of(event.timestamp), self._made(event)

    def _made(self, event: Event) -> Iterator[Made]:
        kind = text_of(event.type)
        if kind.startswith(_NOISE):
            return
        if event.agent_id is not None or event.data.parent_tool_call_id is not None:
            self.stats.drop("sub-agent")
            return
        match kind:
            case "user.message":
                yield from self._user(event.data)
            case "assistant.message":
                yield from self._answer(event.data)
            case "tool.execution_complete":
                call_id = text_of(event.data.tool_call_id)
                if call_id and self.is_new(f"result {call_id}"):
                    yield read_result(self.call_of(call_id), event.data, call_id=call_id)
            case "abort":
                yield stopped_by_user()
            case _:
                self.stats.count_unknown(kind)

    def _user(self, data: Data) -> Iterator[Made]:
        text = without_blocks(text_of(data.content), _SCAFFOLDING)
        attachments = data.attachments if isinstance(data.attachments, list) else []
        self.stats.images += sum(isinstance(each, dict) and each.get("type") == "image" for each in attachments)
        if not text.strip():
            self.stats.drop("nothing said")
        elif text_of(data.source).startswith("agent-"):
            yield said_by_agent(text)
        elif data.source is not None and data.source != "user":
            self.stats.drop("written by the client")
        else:
            yield said_by_user(text)

    def _answer(self, data: Data) -> Iterator[Made]:
        if (text := text_of(data.content)).strip():
            yield said_by_assistant(text)
        for request in data.tool_requests:
            call_id = text_of(request.tool_call_id)
            if call_id and self.is_new(f"call {call_id}"):
                yield self.called(call_id, read_call(request, call_id=call_id, cwd=self._cwd))
