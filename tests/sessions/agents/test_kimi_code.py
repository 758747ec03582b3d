from __future__ import annotations

import hashlib
import json
from pathlib import Path

from golden import DATA, LIMIT, describe, read, seen_again

from stillroom.sessions.agents.kimi_code import reader
from stillroom.sessions.discovery import Broken, Found, Unchanged


def test_sessions_are_read_as_expected_and_are_not_new_the_second_time():
    """Real files of the client; after a change on purpose write `describe` anew and read the difference."""
    home = DATA / "kimi-code" / "2.1.0"
    assert describe(reader, home) == (home / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, home) == {Unchanged}


def record(kind: str, number: int, **fields: object) -> dict[str, object]:
    return {"type": kind, "agentId": "main", **fields, "time": 1_795_954_000_000 + number}


def user(number: int, text: str, **origin: object) -> dict[str, object]:
    message = {"role": "user", "content": [{"type": "text", "text": text}], "toolCalls": []}
    if origin.get("kind") == "user":
        message["id"] = f"msg_{number}"
    return record("context.append_message", number, message={**message, "origin": origin} if origin else message)


def typed(number: int, text: str) -> dict[str, object]:
    return user(number, text, kind="user")


def event(kind: str, number: int, **fields: object) -> dict[str, object]:
    return record("context.append_loop_event", number, event={"type": kind, "uuid": f"u-{number}", **fields})


def call(number: int, name: str, **args: object) -> dict[str, object]:
    return event("tool.call", number, toolCallId=f"c-{number}", name=name, args=args)


def result(number: int, output: object, **fields: object) -> dict[str, object]:
    return event("tool.result", number, toolCallId=f"c-{number - 1}", result={"output": output, **fields})


def put(home: Path, *records: dict[str, object], agent: str = "main", name: str = "session_1", **state: object) -> Path:
    session = home / "sessions" / "wd_w_1" / name
    path = session / "agents" / agent / "wire.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    (session / "state.json").write_text(json.dumps({"cwd": "/w", **state}), encoding="utf-8")
    first = {"type": "metadata", "protocol_version": "1.5", "created_at": 1_795_954_000_000}
    lines = (json.dumps(each, separators=(",", ":")) + "\n" for each in (first, *records))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_only_what_was_typed_is_the_users_word(tmp_path: Path):
    note = '<notification id="1">\nTitle: done\n<task-notification>\nTwo.\n</task-notification>\n</notification>'
    skill = {"kind": "skill_activation", "skillName": "review", "skillArgs": "src", "trigger": "user-slash"}
    said, _, stats = read(
        reader,
        put(
            tmp_path,
            record("turn.prompt", 1, input=[{"type": "text", "text": "Fix it."}], origin={"kind": "user"}),
            typed(2, "Fix it."),
            {"message": {"message": {"role": "user"}}, "type": "agent.message.appended", "time": 3, "kind": "event"},
            user(4, "<system-reminder>\nToday.\n</system-reminder>", kind="injection"),
            user(5, "<hook_result>remember</hook_result>", kind="hook_result"),
            user(6, "The whole text of the skill.", **skill),
            user(7, "The whole text of another.", **{**skill, "trigger": "model-tool"}),
            user(8, note, kind="background_task"),
            user(9, "<bash-input>ls</bash-input>", kind="shell_command", phase="input"),
            user(10, "<bash-stdout>a.py</bash-stdout>", kind="shell_command", phase="output"),
            user(11, "The user wants tabs.", kind="compaction_summary"),
            user(12, "Boo.", kind="ghost"),
            record("context.apply_compaction", 13, summary="The user wants tabs."),
            event("content.part", 14, part={"type": "think", "think": "hm"}),
            event("content.part", 15, part={"type": "text", "text": "Done."}),
            record("permission.record_approval_result", 16, result={"decision": "rejected", "feedback": "Not so."}),
            record("turn.cancel", 17, target="active", reason="user_cancelled"),
            record("context.telepathy", 18),
            typed(19, "/compact keep the plan"),
            typed(2, "Fix it."),
        ),
    )
    assert said[:3] == [("user", "Fix it."), ("user", "/review src"), ("agent", "Title: done\n\nTwo.")]
    assert said[3][0] == "harness" and "<command>\nls\n</command>\n<result>\na.py\n</result>" in said[3][1]
    assert said[4:6] == [("assistant", "Done."), ("user", "Not so.")]
    assert [who for who, _ in said[6:]] == ["harness"]
    assert stats.unknown == {"origin/ghost": 1, "context.telepathy": 1}
    assert stats.dropped == {
        "written by the client": 3,
        "compaction summary": 2,
        "seen before": 1,
        "command to the client": 1,
    }


