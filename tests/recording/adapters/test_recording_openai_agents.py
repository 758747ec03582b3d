"""Real runs of OpenAI's Agents SDK, with its own scripted model, become threads."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from stillroom import Recorder
from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.thread import Thread

pytest.importorskip("agents.testing", reason="the extra `openai-agents` is not installed: `make adapters` runs this")

from agents import Agent, RunConfig, Runner, SQLiteSession, Usage, function_tool, handoff
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from stillroom.recording.adapters.openai_agents import RecordedSession

pytestmark = pytest.mark.anyio
CONFIG = RunConfig(tracing_disabled=True)


def says(text: str) -> ModelStep:
    return ModelStep(output=[assistant_message(text)], usage=Usage(requests=1, input_tokens=10, output_tokens=5))


def calls(*tools: str, arguments: str = "{}") -> ModelStep:
    made = [function_call(tool, arguments, call_id=f"call_{tool}") for tool in tools]
    return ModelStep(output=made, usage=Usage(requests=1, input_tokens=10, output_tokens=5))


@function_tool
def shell(command: str) -> str:
    """Run a command."""
    return f"ran {command}\nexit code: 3"


@function_tool
def broken() -> str:
    """Fail."""
    raise ValueError("it broke")


def threads(home: Path) -> dict[str, Thread]:
    found = reader_of("stillroom").discover(home, {}, max_line_bytes=1 << 23)
    return {each.thread.thread_id: each.thread for each in found if isinstance(each, Found)}


def events(thread: Thread) -> list[Said | Ran]:
    with open_thread(thread, max_line_bytes=1 << 23) as items:
        return read_events(items)


def talk(thread: Thread) -> list[object]:
    return [
        (event.who, event.text) if isinstance(event, Said) else (event.tool, event.exit_code, event.ok)
        for event in events(thread)
    ]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_run_is_recorded_with_its_calls_results_and_tokens(streamed: bool, tmp_path: Path) -> None:
    model = ScriptedModel([calls("shell", arguments='{"command": "make test"}'), calls("broken"), says("It fails.")])
    agent = Agent(name="worker", model=model, tools=[shell, broken], instructions="Never recorded.")
    with Recorder("shop-bot", thread_id="t", home=tmp_path) as recorder:
        session = RecordedSession(recorder)
        if streamed:
            result = Runner.run_streamed(agent, "Run the tests.", session=session, run_config=CONFIG)
            async for _ in result.stream_events():
                pass
        else:
            result = await Runner.run(agent, "Run the tests.", session=session, run_config=CONFIG)  # type: ignore[assignment]
        await session.record_usage(result)
    thread = threads(tmp_path)["t"]
    assert thread.preview == "Run the tests."
    assert talk(thread) == [
        ("user", "Run the tests."),
        ("shell", 3, False),
        ("broken", None, False),
        ("assistant", "It fails."),
    ]
    (ran, _) = (event for event in events(thread) if isinstance(event, Ran))
    assert ran.command == "make test"
    text = recorder.path.read_text(encoding="utf-8")
    assert "Never recorded." not in text and '"total_tokens":45' in text


async def test_a_later_run_adds_what_is_new_and_the_session_behind_keeps_the_talk(tmp_path: Path) -> None:
    agent = Agent(name="worker", model=ScriptedModel([says("One."), says("Two.")]))
    behind = SQLiteSession("mine", tmp_path / "sessions.db")
    with Recorder("bot", thread_id="t", home=tmp_path) as recorder:
        session = RecordedSession(recorder, behind)
        for text in ("first", "second"):
            await Runner.run(agent, text, session=session, run_config=CONFIG)
    behind.close()
    said = [("user", "first"), ("assistant", "One."), ("user", "second"), ("assistant", "Two.")]
    assert talk(threads(tmp_path)["t"]) == said


async def test_what_is_taken_out_to_be_tried_again_is_recorded_once(tmp_path: Path) -> None:
    with Recorder("bot", thread_id="t", home=tmp_path) as recorder:
        session = RecordedSession(recorder)
        await session.add_items([{"role": "user", "content": "hello"}])
        assert await session.pop_item() == {"role": "user", "content": "hello"}
        await session.add_items([{"role": "user", "content": "hello"}])
        await session.add_items([{"role": "user", "content": "hello"}])
        assert len(await session.get_items()) == 2
        await session.clear_session()
    assert talk(threads(tmp_path)["t"]) == [("user", "hello"), ("user", "hello")]


async def test_a_hand_off_stays_in_the_thread_and_an_agent_as_a_tool_has_its_own(tmp_path: Path) -> None:
    with Recorder("lead", thread_id="lead", home=tmp_path) as recorder:
        child = recorder.child("helper", thread_id="helper")
        helper = Agent(name="helper", model=ScriptedModel([says("Found it.")]))

        @function_tool
        async def ask(question: str) -> str:
            """Ask the helper."""
            result = await Runner.run(helper, question, session=RecordedSession(child), run_config=CONFIG)
            return str(result.final_output)

        other = Agent(name="other", model=ScriptedModel([says("Done.")]))
        steps = [calls("ask", arguments='{"question": "Where is it?"}'), calls("transfer_to_other")]
        lead = Agent(name="lead", model=ScriptedModel(steps), tools=[ask], handoffs=[handoff(other)])
        await Runner.run(lead, "Fix it.", session=RecordedSession(recorder), run_config=CONFIG)
        child.close()
    found = threads(tmp_path)
    assert [who for who, *_ in talk(found["lead"])] == ["user", "ask", "transfer_to_other", "assistant"]  # type: ignore[misc]
    assert talk(found["helper"]) == [("agent", "Where is it?"), ("assistant", "Found it.")]
    assert found["helper"].parent_thread_id == "lead"


async def test_an_agent_goes_on_when_its_record_cannot(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "sessions").write_text("not a folder")
    agent = Agent(name="worker", model=ScriptedModel([says("One."), says("Two.")]))
    session = RecordedSession(Recorder("bot", home=tmp_path))
    with caplog.at_level(logging.WARNING):
        for answer in ("One.", "Two."):
            result = await Runner.run(agent, "hello", session=session, run_config=CONFIG)
            assert result.final_output == answer
    assert len(caplog.records) == 1 and "is not recorded any more" in caplog.text
