"""A thread that is given out says what was said and done, in a form that others read, without its secrets."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from stillroom import Recorder, Usage, load_settings
from stillroom.clock import FixedClock
from stillroom.config import Settings
from stillroom.errors import RecordingError
from stillroom.homes import Format
from stillroom.recording.exporting.export import ExportFormat, export_thread, find_thread
from stillroom.rollouts.redact import redact
from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.store import Store
from stillroom.thread import FileStamp, Thread

DATA = Path(__file__).parents[1] / "data"
EXAMPLE = Path(__file__).parents[2] / "examples" / "codex-home"
LIMIT = 8 * 1024 * 1024
CLOCK = FixedClock(1_795_954_573_000)
TOKEN = "ghp_" + "a1B2" * 9
HOMES: list[tuple[Format, Path]] = [
    ("codex", EXAMPLE),
    ("claude-code", DATA / "claude-code" / "2.1.150"),
    ("gemini-cli", DATA / "gemini-cli" / "0.61.0-headless"),
    ("qwen-code", DATA / "qwen-code" / "0.24.4"),
    ("copilot-cli", DATA / "copilot-cli" / "1.0.102"),
]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(home=tmp_path / "home")


def export(settings: Settings, thread: Thread, format: ExportFormat, **options: Any) -> bytes:
    return b"".join(export_thread(settings, thread, format=format, **options))


def recorded(settings: Settings, name: str) -> Thread:
    return find_thread(settings, name, clock=CLOCK)


def events(thread: Thread) -> list[Said | Ran]:
    with open_thread(thread, max_line_bytes=LIMIT) as items:
        return read_events(items)


def check_atif(trajectory: dict[str, Any]) -> None:
    """The rules of the format, as its own models have them."""
    assert trajectory["schema_version"] == "ATIF-v1.8"
    assert set(trajectory) == {
        *("schema_version", "session_id", "trajectory_id", "agent", "steps", "final_metrics", "extra")
    }
    assert set(trajectory["agent"]) == {"name", "version"}
    assert [step["step_id"] for step in trajectory["steps"]] == list(range(1, len(trajectory["steps"]) + 1))
    assert trajectory["final_metrics"]["total_steps"] == len(trajectory["steps"])
    for step in trajectory["steps"]:
        assert set(step) <= {
            *("step_id", "source", "message", "timestamp", "tool_calls", "observation", "extra"),
        }
        assert step["source"] in ("system", "user", "agent") and isinstance(step["message"], str)
        calls = step.get("tool_calls", [])
        assert step["source"] == "agent" or not calls
        for call in calls:
            assert set(call) == {"tool_call_id", "function_name", "arguments"} and isinstance(call["arguments"], dict)
        for result in step.get("observation", {"results": []})["results"]:
            assert set(result) <= {"source_call_id", "content", "extra"} and isinstance(result["content"], str)
            if "source_call_id" in result:
                assert result["source_call_id"] in {call["tool_call_id"] for call in calls}


@pytest.mark.parametrize(("format", "home"), HOMES, ids=[format for format, _ in HOMES])
def test_every_thread_of_every_agent_is_written_in_every_form(format: Format, home: Path, tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path)
    found = [each for each in reader_of(format).discover(home, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]
    assert found
    for thread in (each.thread for each in found):
        before = events(thread)
        if not before:
            continue
        said = [event for event in before if isinstance(event, Said)]
        ran = [event for event in before if isinstance(event, Ran)]

        trajectory = json.loads(export(settings, thread, "atif"))
        check_atif(trajectory)
        users = [step["message"] for step in trajectory["steps"] if step["source"] == "user"]
        assert users == [redact(event.text) for event in said if event.who == "user"]
        calls = [call for step in trajectory["steps"] for call in step.get("tool_calls", [])]
        assert [call["function_name"] for call in calls] == [event.tool for event in ran]

        page = export(settings, thread, "markdown").decode()
        assert page.startswith("# ") and all(redact(event.text).strip() in page for event in said)

        (tmp_path / "export.jsonl").write_bytes(export(settings, thread, "codex"))
        (again,) = reader_of("codex").discover(tmp_path / "export.jsonl", {}, max_line_bytes=LIMIT)
        assert isinstance(again, Found)
        assert (again.thread.cwd, again.thread.preview) == (thread.cwd, redact(thread.preview))
        assert [told(event) for event in events(again.thread)] == [told(event) for event in before]


def told(event: Said | Ran) -> object:
    """Codex has no word for a call that succeeded without an exit code."""
    if isinstance(event, Said):
        return event.who, redact(event.text)
    output = redact(event.output).removeprefix("execution error: ")
    return event.tool, redact(event.command or ""), event.exit_code, event.ok is False, output


def test_an_answer_is_a_step_with_its_calls_and_their_outcomes(settings: Settings) -> None:
    with Recorder("bot", thread_id="t-1", version="2", cwd="/w", home=settings.home, clock=CLOCK) as recorder:
        recorder.user(f"Deploy with {TOKEN}.")
        recorder.assistant("Two things first.")
        one = recorder.tool_call("shell", {"command": "make test"}, call_id="one")
        two = recorder.tool_call("note", '"not an object"', call_id="two")
        recorder.tool_result(two, "kept", ok=True)
        recorder.tool_result(one, "1 failed", exit_code=2)
        recorder.from_agent("Wait.", author="reviewer")
        recorder.tool_result("nobody asked", "late")
        recorder.usage(Usage(input_tokens=7, cached_input_tokens=2, output_tokens=3))
    trajectory = json.loads(export(settings, recorded(settings, "t-1"), "atif"))
    check_atif(trajectory)
    assert trajectory["agent"] == {"name": "bot", "version": "2"}
    assert trajectory["extra"] == {"cwd": "/w", "source": "cli"}
    assert trajectory["final_metrics"] == {
        "total_steps": 4,
        "total_prompt_tokens": 7,
        "total_completion_tokens": 3,
        "total_cached_tokens": 2,
    }
    user, answer, agent, stray = trajectory["steps"]
    assert user["message"] == "Deploy with [REDACTED_SECRET:github_token]."
    assert [call["arguments"] for call in answer["tool_calls"]] == [
        {"command": "make test"},
        {"input": "not an object"},
    ]
    assert answer["observation"]["results"] == [
        {"source_call_id": "two", "content": "kept", "extra": {"ok": True}},
        {"source_call_id": "one", "content": "1 failed", "extra": {"exit_code": 2, "ok": False}},
    ]
    assert (agent["source"], agent["extra"]) == ("system", {"said_by": "agent"})
    assert stray["observation"]["results"] == [{"content": "late", "extra": {"call_id": "nobody asked"}}]


def test_a_page_shows_commands_with_their_exit_codes_and_no_output_ends_its_block(settings: Settings) -> None:
    with Recorder("bot", thread_id="t", home=settings.home, clock=CLOCK) as recorder:
        recorder.user("Look.")
        recorder.tool_result(recorder.tool_call("shell", {"command": "cat notes"}), "```sh\nrm\n````\n", exit_code=1)
        recorder.tool_result(recorder.tool_call("lookup", {"id": 7}), "nothing", ok=False)
    page = export(settings, recorded(settings, "t"), "markdown").decode()
    assert "```sh\ncat notes\n```\n" in page
    assert "Exit code 1 of `shell`:\n\n`````text\n```sh\nrm\n````\n`````\n" in page
    assert '```json\n{"id":7}\n```' in page and "Failure of `lookup`:" in page


def test_texts_are_cut_only_where_that_is_asked_for(settings: Settings) -> None:
    with Recorder("bot", thread_id="t", home=settings.home) as recorder:
        recorder.user("a" * 500 + " " + "b" * 500)
    thread = recorded(settings, "t")
    (step,) = json.loads(export(settings, thread, "atif"))["steps"]
    assert len(step["message"]) == 1001
    (step,) = json.loads(export(settings, thread, "atif", max_chars=20))["steps"]
    assert step["message"] == f"{'a' * 10}\n[… 981 characters cut …]\n{'b' * 10}"


def test_a_rollout_for_codex_has_a_uuid_and_outputs_that_are_text(settings: Settings) -> None:
    with Recorder("bot", thread_id="ticket-7", home=settings.home) as recorder:
        recorder.user("hello")
        recorder.tool_result(recorder.tool_call("look"), {"a": 1}, ok=True)
        recorder.tool_result(recorder.tool_call("look"), "gone", ok=False)
    lines = [json.loads(line) for line in export(settings, recorded(settings, "ticket-7"), "codex").splitlines()]
    meta = lines[0]["payload"]
    assert len(meta["id"]) == 36 and meta["original_thread_id"] == "ticket-7" and meta["originator"] == "bot"
    outputs = [line["payload"]["output"] for line in lines if line["payload"].get("type") == "function_call_output"]
    assert outputs == ['{"a":1}', "execution error: gone"]


def test_a_thread_is_found_by_the_beginning_of_its_id_if_no_other_begins_so(settings: Settings) -> None:
    with pytest.raises(RecordingError, match="no thread has an id that begins with `a`"):
        recorded(settings, "a")
    made = [
        Thread(
            thread_id=name,
            agent="codex",
            rollout_path=f"/gone/{name}.jsonl",
            source="cli",
            cwd="/",
            created_at_ms=1,
            updated_at_ms=1,
        )
        for name in ("ab", "abc", "abd", "b_x", "bax")
    ]
    settings.home.mkdir()
    with Store.open(settings.database, clock=CLOCK) as store:
        store.threads.save([(thread, FileStamp(size=1, mtime_ns=1)) for thread in made])
    assert [recorded(settings, text).thread_id for text in ("ab", "abc", "b_", "ba")] == ["ab", "abc", "b_x", "bax"]
    with pytest.raises(RecordingError, match="several ids: `b_x`, `bax`"):
        recorded(settings, "b")
    with pytest.raises(RecordingError, match="can't be opened"):
        export(settings, recorded(settings, "abc"), "codex")


@pytest.mark.slow
@pytest.mark.parametrize("format", ["atif", "codex", "markdown"])
def test_a_long_thread_is_written_at_constant_memory(format: ExportFormat, settings: Settings) -> None:
    with Recorder("bot", thread_id="t", home=settings.home, redaction=None) as recorder:
        for number in range(300):
            recorder.assistant(f"Step {number}. " + "some words " * 10)
            recorder.tool_result(recorder.tool_call("shell", {"command": "x"}), "many words " * 9000, exit_code=0)
    thread = recorded(settings, "t")
    tracemalloc.start()
    written = sum(map(len, export_thread(settings, thread, format=format)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert written > 29_000_000 and peak < 12_000_000