def test_prompts_that_were_undone_are_marked(tmp_path: Path):
    records = [typed(1, "A."), typed(2, "B."), typed(3, "C."), record("context.undo", 4, count=2), typed(5, "D.")]
    said, _, stats = read(reader, put(tmp_path, *records))
    assert [who for who, _ in said] == ["user", "harness", "harness", "user"]
    assert stats.superseded == 2
    # What was compacted can't be undone any more.
    records = [typed(1, "A."), record("context.apply_compaction", 2), record("context.undo", 3, count=9)]
    assert [who for who, _ in read(reader, put(tmp_path, *records))[0]] == ["user"]


def test_a_fork_is_read_from_where_it_left_its_origin(tmp_path: Path):
    origin = put(tmp_path, typed(1, "A."), record("forked", 2), typed(3, "B."), name="session_0")
    records = [typed(1, "A."), record("forked", 2), typed(3, "B."), record("forked", 4), typed(5, "C.")]
    fork = put(tmp_path, *records, forkedFrom="session_0")
    assert [text for _, text in read(reader, fork)[0]] == ["C."]
    assert [text for _, text in read(reader, origin)[0]] == ["A.", "B."]
    origin.unlink()
    assert [text for _, text in read(reader, fork)[0]] == ["A.", "B.", "C."]


def test_a_call_ended_as_its_result_says(tmp_path: Path):
    _, runs, _ = read(
        reader,
        put(
            tmp_path,
            call(1, "Bash", command="a"),
            result(2, "x\nCommand failed with exit code: 7.", isError=True),
            call(3, "Bash", command="b"),
            result(4, "Command failed with exit code: 7."),
            call(5, "Bash", command="c", run_in_background=True),
            result(6, "task_id: bash-1\nstatus: running"),
            call(7, "Edit", path="/w/a", old_string="1", new_string="2"),
            result(8, [{"type": "text", "text": "ok"}]),
            call(9, "Write", path="/w/b", content="1"),
            result(10, "no", isError=True),
            call(11, "AskUserQuestion", questions=[{"question": "Tabs?"}]),
            result(12, '{"answers":{"Tabs?":"Yes"}}'),
        ),
    )
    assert [(run.exit_code, run.ok, [edit.path for edit in run.edits]) for run in runs[:5]] == [
        (7, False, []),
        (0, True, []),
        (None, None, []),
        (None, True, ["a"]),
        (None, False, ["b"]),
    ]
    assert runs[0].output == "x"
    assert (runs[5].tool, runs[5].output) == ("request_user_input", '{"answers":{"Tabs?":"Yes"}}')


def test_a_sub_agents_task_is_not_the_users_word(tmp_path: Path):
    agents = {"agent-0": {"parentAgentId": "agent-1", "labels": {"profileName": "coder"}}}
    path = put(tmp_path, user(1, "Count.", kind="system_trigger", name="subagent"), agent="agent-0", agents=agents)
    assert read(reader, path)[0] == [("agent", "Count.")]
    (found,) = reader.discover(tmp_path, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found)
    assert (found.thread.thread_id, found.thread.parent_thread_id) == ("session_1:agent-0", "session_1:agent-1")
    assert found.thread.source == '{"subagent":"coder"}'


