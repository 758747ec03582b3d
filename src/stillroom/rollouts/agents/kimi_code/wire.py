"""The records of Kimi Code's wire, as far as they are read."""

from __future__ import annotations

from typing import Any

import msgspec

from stillroom.rollouts.agents.kimi_code.messages import Message, Part


class Result(msgspec.Struct):
    """How a call ended."""

    output: list[Part] | str | None = None
    is_error: Any = msgspec.field(default=None, name="isError")


class Event(msgspec.Struct, rename="camel"):
    """What happened in a turn, of any kind."""

    type: Any = None
    uuid: Any = None
    tool_call_id: Any = None
    name: Any = None
    args: msgspec.Raw = msgspec.Raw(b"{}")
    part: Part | None = None
    result: Result | None = None


class Decision(msgspec.Struct):
    """What a person decided of a call."""

    decision: Any = None
    feedback: Any = None


class Head(msgspec.Struct):
    """What every record has."""

    type: Any = None
    kind: Any = None
    time: Any = None


class Appended(msgspec.Struct):
    """A `context.append_message`."""

    message: Message = msgspec.field(default_factory=Message)


class LoopEvent(msgspec.Struct):
    """A `context.append_loop_event`."""

    event: Event = msgspec.field(default_factory=Event)


class Approval(msgspec.Struct, rename="camel"):
    """A `permission.record_approval_result`."""

    tool_call_id: Any = None
    result: Decision = msgspec.field(default_factory=Decision)


class Cancel(msgspec.Struct):
    """A `turn.cancel`."""

    target: Any = None
    reason: Any = None


head_of = msgspec.json.Decoder(Head).decode
appended_of = msgspec.json.Decoder(Appended).decode
loop_event_of = msgspec.json.Decoder(LoopEvent).decode
approval_of = msgspec.json.Decoder(Approval).decode
cancel_of = msgspec.json.Decoder(Cancel).decode
