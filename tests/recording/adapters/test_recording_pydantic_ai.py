"""Real runs of Pydantic AI, with its own function model, become threads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, ModelRetry
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage, UsageLimits

from stillroom import Recorder
from stillroom.recording.adapters.pydantic_ai import Recording
from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Said, read_events
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.thread import Thread

pytestmark = pytest.mark.anyio


def threads(home: Path) -> dict[str, Thread]:
    found = reader_of("stillroom").discover(home, {}, max_line_bytes=1 << 23)
    return {each.thread.thread_id: each.thread for each in found if isinstance(each, Found)}


def talk(thread: Thread) -> list[object]:
    with open_thread(thread, max_line_bytes=1 << 23) as items:
        return [
            (event.who, event.text) if isinstance(event, Said) else (event.tool, event.output, event.ok)
            for event in read_events(items)
        ]


def scripted(*answers: list[TextPart | ToolCallPart]) -> FunctionModel:
    """A model that gives these answers, one after the other, of any run."""
    left = list(answers)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=left.pop(0), usage=RequestUsage(input_tokens=10, output_tokens=5))

    return FunctionModel(answer)


def with_tools(model: FunctionModel, recorder: Recorder) -> Agent[None, str]:
    agent = Agent(model, capabilities=[Recording(recorder)], instructions="Never recorded.")

    @agent.tool_plain
    def shell(command: str) -> str:
        return f"ran {command}"

    @agent.tool_plain(retries=3)
    def broken() -> str:
        raise ModelRetry("try another")

    return agent


async def test_a_run_is_recorded_with_its_calls_results_and_tokens(tmp_path: Path) -> None:
    calls = [TextPart("First the tests."), ToolCallPart("shell", {"command": "make test"}), ToolCallPart("broken", {})]
    with Recorder("bot", thread_id="t", home=tmp_path) as recorder:
        agent = with_tools(scripted(list(calls), [TextPart("It works.")]), recorder)
        await agent.run(["Run the tests.", BinaryContent(b"\0" * 9000, media_type="image/png")])
    thread = threads(tmp_path)["t"]
    assert thread.preview == "Run the tests."
    user, first, shell, broken, last = talk(thread)
    assert (user, first, last) == (
        ("user", "Run the tests."),
        ("assistant", "First the tests."),
        ("assistant", "It works."),
    )
    assert shell == ("shell", "ran make test", None)  # that the tool did well says nothing of the command
    assert broken[0] == "broken" and "try another" in broken[1] and broken[2] is False  # type: ignore[index]
    text = recorder.path.read_text(encoding="utf-8")
    assert "Never recorded." not in text and '"total_tokens":30' in text and "AAAAAAAA" not in text


async def test_a_streamed_run_is_recorded_too(tmp_path: Path) -> None:
    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        if len(messages) == 1:
            yield {0: DeltaToolCall("shell", '{"command": "ls"}')}
        else:
            yield "All "
            yield "there."

    with Recorder("bot", thread_id="t", home=tmp_path) as recorder:
        agent = with_tools(FunctionModel(stream_function=stream), recorder)
        async with agent.run_stream("Look.") as result:
            async for _ in result.stream_text():
                pass
    assert talk(threads(tmp_path)["t"]) == [("user", "Look."), ("shell", "ran ls", None), ("assistant", "All there.")]


async def test_a_history_that_is_handed_in_is_not_recorded_again(tmp_path: Path) -> None:
    with Recorder("bot", thread_id="t", home=tmp_path) as recorder:
        agent = with_tools(scripted([TextPart("One.")], [TextPart("Two.")]), recorder)
        first = await agent.run("yes")
        await agent.run("yes", message_history=first.all_messages())
    assert talk(threads(tmp_path)["t"]) == [
        ("user", "yes"),
        ("assistant", "One."),
        ("user", "yes"),
        ("assistant", "Two."),
    ]


async def test_an_answer_by_a_tool_is_recorded(tmp_path: Path) -> None:
    class Answer(BaseModel):
        lines: int

    with Recorder("bot", thread_id="t", home=tmp_path) as recorder:
        model = scripted([ToolCallPart("final_result", {"lines": 7})])
        agent = Agent(model, output_type=Answer, capabilities=[Recording(recorder)])
        assert (await agent.run("Count.")).output.lines == 7
    (user, call) = talk(threads(tmp_path)["t"])
    assert user == ("user", "Count.") and call[0] == "final_result" and call[1]  # type: ignore[index]


async def test_a_run_that_fails_leaves_what_was_done(tmp_path: Path) -> None:
    with Recorder("bot", thread_id="t", home=tmp_path) as recorder:
        agent = with_tools(scripted([ToolCallPart("shell", {"command": "ls"})]), recorder)
        with pytest.raises(UsageLimitExceeded):
            await agent.run("Look.", usage_limits=UsageLimits(request_limit=1))
    said = talk(threads(tmp_path)["t"])
    assert said[0] == ("user", "Look.") and said[1][0] == "shell"  # type: ignore[index]


async def test_an_agent_inside_a_tool_has_a_thread_of_its_own_and_runs_may_overlap(tmp_path: Path) -> None:
    with Recorder("lead", thread_id="lead", home=tmp_path) as recorder:
        child = recorder.child("helper", thread_id="helper")
        helper = Agent(scripted(*([TextPart("Found it.")] for _ in range(2))), capabilities=[Recording(child)])
        calls = [ToolCallPart("ask", {"question": name}, tool_call_id=name) for name in ("one", "two")]
        lead = Agent(scripted(list(calls), [TextPart("Done.")]), capabilities=[Recording(recorder)])

        @lead.tool_plain
        async def ask(question: str) -> str:
            await asyncio.sleep(0)
            return (await helper.run(question)).output

        await lead.run("Fix it.")
        child.close()
    found = threads(tmp_path)
    assert [each[0] for each in talk(found["lead"])] == ["user", "ask", "ask", "assistant"]  # type: ignore[index]
    helped = talk(found["helper"])
    assert sorted(helped, key=str) == [  # type: ignore[type-var]
        *(("agent", name) for name in ("one", "two")),
        *[("assistant", "Found it.")] * 2,
    ]
    assert found["helper"].parent_thread_id == "lead"


async def test_an_agent_goes_on_when_its_record_cannot(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "sessions").write_text("not a folder")
    agent = with_tools(scripted([TextPart("One.")]), Recorder("bot", home=tmp_path))
    with caplog.at_level(logging.WARNING):
        assert (await agent.run("hello")).output == "One."
    assert len(caplog.records) == 1 and "is not recorded any more" in caplog.text
