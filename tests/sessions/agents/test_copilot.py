from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden import DATA, LIMIT, describe, read, seen_again

from stillroom.sessions.agents import copilot as reader
from stillroom.sessions.discovery import Broken, Found, Unchanged

SAMPLES = DATA / "copilot-cli"
ALONE = "You are the client. You are running in non-interactive mode and can ask nobody."


@pytest.mark.parametrize("layout", ["1.0.102", "1.0.102-hooks"])
def test_sessions_are_read_as_expected_and_are_not_new_the_second_time(layout: str):
    """Real files of the client; after a change on purpose write `describe` anew and read the difference."""
    home = SAMPLES / layout
    assert describe(reader, home) == (home / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, home) == {Unchanged}


def event(kind: str, number: int, agent: str | None = None, **data: object) -> dict[str, object]:
    made = {"type": kind, "data": data, "id": f"e-{number}", "timestamp": f"2026-11-29T12:00:{number:02}.000Z"}
    return {**made, "agentId": agent} if agent is not None else made


def put(home: Path, *events: dict[str, object]) -> Path:
    start = event("session.start", 0, sessionId="s-1", copilotVersion="1.0", context={"cwd": "/w", "branch": "main"})
    path = home / "session-state" / "s-1" / "events.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(each, separators=(",", ":")) + "\n" for each in (start, *events)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_only_what_was_typed_is_the_users_word(tmp_path: Path):
    said, _, stats = read(
        reader,
        put(
            tmp_path,
            event("user.message", 1, content="Fix it.\n<system_reminder>remember</system_reminder>"),
            event("user.message", 2, content="Skill.", source="skill-x"),
            event("user.message", 3, content="Count.", source="agent-s-1"),
            event("user.message", 4, "a-1", content="Count."),
            event("assistant.message", 5, "a-1", content="Two."),
            event("assistant.message", 6, content="Done."),
            event("session.compaction_complete", 7, summaryContent="The user wants tabs."),
            event("abort", 8, reason="user"),
            event("telepathy", 9),
            event("user.message", 1, content="Fix it."),
        ),
    )
    assert [who for who, _ in said] == ["user", "agent", "assistant", "harness"]
    assert said[0][1].strip() == "Fix it."
    assert stats.unknown == {"telepathy": 1}
    assert stats.dropped == {"written by the client": 1, "sub-agent": 2, "compaction summary": 1, "seen before": 1}


def test_a_call_ended_as_its_result_says(tmp_path: Path):
    def call(number: int, name: str, **arguments: object) -> dict[str, object]:
        request = {"toolCallId": f"c-{number}", "name": name, "arguments": arguments}
        return event("assistant.message", number, content="", toolRequests=[request])

    def result(number: int, content: str, **data: object) -> dict[str, object]:
        told = {"toolCallId": f"c-{number - 1}", "success": True, "result": {"content": content}, **data}
        return event("tool.execution_complete", number, **told)  # type: ignore[arg-type]

    hook = '\n\nTool "bash" succeeded. Additional guidance from postToolUse hooks:\nremember'
    end = "\n<shellId: 0 completed with exit code 3>"
    _, runs, _ = read(
        reader,
        put(
            tmp_path,
            call(1, "bash", command="a"),
            result(2, f"x{end}{hook}", shellExecution={"exitCode": 3}),
            call(3, "create", path="/w/a.py", file_text="1"),
            result(4, "created"),
            call(5, "view", path="/x"),
            event("tool.execution_complete", 6, toolCallId="c-5", success=False, error={"message": "no such file"}),
            call(7, "web_fetch", url="https://x"),
            call(9, "bash", command="slow"),
        ),
    )
    assert [(run.exit_code, run.ok, run.output, [edit.path for edit in run.edits]) for run in runs[:3]] == [
        (3, False, "x", []),
        (None, True, "created", ["a.py"]),
        (None, False, "no such file", []),
    ]
    assert runs[4].ok is None


@pytest.mark.parametrize(
    ("told", "source"),
    [((ALONE,), "exec"), (("You are the client.",), "cli"), ((ALONE, "You are the client."), "cli"), ((), "cli")],
)
def test_a_session_in_which_a_person_ever_was_is_theirs(tmp_path: Path, told: tuple[str, ...], source: str):
    prompt = event("user.message", 1, content="Fix it.")
    put(tmp_path, prompt, *(event("system.message", number, content=text) for number, text in enumerate(told, 2)))
    (found,) = reader.discover(tmp_path, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found)
    assert (found.thread.source, found.thread.preview, found.thread.cwd) == (source, "Fix it.", "/w")


def test_a_file_that_does_not_say_whose_it_is_is_told(tmp_path: Path):
    path = put(tmp_path)
    path.write_text('{"odd": 1}\n', encoding="utf-8")
    assert [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)] == [Broken]
