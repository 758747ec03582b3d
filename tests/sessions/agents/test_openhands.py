from __future__ import annotations

import json
import os
from pathlib import Path
from uuid import UUID

from golden import DATA, LIMIT, describe, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.sessions.agents import openhands as reader
from stillroom.sessions.discovery import Broken, Found, Unchanged
from stillroom.thread import FileStamp, Thread

SAMPLE = DATA / "openhands" / "1.58.2"
ROOT = "__root__"


def test_conversations_are_read_as_expected_and_are_not_new_the_second_time():
    """Real files of the SDK; after a change on purpose write `describe` anew and read the difference."""
    assert describe(reader, SAMPLE) == (SAMPLE / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, SAMPLE) == {Unchanged}


def uuid(number: int) -> str:
    return str(UUID(int=number))


def event(kind: str, number: int, *, source: str = "agent", parent: str | None = None, **fields: object):
    head = {"id": uuid(number), "timestamp": f"2026-11-29T12:00:{number:02}.123456", "source": source}
    return {**head, **({"parent_id": parent} if parent else {}), **fields, "kind": kind}


def message(number: int, text: str, *, source: str = "user", parent: str | None = None, **fields: object):
    said = {"role": "assistant" if source == "agent" else "user", "content": [{"type": "text", "text": text}]}
    return event("MessageEvent", number, source=source, parent=parent, llm_message=said, **fields)


def action(number: int, tool: str, kind: str, *, thought: str = "", **fields: object):
    call = {"name": tool, "arguments": json.dumps(fields)}
    asked = {"tool_name": tool, "tool_call_id": f"c-{number}", "tool_call": call, "action": {"kind": kind, **fields}}
    return event("ActionEvent", number, thought=[{"text": thought}], **asked)


def result(number: int, kind: str = "Observation", text: str = "", **fields: object):
    seen = {"kind": kind, "content": [{"type": "text", "text": text}], **fields}
    return event("ObservationEvent", number, source="environment", tool_call_id=f"c-{number - 1}", observation=seen)


def put(home: Path, *events: dict[str, object], number: int = 1, leaf: str | None = None) -> Path:
    folder = home / "conversations" / UUID(int=number).hex
    (folder / "events").mkdir(parents=True, exist_ok=True)
    for position, each in enumerate(events):
        name = f"event-{position:05}-{each['id']}.json"
        (folder / "events" / name).write_text(json.dumps(each, indent=1), encoding="utf-8")
    state = {"id": uuid(number), "workspace": {"working_dir": "/w"}, **({"leaf_event_id": leaf} if leaf else {})}
    (folder / "base_state.json").write_text(json.dumps(state), encoding="utf-8")
    return folder / "base_state.json"


def look(home: Path, known: dict[str, FileStamp] | None = None) -> list[Found | Unchanged | Broken]:
    return list(reader.discover(home, known or {}, max_line_bytes=LIMIT))


def threads(home: Path) -> list[Thread]:
    return [each.thread for each in look(home) if isinstance(each, Found)]


def test_only_what_was_typed_is_the_users_word(tmp_path: Path):
    said, _, stats = read(
        reader,
        put(
            tmp_path,
            event("SystemPromptEvent", 1, system_prompt={"text": "You are."}),
            message(2, "Fix it.", extended_content=[{"text": "a skill"}]),
            message(3, "Count.", sender="planner"),
            message(4, "[a hook] go on", source="environment"),
            message(5, "Done.", source="agent"),
            event("Condensation", 6, summary="The user wants tabs."),
            event("InterruptEvent", 7, source="user"),
            action(8, "finish", "FinishAction", message="All done."),
            result(9, "FinishObservation", "All done."),
            action(10, "think", "ThinkAction", thought="Hm."),
            event("Telepathy", 11),
            {**event("", 12), "kind": ["odd"]},
            message(2, "Fix it."),
        ),
    )
    assert [who for who, _ in said] == ["user", "agent", "assistant", "harness", "assistant", "assistant"]
    assert [text for who, text in said if who != "harness"] == ["Fix it.", "Count.", "Done.", "All done.", "Hm."]
    assert stats.unknown == {"Telepathy": 1, "": 1}
    assert stats.dropped == {"written by the client": 2, "compaction summary": 1, "seen before": 1}


def test_a_call_ended_as_its_result_says(tmp_path: Path):
    said, runs, _ = read(
        reader,
        put(
            tmp_path,
            action(1, "terminal", "TerminalAction", command="false"),
            result(2, "TerminalObservation", "x", is_error=False, exit_code=1),
            action(3, "terminal", "TerminalAction", command="sleep 99"),
            result(4, "TerminalObservation", exit_code=-1),
            action(5, "file_editor", "FileEditorAction", command="create", path="/w/a", file_text="1"),
            result(6, is_error=False),
            action(7, "file_editor", "FileEditorAction", command="str_replace", path="/w/a", old_str="1", new_str="2"),
            result(8, is_error=True, text="no match"),
            action(9, "file_editor", "FileEditorAction", command="view", path="/w/a"),
            event("AgentErrorEvent", 10, tool_call_id="c-9", error="bad call"),
            action(11, "terminal", "TerminalAction", command="rm a"),
            event("UserRejectObservation", 12, tool_call_id="c-11", rejection_reason="Keep it."),
            action(13, "terminal", "TerminalAction", command="rm b"),
            event("UserRejectObservation", 14, tool_call_id="c-13", rejection_reason="No.", rejection_source="hook"),
        ),
    )
    assert [(run.tool, run.command, run.exit_code, run.ok, [edit.path for edit in run.edits]) for run in runs] == [
        ("terminal", "false", 1, False, []),
        ("terminal", "sleep 99", None, None, []),
        ("apply_patch", None, None, True, ["a"]),
        ("apply_patch", None, None, False, ["a"]),
        ("file_editor.view", None, None, False, []),
        ("terminal", "rm a", None, False, []),
        ("terminal", "rm b", None, False, []),
    ]
    assert said == [("user", "Keep it.")]


