from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden import DATA, LIMIT, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.sessions.agents import swe_agent as reader
from stillroom.sessions.agents.swe_agent import task_in
from stillroom.sessions.discovery import Broken, Found, Unchanged

SAMPLES = DATA / "swe-agent" / "mini-2.4.6"
TEMPLATE = "Please solve this issue: {{task}}\n\nYou can execute bash commands.\n{{system}}"
TASK = "Please solve this issue: Use tabs.\n\nYou can execute bash commands.\nLinux"


def mini(path: Path, *messages: object, agent_type: str = "minisweagent.agents.interactive.InteractiveAgent") -> Path:
    config = {"agent": {"instance_template": TEMPLATE}, "agent_type": agent_type, "environment": {"cwd": "/w"}}
    info = {"config": config, "mini_version": "2.4.6", "exit_status": "Submitted", "submission": "x"}
    trajectory = {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}
    path.write_text(json.dumps(trajectory, indent=2), encoding="utf-8")
    return path


def test_a_run_of_the_interactive_agent_is_read_as_expected():
    """The real file of a person who typed one task; the client complained three times about the form of an answer."""
    (found,) = reader.discover(SAMPLES, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found)
    thread = found.thread
    assert (thread.source, thread.cli_version, thread.title) == ("cli", "2.4.6", "")
    assert (thread.preview, thread.created_at_ms) == ("Check the history [[par]]", 1795955495765)
    said, (ran,), stats = read(reader, SAMPLES / "mini.traj.json")
    assert said == [
        ("user", "Check the history [[par]]"),
        ("assistant", "Looking at history and the test together."),
        ("agent", "The run ended with `RepeatedFormatError`."),
    ]
    assert (ran.command, ran.exit_code, ran.output) == ("git log --oneline | head -3", 0, "52c91da initial\n")
    assert (stats.unknown, stats.dropped) == ({}, {"system prompt": 1, "written by the client": 4})
    assert seen_again(reader, SAMPLES) == {Unchanged}


def test_only_of_the_interactive_agent_a_person_typed(tmp_path: Path):
    messages = [
        {"role": "user", "content": TASK},
        {"role": "assistant", "content": "THOUGHT\n```bash\nmake\n```"},
        {"role": "user", "content": "<returncode>2</returncode>\n<output>\nno\n</output>"},
        {
            "role": "assistant",
            "content": "A.",
            "extra": {"actions": [{"command": "ls"}, {"command": "pwd"}], "timestamp": 1795955495.5},
        },
        {"role": "user", "content": "{…}", "extra": {"raw_output": "a", "returncode": 0}},
        {"role": "user", "content": "{…}", "extra": {"raw_output": "/w", "returncode": -1}},
        {
            "role": "user",
            "content": "Interrupted by user: No.",
            "extra": {"interrupt_type": "UserInterruption"},
        },
        {"role": "user", "content": "Please give one action."},
    ]
    said, ran, _ = read(reader, mini(tmp_path / "a.traj.json", *messages))
    assert said == [
        ("user", "Use tabs."),
        ("assistant", "THOUGHT\n```bash\nmake\n```"),
        ("assistant", "A."),
        ("user", "No."),
        ("agent", "The run ended with `Submitted`."),
    ]
    assert [(each.command, each.exit_code, each.output) for each in ran] == [
        ("make", 2, "no\n"),
        ("ls", 0, "a"),
        ("pwd", -1, "/w"),
    ]
    batch = mini(tmp_path / "b.traj.json", *messages, agent_type="minisweagent.agents.default.DefaultAgent")
    assert [said for said in read(reader, batch)[0] if said[0] != "assistant"] == [
        ("agent", "Use tabs."),
        ("agent", "The run ended with `Submitted`."),
    ]
    found = [each.thread for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]
    assert {(thread.source, thread.preview, thread.cwd) for thread in found} == {("cli", "Use tabs.", "/w")}


