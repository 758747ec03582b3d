"""Long conversations are shortened from their beginning, and stay whole conversations."""

from __future__ import annotations

import json

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from stillroom.consolidate.history import keep_within


def conversation(answers: int, size: int) -> list[ModelMessage]:
    messages: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("the task")])]
    for number in range(answers):
        messages.append(ModelResponse(parts=[TextPart("so"), ToolCallPart("read", {"path": "x"}, f"c{number}")]))
        messages.append(ModelRequest(parts=[ToolReturnPart("read", "y" * size, f"c{number}")]))
    return messages


def total(messages: list[ModelMessage]) -> int:
    return sum(len(str(getattr(part, "content", ""))) for message in messages for part in message.parts)


def test_a_short_conversation_is_left_alone() -> None:
    messages = conversation(3, 1000)
    assert keep_within(messages, max_bytes=10_000) == messages


def test_the_oldest_answers_go_first_and_half_at_once() -> None:
    messages = conversation(11, 1000)
    kept = keep_within(messages, max_bytes=10_000)
    assert total(kept) < 6_000
    contents = [str(message.parts[0].content) for message in kept[2::2]]  # type: ignore[union-attr]
    assert contents[0] == "[1,000 bytes taken out to save room.] Call again if you need it."
    assert contents[-1] == "y" * 1000
    assert contents == sorted(contents)
    assert keep_within(kept, max_bytes=10_000) == kept


def test_large_calls_are_shortened_and_stay_json() -> None:
    messages = conversation(2, 10)
    messages.insert(1, ModelResponse(parts=[ToolCallPart("write", json.dumps({"path": "a", "content": "z" * 9000}))]))
    kept = keep_within(messages, max_bytes=5_000)
    assert kept[1].parts[0].args == {  # type: ignore[union-attr]
        "path": "a",
        "content": "[9,000 bytes taken out to save room.]",
    }
    broken = [*messages[:1], ModelResponse(parts=[ToolCallPart("write", '{"path": ' + "z" * 9000)]), *messages[2:]]
    assert keep_within(broken, max_bytes=5_000)[1].parts[0].args == {  # type: ignore[union-attr]
        "INVALID_JSON": "[9,009 bytes taken out to save room.]"
    }


def test_the_last_message_stays_whole() -> None:
    messages = conversation(1, 50_000)
    assert keep_within(messages, max_bytes=10_000)[-1] == messages[-1]