def test_a_session_of_the_predecessor_that_was_taken_over_is_read(tmp_path: Path):
    asked = {"type": "function", "id": "c-1", "function": {"name": "Shell", "arguments": '{"command":"ls"}'}}
    path = put(
        tmp_path,
        user(1, "<system>CHECKPOINT 0</system>Fix it."),
        record("context.append_message", 2, message={"role": "assistant", "content": "Yes.", "toolCalls": [asked]}),
        record("context.append_message", 3, message={"role": "tool", "content": "a.py", "toolCallId": "c-1"}),
        createdAt="2026-01-02T03:04:05.000Z",
    )
    said, runs, _ = read(reader, path)
    assert said == [("user", "Fix it."), ("assistant", "Yes.")]
    assert [(run.command, run.exit_code, run.output) for run in runs] == [("ls", 0, "a.py")]
    (found,) = reader.discover(tmp_path, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found)
    assert found.thread.created_at_ms == 1_767_323_045_000


def put_old(home: Path, *files: list[dict[str, object]]) -> Path:
    """The files of a session of the predecessor, oldest first."""
    session = home / "sessions" / hashlib.md5(b"/w").hexdigest() / "5a1c"
    session.mkdir(parents=True)
    (home / "kimi.json").write_text('{"work_dirs":[{"path":"/v"},{"path":"/w"}]}', encoding="utf-8")
    (session / "state.json").write_text('{"custom_title":"Fixing"}', encoding="utf-8")
    names = [*(f"context_{number}.jsonl" for number in range(1, len(files))), "context.jsonl"]
    for name, lines in zip(names, files, strict=True):
        (session / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return session / "context.jsonl"


def test_sessions_of_the_predecessor_are_read_with_what_was_compacted(tmp_path: Path):
    def called(number: int, name: str, **arguments: object) -> dict[str, object]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"role": "assistant", "tool_calls": [{"type": "function", "id": f"c-{number}", "function": function}]}

    def ended(number: int, *texts: str) -> dict[str, object]:
        content = [{"type": "text", "text": text} for text in texts]
        return {"role": "tool", "content": content, "tool_call_id": f"c-{number}"}

    kept: dict[str, object] = {"role": "user", "content": "Go on."}
    path = put_old(
        tmp_path,
        [
            {"role": "_system_prompt", "content": "You are a client."},
            {"role": "user", "content": [{"type": "text", "text": "<system>CHECKPOINT 0</system>Fix it."}]},
            called(1, "Shell", command="a"),
            ended(1, "<system>ERROR: Command failed with exit code: 7.</system>", "x"),
            called(2, "StrReplaceFile", path="/w/a", edit=[{"old": "1", "new": "2"}]),
            ended(2, "<system>File successfully edited.</system>"),
            kept,
        ],
        [
            {"role": "assistant", "content": "<system>Previous context has been compacted.</system>They want tabs."},
            kept,
            {"role": "_checkpoint", "id": 3},
            called(3, "Shell", command="b"),
            ended(3, "<system>Command executed successfully.</system>"),
            {"role": "assistant", "content": [{"type": "think", "think": "hm"}, {"type": "text", "text": "Done."}]},
            {"role": "_usage", "token_count": 9},
        ],
    )
    said, runs, stats = read(reader, path)
    assert said == [("user", "Fix it."), ("user", "Go on."), ("assistant", "Done.")]
    assert [(run.exit_code, run.ok, run.output, [edit.path for edit in run.edits]) for run in runs] == [
        (7, False, "x", []),
        (None, True, "", ["a"]),
        (0, True, "", []),
    ]
    assert (stats.unknown, stats.dropped) == ({}, {"compaction summary": 1})
    (found,) = reader.discover(tmp_path, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found)
    assert (found.thread.thread_id, found.thread.cwd, found.thread.title) == ("5a1c", "/w", "Fixing")
    assert found.thread.preview == "Fix it."
    path.write_bytes(b'{"role":"user","content":[3]}\n[[[')
    assert read(reader, path)[2].bad_lines == 1


def test_a_wire_that_was_put_elsewhere_is_a_session_of_its_own(tmp_path: Path):
    path = put(tmp_path, typed(1, "A.")).rename(tmp_path / "mine.jsonl")
    (found,) = reader.discover(path, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found)
    assert (found.thread.thread_id, found.thread.source) == ("mine", "cli")
    assert read(reader, path)[0] == [("user", "A.")]


def test_a_file_without_a_record_is_told(tmp_path: Path):
    put(tmp_path).write_text('{"odd":1}\n', encoding="utf-8")
    assert [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)] == [Broken]