def test_prompts_of_a_branch_that_was_left_are_marked(tmp_path: Path):
    events = [message(1, "A."), message(2, "B.", parent=uuid(1)), message(3, "C.", parent=uuid(1))]
    state = put(tmp_path, *events, leaf=uuid(3))
    assert [who for who, _ in read(reader, state)[0]] == ["user", "harness", "user"]
    # Where the user went back and has said nothing yet.
    assert [who for who, _ in read(reader, put(tmp_path, *events, leaf=uuid(1)))[0]] == ["user", "harness", "harness"]
    # Older versions store no leaf, and no parents.
    assert [who for who, _ in read(reader, put(tmp_path, *events))[0]] == ["user", "user", "user"]


def test_a_prompt_that_begins_anew_leaves_all_before_it(tmp_path: Path):
    state = put(tmp_path, message(1, "A."), message(2, "B.", parent=ROOT), leaf=uuid(2))
    assert [who for who, _ in read(reader, state)[0]] == ["harness", "user"]


def test_a_fork_is_read_from_where_it_left_its_origin(tmp_path: Path):
    common = [message(1, "A."), message(2, "B.")]
    origin = put(tmp_path, *common, message(3, "C."))
    fork = put(tmp_path, *common, message(4, "D."), number=2)
    for event_file in fork.parent.glob("events/*"):
        os.utime(event_file, (4e9, 4e9))
    assert [text for _, text in read(reader, origin)[0]] == ["A.", "B.", "C."]
    assert [text for _, text in read(reader, fork)[0]] == ["D."]
    origin.with_name("events").rename(tmp_path / "gone")
    assert [text for _, text in read(reader, fork)[0]] == ["A.", "B.", "D."]


def test_what_a_sub_agent_is_told_is_its_parents_word(tmp_path: Path):
    parent = put(tmp_path, message(1, "Fix it."))
    child = put(tmp_path, message(2, "Count."), number=2).parent
    (parent.parent / "subagents").mkdir()
    child = child.rename(parent.parent / "subagents" / child.name)
    found = {thread.thread_id: thread for thread in threads(tmp_path)}
    assert found[uuid(2)].parent_thread_id == uuid(1)
    assert found[uuid(2)].source == '{"subagent":"other"}'
    assert (found[uuid(2)].preview, found[uuid(1)].preview) == ("", "Fix it.")
    assert read(reader, child / "base_state.json")[0] == [("agent", "Count.")]


def test_a_conversation_that_went_on_is_read_with_its_new_events(tmp_path: Path):
    state = put(tmp_path, message(1, "A."))
    (first,) = look(tmp_path)
    assert isinstance(first, Found)
    put(tmp_path, message(1, "A."), message(2, "B."), leaf=uuid(2))
    (second,) = look(tmp_path, {str(state): first.stamp})
    assert isinstance(second, Found)
    assert second.thread.updated_at_ms == first.thread.updated_at_ms + 1000


def test_a_root_may_be_one_conversation_or_a_folder_of_them(tmp_path: Path):
    state = put(tmp_path, message(1, "A."))
    assert [len(threads(root)) for root in (state, *state.parents[:3])] == [1] * 4


def test_a_conversation_without_events_is_told(tmp_path: Path):
    put(tmp_path)
    assert [type(each) for each in look(tmp_path)] == [Broken]


@given(number=st.integers(0, 6), text=st.binary(max_size=80), state=st.binary(max_size=40) | st.none())
def test_garbage_costs_at_most_the_event_in_whose_place_it_stands(
    tmp_path_factory, number: int, text: bytes, state: bytes | None
):
    (folder,) = (path.parent for path in SAMPLE.glob("*/base_state.json"))
    copy = tmp_path_factory.mktemp("garbage") / folder.name
    (copy / "events").mkdir(parents=True)
    events = sorted((folder / "events").glob("*.json"))
    for position, path in enumerate(events):
        data = path.read_bytes()
        (copy / "events" / path.name).write_bytes(data[: len(data) // 2] + text if position == number else data)
    (copy / "base_state.json").write_bytes(state or (folder / "base_state.json").read_bytes())
    assert len(threads(copy.parent)) == 1
    small = Reading(batch_bytes=4096, chunk_bytes=512)
    with reader.open_items(folder / "base_state.json", max_line_bytes=LIMIT, reading=small) as items:
        whole = [item.raw for item in items if item.line_no != number + 1]
    with reader.open_items(copy / "base_state.json", max_line_bytes=LIMIT, reading=small) as items:
        damaged = [item.raw for item in items if item.line_no != number + 1]
    assert len(damaged) == len(whole)
