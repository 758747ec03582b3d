from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from golden import DATA, LIMIT, describe, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.sessions.agents import atif as reader
from stillroom.sessions.discovery import Broken, Found, Unchanged

SAMPLES = DATA / "atif" / "1.8"


def step(source: str, message: object, **fields: object) -> dict[str, object]:
    return {"step_id": 1, "source": source, "message": message, **fields}


def put(path: Path, *steps: object, **fields: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    agent = {"name": "terminus-2", "version": "2.0"}
    trajectory = {"schema_version": "ATIF-v1.6", "session_id": "s-1", "agent": agent, "steps": steps, **fields}
    path.write_text(json.dumps(trajectory, indent=2), encoding="utf-8")
    return path


def threads(root: Path) -> dict[str, Any]:
    found = [each for each in reader.discover(root, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]
    return {each.thread.thread_id: each.thread for each in found}


def test_trajectories_are_read_as_expected_and_are_not_new_the_second_time():
    """After a change on purpose write `describe` anew and read the difference."""
    assert describe(reader, SAMPLES) == (SAMPLES / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, SAMPLES) == {Unchanged}


def test_a_trials_task_is_nobodys_wish_and_its_reward_is_told(tmp_path: Path):
    path = put(
        tmp_path / "job" / "task__abc" / "agent" / "trajectory.json",
        step("system", "You are an agent."),
        step("user", "Make the tests pass.", timestamp="2026-11-29T12:00:00+00:00"),
        step(
            "agent",
            [{"type": "text", "text": "Trying."}, {"type": "image", "source": {"path": "a.png"}}],
            tool_calls=[{"tool_call_id": "c", "function_name": "bash_command", "arguments": {"keystrokes": "make\n"}}],
            observation={"results": [{"content": "make: *** [test] Error 1"}]},
        ),
        step("user", "Copied.", is_copied_context=True),
        step("agent", "", observation={"results": [{"content": "screen"}]}, timestamp="2026-11-29T12:05:00Z"),
    )
    (path.parents[1] / "result.json").write_text('{"verifier_result": {"rewards": {"reward": 0.0}}}', encoding="utf-8")
    said, ran, stats = read(reader, path)
    assert said == [
        ("agent", "Make the tests pass."),
        ("assistant", "Trying."),
        ("agent", "The verifier of this trial gave: reward = 0.0."),
    ]
    assert [(each.tool, each.command, each.output) for each in ran] == [
        ("bash_command", "make", "make: *** [test] Error 1"),
        ("", None, "screen"),
    ]
    assert (stats.images, stats.dropped) == (1, {"system prompt": 1, "seen before": 1})
    (thread,) = threads(tmp_path).values()
    assert (thread.source, thread.preview) == ("cli", "Make the tests pass.")
    assert (thread.created_at_ms, thread.updated_at_ms) == (1795953600000, 1795953900000)


def test_sub_agents_have_their_parents_and_are_no_persons(tmp_path: Path):
    inner = {
        "schema_version": "ATIF-v1.8",
        "agent": {"name": "sub"},
        "steps": [step("user", "Look."), step("agent", "a")],
    }
    named = {**inner, "trajectory_id": "t-2", "extra": {"cwd": "/w"}}
    put(tmp_path / "trajectory.json", step("user", "Use tabs."), subagent_trajectories=[inner, named])
    put(
        tmp_path / "trajectory.summarization-1-summary.json",
        step("user", "x"),
        session_id="s-1-summarization-1-summary",
    )
    found = threads(tmp_path)
    assert {name: (thread.source, thread.parent_thread_id, thread.preview) for name, thread in found.items()} == {
        "atif-s-1": ("cli", None, "Use tabs."),
        "atif-s-1-0": ('{"subagent":"other"}', "atif-s-1", ""),
        "atif-t-2": ('{"subagent":"other"}', "atif-s-1", ""),
        "atif-s-1-summarization-1-summary": ('{"subagent":"other"}', "atif-s-1", ""),
    }
    assert read(reader, Path(found["atif-t-2"].rollout_path))[0] == [("agent", "Look."), ("assistant", "a")]
    assert read(reader, tmp_path / "trajectory.json")[0] == [("user", "Use tabs.")]
    assert seen_again(reader, tmp_path) == {Unchanged}


def test_what_is_no_trajectory_is_broken_alone(tmp_path: Path):
    put(tmp_path / "trajectory.json", step("user", "Hi."))
    put(tmp_path / "trajectory.old.json", step("user", "Hi."), session_id="../x")
    for number, text in enumerate(("", "{}", "[]", "\x00", '{"schema_version":1}', "[" * 100_000)):
        (tmp_path / f"trajectory.{number}.json").write_text(text, encoding="utf-8")
    kinds = [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)]
    assert (kinds.count(Found), kinds.count(Broken)) == (1, 7)


@given(cut=st.floats(0, 1), tail=st.binary(max_size=20) | st.sampled_from([b'"steps":[3,{"source":7}]}', b"[" * 5000]))
def test_a_trajectory_cut_anywhere_loses_nothing_before_the_cut(tmp_path_factory, cut: float, tail: bytes):
    path, data = tmp_path_factory.mktemp("cut") / "trajectory.json", (SAMPLES / "trajectory.json").read_bytes()
    path.write_bytes(data[: int(len(data) * cut)] + tail)
    small = Reading(batch_bytes=4096, chunk_bytes=512)
    whole = describe(reader, SAMPLES).splitlines()
    for each in reader.discover(path.parent, {}, max_line_bytes=LIMIT, reading=small):
        if isinstance(each, Found) and each.thread.preview:
            *told, _, _ = describe(reader, path.parent).splitlines()[4:]
            # A call of the last step may still wait for its result, and the last word is another one.
            assert [line[:9] for line in told[:-1]] == [line[:9] for line in whole[4 : 4 + len(told) - 1]]
