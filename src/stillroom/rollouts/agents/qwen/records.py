"""Qwen Code's lines as the items that memory keeps. The client says of each line who wrote it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import number_of, text_of, time_of
from stillroom.rollouts.agents.google_parts import Part, read_call, read_result
from stillroom.rollouts.agents.made import Made, said_by_agent, said_by_assistant
from stillroom.rollouts.agents.scaffolding import finding_of, is_notification, without_blocks
from stillroom.rollouts.agents.talk import TalkDecoder

_SCAFFOLDING = r"qwen:[a-z-]{1,60}-context|system-reminder"
# The client's bookkeeping: nothing in it was said or done.
_SYSTEM_NAMES = """
    at_command attribution_snapshot branch_checkpoint chat_compression custom_title file_history_snapshot rewind
    session_model session_source slash_command ui_telemetry
"""
_SYSTEM = frozenset(_SYSTEM_NAMES.split())
_GOALS = "goal_"
#: A prompt of a person: all that is typed has no subtype, or this one.
_TYPED = (None, "mid_turn_user_message")
_PASSED_OVER = b'"type":"system","provenance":"system"'


class Message(msgspec.Struct):
    """What Google's API calls a content."""

    parts: list[Part] = []


class _Display(msgspec.Struct, rename="camel"):
    exit_code: Any = None


class _Result(msgspec.Struct, rename="camel"):
    status: Any = None
    result_display: msgspec.Raw = msgspec.Raw(b"null")


class Line(msgspec.Struct, rename="camel"):
    """A line."""

    uuid: Any = None
    parent_uuid: Any = None
    timestamp: Any = None
    type: Any = None
    subtype: Any = None
    provenance: Any = None
    cwd: Any = None
    is_sidechain: Any = None
    message: Message | None = None
    tool_call_result: _Result | None = None


line_of = msgspec.json.Decoder(Line).decode


class Records(TalkDecoder):
    """Decodes the lines of one file. All of them are known by their ids."""

    def may_matter(self, beginning: bytes) -> bool:
        """False of the client's own records: their type stands in the first bytes."""
        return _PASSED_OVER not in beginning[:600]

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a line."""
        read = line_of(line)
        if isinstance(read.uuid, str) and not self.is_new(read.uuid):
            return None, ()
        return time_of(read.timestamp), self._made(read)

    def _made(self, line: Line) -> Iterator[Made]:
        match line.type:
            case "user":
                yield from self._user(line)
            case "assistant":
                yield from self._answer(line)
            case "tool_result":
                yield from self._results(line)
            case "system":
                if text_of(line.subtype) not in _SYSTEM and not text_of(line.subtype).startswith(_GOALS):
                    self.stats.count_unknown(f"system/{line.subtype}")
            case kind:
                self.stats.count_unknown(str(kind))

    def _user(self, line: Line) -> Iterator[Made]:
        words = words_of(line)
        joined = "\n".join(words)
        if is_notification(joined):
            yield from map(said_by_agent, filter(None, [finding_of(joined)]))
        elif not is_typed(line):
            self.stats.drop("written by the client")
        elif not words:
            self.stats.drop("nothing said")
        else:
            yield from self.prompt(text_of(line.uuid), *words)
        self.stats.images += sum(part.inline_data is not None for part in _parts(line))

    def _answer(self, line: Line) -> Iterator[Made]:
        for part in _parts(line):
            text = text_of(part.text)
            if part.function_call is not None:
                call_id = text_of(part.function_call.id)
                if call_id and self.is_new(f"call {call_id}"):
                    call = read_call(part.function_call, call_id=call_id, cwd=text_of(line.cwd) or None)
                    yield self.called(call_id, call)
            elif text.strip() and not part.thought:
                yield said_by_assistant(text)

    def _results(self, line: Line) -> Iterator[Made]:
        told = line.tool_call_result or _Result()
        for part in _parts(line):
            if (returned := part.function_response) is None:
                continue
            call_id = text_of(returned.id)
            if call_id and self.is_new(f"result {call_id}"):
                yield read_result(
                    self.call_of(call_id),
                    returned,
                    call_id=call_id,
                    failed=told.status not in (None, "success"),
                    exit_code=_exit_code(told),
                )


def is_typed(line: Line) -> bool:
    """Whether a user's line is a person's, or, in a sub-agent's file, another agent's."""
    return line.subtype in _TYPED and line.provenance in (None, "real_user")


def words_of(line: Line) -> list[str]:
    """What is said in a user's line, without what hooks put beside it."""
    texts = (without_blocks(text_of(part.text), _SCAFFOLDING) for part in _parts(line))
    return [text for text in texts if text.strip()]


def _parts(line: Line) -> list[Part]:
    return line.message.parts if line.message is not None else []


def _exit_code(told: _Result) -> int | None:
    try:
        return number_of(msgspec.json.decode(told.result_display, type=_Display).exit_code)
    except msgspec.DecodeError:
        return None
