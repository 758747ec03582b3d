"""OpenHands' events as the items that memory keeps. The client says of each event where it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import text_of
from stillroom.rollouts.agents.made import (
    Made,
    output,
    said_by_agent,
    said_by_assistant,
    said_by_user,
    stopped_by_user,
)
from stillroom.rollouts.agents.openhands.calls import (
    Action,
    Observation,
    Text,
    ToolCall,
    joined,
    read_call,
    read_result,
)
from stillroom.rollouts.agents.talk import TalkDecoder
from stillroom.rollouts.timestamps import parse_local_time

_SUMMARIES = frozenset({"Condensation", "CondensationRequest", "CondensationSummaryEvent"})
_PASSED_OVER_NAMES = """
    SystemPromptEvent ConversationStateUpdateEvent ConversationErrorEvent HookExecutionEvent LLMCompletionLogEvent
    StreamingDeltaEvent TokenEvent
"""
_PASSED_OVER = frozenset(_PASSED_OVER_NAMES.split())
# Words and thoughts that the client has tools for.
_SAYING = frozenset({"FinishAction", "FinishObservation"})
_THINKING = frozenset({"ThinkAction", "ThinkObservation"})
# What the client writes where a person gives no reason.
_NO_REASON = "User rejected the action"


class _Message(msgspec.Struct):
    role: Any = None
    content: list[Text] | str = []


class _Event(msgspec.Struct):
    id: Any = None
    timestamp: Any = None
    source: Any = None
    kind: Any = None
    sender: Any = None
    llm_message: _Message | None = None
    thought: list[Text] = []
    action: Action | None = None
    tool_name: Any = None
    tool_call_id: Any = None
    tool_call: ToolCall = msgspec.field(default_factory=ToolCall)
    observation: Observation | None = None
    error: Any = None
    rejection_reason: Any = None
    rejection_source: Any = None


_event = msgspec.json.Decoder(_Event)


class Records(TalkDecoder):
    """Decodes the events of a conversation. All of them are known by their ids."""

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of an event."""
        event = _event.decode(line)
        if isinstance(event.id, str) and not self.is_new(event.id):
            return None, ()
        return parse_local_time(text_of(event.timestamp)), self._made(event)

    def _made(self, event: _Event) -> Iterator[Made]:
        call_id = text_of(event.tool_call_id)
        match text_of(event.kind):
            case "MessageEvent":
                yield from self._message(event, event.llm_message or _Message())
            case "ActionEvent":
                yield from self._action(event, event.action or Action(), call_id)
            case "ObservationEvent":
                seen = event.observation or Observation()
                if text_of(seen.kind) not in _SAYING | _THINKING:
                    yield read_result(self.call_of(call_id), seen, call_id=call_id)
            case "AgentErrorEvent":
                yield output(self.call_of(call_id), call_id, text_of(event.error), ok=False)
            case "UserRejectObservation":
                yield from self._rejected(event, call_id)
            case "PauseEvent" | "InterruptEvent":
                yield stopped_by_user()
            case kind if kind in _SUMMARIES:
                self.stats.drop("compaction summary")
            case kind if kind in _PASSED_OVER:
                self.stats.drop("written by the client")
            case kind:
                self.stats.count_unknown(kind)

    def _message(self, event: _Event, message: _Message) -> Iterator[Made]:
        text = joined(message.content)
        if not isinstance(message.content, str):
            self.stats.images += sum(part.type == "image" for part in message.content)
        if not text.strip():
            self.stats.drop("nothing said")
        elif event.source == "agent":
            yield said_by_assistant(text)
        elif event.source != "user":
            self.stats.drop("written by the client")
        elif event.sender is not None:
            yield said_by_agent(text)
        else:
            yield from self.prompt(text_of(event.id), text)

    def _action(self, event: _Event, action: Action, call_id: str) -> Iterator[Made]:
        if (thought := joined(event.thought)).strip():
            yield said_by_assistant(thought)
        kind = text_of(action.kind)
        if kind in _SAYING:
            if (words := text_of(action.message)).strip():
                yield said_by_assistant(words)
        elif kind not in _THINKING and call_id and self.is_new(f"call {call_id}"):
            call = read_call(text_of(event.tool_name), action, event.tool_call, call_id=call_id, cwd=self.cwd)
            yield self.called(call_id, call)

    def _rejected(self, event: _Event, call_id: str) -> Iterator[Made]:
        """A reason is a person's word; a hook's is not."""
        reason = text_of(event.rejection_reason)
        yield output(self.call_of(call_id), call_id, f"Action rejected: {reason}", ok=False)
        if event.rejection_source != "hook" and not reason.startswith(_NO_REASON) and reason.strip():
            yield said_by_agent(reason) if self.of_agent else said_by_user(reason)