def test_swe_agents_history_is_read_without_its_demonstrations(tmp_path: Path):
    history = [
        {"role": "system", "content": "You are…", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": "Example.", "is_demo": True},
        {"role": "user", "content": [{"type": "text", "text": "Fix it."}], "message_type": "observation"},
        {"role": "assistant", "content": "A.\n```\nls\n```", "thought": "A.", "action": "ls", "message_type": "action"},
        {"role": "user", "content": "OBSERVATION:\na.py", "message_type": "observation"},
        {
            "role": "assistant",
            "content": "B.",
            "tool_calls": [
                {
                    "id": "c",
                    "function": {
                        "name": "str_replace_editor",
                        "arguments": '{"command":"create","path":"/w/a","file_text":"x"}',
                    },
                }
            ],
        },
        {
            "role": "tool",
            "content": "OBSERVATION:\nCreated",
            "tool_call_ids": ["c"],
            "message_type": "observation",
        },
    ]
    path = tmp_path / "django__django-1.traj"
    info = {"exit_status": "submitted", "swe_agent_version": "1.1.0"}
    path.write_text(
        json.dumps({"environment": "main", "trajectory": [{"query": history}], "history": history, "info": info}),
        encoding="utf-8",
    )
    said, ran, stats = read(reader, path)
    assert said == [
        ("agent", "Fix it."),
        ("assistant", "A."),
        ("assistant", "B."),
        ("agent", "The run ended with `submitted`."),
    ]
    assert [(each.tool, each.command, each.output) for each in ran] == [
        ("bash", "ls", "a.py"),
        ("apply_patch", None, "Created"),
    ]
    assert stats.dropped == {"system prompt": 1, "demonstration": 1}
    (found,) = reader.discover(path, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found)
    assert (found.thread.title, found.thread.cli_version) == ("django__django-1", "1.1.0")


@pytest.mark.parametrize(
    ("text", "template", "task"),
    [
        (TASK, TEMPLATE, "Use tabs."),
        ("Use tabs.", "{{ task }}", "Use tabs."),
        ("<pr>\nUse tabs.\n</pr>\nGo.", "<pr>\n{{task}}\n</pr>\nGo.", "Use tabs."),
        ("Another message.", TEMPLATE, "Another message."),
        ("x", "", "x"),
    ],
)
def test_the_task_is_told_from_what_it_was_put_into(text: str, template: str, task: str):
    assert task_in(text, template) == task


def test_what_is_no_trajectory_is_broken_alone(tmp_path: Path):
    mini(tmp_path / "a.traj.json", {"role": "user", "content": TASK})
    for number, text in enumerate(("", "{}", "[]", "\x00", '{"messages":[]}', "[" * 100_000)):
        (tmp_path / f"{number}.traj").write_text(text, encoding="utf-8")
    kinds = [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)]
    assert (kinds.count(Found), kinds.count(Broken)) == (1, 6)


@given(cut=st.floats(0.4, 1), tail=st.binary(max_size=20))
def test_a_trajectory_cut_anywhere_loses_nothing_before_the_cut(tmp_path_factory, cut: float, tail: bytes):
    data = (SAMPLES / "mini.traj.json").read_bytes()
    path = tmp_path_factory.mktemp("cut") / "a.traj.json"
    path.write_bytes(data[: int(len(data) * cut)] + tail)
    small = Reading(batch_bytes=4096, chunk_bytes=512)
    (found,) = reader.discover(path.parent, {}, max_line_bytes=LIMIT, reading=small)
    assert isinstance(found, Found)
    if not found.thread.preview:
        return
    said, ran, stats = read(reader, path)
    # How the run ended is told at its end.
    assert stats.torn == (said[-1][0] != "agent")
    words = [text for who, text in said if who != "agent"]
    assert words == ["Check the history [[par]]", "Looking at history and the test together."][: len(words)]
    assert len(ran) <= 1
