from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from golden import DATA, LIMIT, describe, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.errors import RolloutError
from stillroom.homes import HOMES
from stillroom.sessions.agents import cline as reader
from stillroom.sessions.discovery import Found, Unchanged
from stillroom.sessions.item import Item
from stillroom.thread import Thread

SAMPLE = DATA / "cline" / "3.0.65"
Block = dict[str, object]


def test_sessions_are_read_as_expected_and_are_not_new_the_second_time():
    """Real files of the client; after a change on purpose write `describe` anew and read the difference."""
    assert describe(reader, SAMPLE) == (SAMPLE / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, SAMPLE) == {Unchanged}


def text(*texts: str) -> list[Block]:
    return [{"type": "text", "text": each} for each in texts]


def message(role: str, content: object, number: int | None = None, **fields: object) -> Block:
    return {**({"id": f"m-{number}"} if number is not None else {}), "role": role, "content": content, **fields}


def call(number: int, tool: str, **arguments: object) -> Block:
    return message("assistant", [{"type": "tool_use", "id": f"c-{number}", "name": tool, "input": arguments}])


def outcome(number: int, content: object) -> list[Block]:
    return [{"type": "tool_result", "tool_use_id": f"c-{number}", "content": content}]


def result(number: int, content: object) -> Block:
    return message("user", outcome(number, content))


def told(result: str, *, success: bool) -> Block:
    return {"query": "q", "result": result, "success": success}


def put(home: Path, *messages: Block, name: str = "1_a", fork: str | None = None, **fields: object) -> Path:
    path = home / "sessions" / name / f"{name}.messages.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"sessionId": name, **fields, "messages": messages}, indent=1), encoding="utf-8")
    metadata = {"title": "T", "git": {"branch": "b"}, "fork": {"forkedFromSessionId": fork}}
    manifest = {"cwd": "/w", "interactive": True, "started_at": "2026-11-29T12:00:00.000Z", "metadata": metadata}
    path.with_name(f"{name}.json").write_text(json.dumps(manifest), encoding="utf-8")
    return path


def put_task(home: Path, *messages: Block, **described: object) -> Path:
    path = home / "tasks" / "1795954684396" / "api_conversation_history.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(messages), encoding="utf-8")
    if described:
        path.with_name("history_item.json").write_text(json.dumps(described), encoding="utf-8")
    return path


def threads(home: Path) -> list[Thread]:
    return [each.thread for each in reader.discover(home, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]


def test_only_what_was_typed_is_the_users_word(tmp_path: Path):
    said, _, stats = read(
        reader,
        put(
            tmp_path,
            message("user", '<user_input mode="act"><mode_notice>switched</mode_notice>\nFix it.</user_input>', 1),
            message("user", text("And this.\n<file_content path='a'>x</file_content>"), 2),
            message("user", "The user wants tabs.", 3, metadata={"kind": "compaction_summary"}),
            message("user", "Go on.", 4, metadata={"kind": "completion_reminder"}),
            message("user", text("[TASK RESUMPTION] Go on."), 5),
            message("assistant", [{"type": "thinking", "thinking": "hm"}, *text("Done.")], 6),
            call(7, "submit_and_exit", summary="All done."),
            message("telepathy", "x", 8),
            message("assistant", [{"type": ["odd"]}], 9),
            message("user", "Fix it.", 1),
        ),
    )
    assert said == [("user", "Fix it."), ("user", "And this."), ("assistant", "Done."), ("assistant", "All done.")]
    assert stats.unknown == {"message/telepathy": 1, "assistant/['odd']": 1}
    assert stats.dropped == {
        "compaction summary": 1,
        "written by the client": 1,
        "nothing said": 1,
        "seen before": 1,
    }


def test_a_call_ended_as_its_result_says(tmp_path: Path):
    failed = told("[Command exited with code 3]\n\n[stderr]\nno", success=False)
    running = told("[Command is still running. Output will continue in /tmp/x]", success=True)
    said, runs, _ = read(
        reader,
        put(
            tmp_path,
            call(1, "run_commands", commands=["a", {"command": "b", "args": ["-c"]}]),
            result(1, [failed, told("x", success=True)]),
            call(2, "run_commands", commands="c"),
            result(2, [running]),
            call(3, "editor", path="/w/a", old_text="1", new_text="2"),
            result(3, json.dumps(told("", success=True))),
            call(4, "editor", path="/w/b", new_text="1"),
            result(4, '{"error":"denied"}'),
            call(5, "ask_question", question="Tabs?", options=["yes", "no"]),
            result(5, "yes"),
        ),
    )
    assert [(run.command, run.exit_code, run.ok, [edit.path for edit in run.edits]) for run in runs] == [
        ("a", 3, False, []),
        ("b -c", 0, True, []),
        ("c", None, None, []),
        (None, None, True, ["a"]),
        (None, None, False, ["b"]),
        (None, None, None, []),
    ]
    assert json.loads(runs[-1].output) == {"answers": {"Tabs?": "yes"}}
    assert said == []


def test_in_an_editor_only_marked_texts_are_the_users_words(tmp_path: Path):
    details = "<environment_details>\n# Current Working Directory (/home/w) Files\n</environment_details>"
    said, runs, stats = read(
        reader,
        put_task(
            tmp_path,
            message("user", text("<task>\nFix it.\n</task>", details), ts=1795954684400),
            call(1, "read_file", path="a"),
            result(1, "[read_file for 'a'] Result:\n<feedback>\nAlways delete.\n</feedback>"),
            call(2, "execute_command", command="a"),
            result(2, "Command executed in terminal within working directory '/w'. Exit code: 2\nOutput:\nx"),
            call(3, "execute_command", command="b"),
            result(3, "[execute_command for 'b'] Result:\nCommand executed.\nOutput:\nExit code: 0\nOutput:\n"),
            call(4, "replace_in_file", path="b", diff="------- SEARCH\n1\n=======\n2\n+++++++ REPLACE\n"),
            message("user", [*outcome(4, "The user denied it."), *text("Why:\n<feedback>\nNo.\n</feedback>")]),
            call(5, "ask_followup_question", question="Tabs?"),
            result(5, "<answer>\nyes\n</answer>"),
            call(6, "attempt_completion", result="Done."),
            result(6, "The user has provided feedback:\n<feedback>\nThanks.\n</feedback>"),
            message("user", text("[ERROR] You did not use a tool.")),
        ),
    )
    assert said == [("user", "Fix it."), ("user", "No."), ("assistant", "Done."), ("user", "Thanks.")]
    assert [(run.exit_code, run.ok, [edit.path for edit in run.edits]) for run in runs] == [
        (None, True, []),
        (2, False, []),
        (None, None, []),
        (None, False, ["b"]),
        (None, None, []),
    ]
    assert stats.dropped == {"written by the client": 2}
    (thread,) = threads(tmp_path)
    assert (thread.thread_id, thread.cwd, thread.source) == ("1795954684396", "/home/w", "vscode")
    assert thread.created_at_ms == 1795954684400


def written(tool: str, **arguments: str) -> str:
    fields = "".join(f"<{name}>{value}</{name}>\n" for name, value in arguments.items())
    return f"<{tool}>\n{fields}</{tool}>"


def test_calls_that_a_model_wrote_into_its_text_are_read(tmp_path: Path):
    said, runs, _ = read(
        reader,
        put_task(
            tmp_path,
            message("user", text("<task>\nFix it.\n</task>")),
            message("assistant", f"<thinking>\nhm\n</thinking>\nI look.\n{written('execute_command', command='ls')}"),
            message("user", text("[execute_command for 'ls'] Result:", "Command executed.\nOutput:\nx")),
            message("assistant", text(written("write_to_file", path="a", content="\n<b>1</b>\n"))),
            message("user", text("[write_to_file for 'a'] Result:\nSaved.")),
            message("assistant", text(written("attempt_completion", result="\nDone.\n"))),
            message("user", text("[attempt_completion] Result:", "<feedback>\nThanks.\n</feedback>")),
        ),
    )
    assert said == [("user", "Fix it."), ("assistant", "I look."), ("assistant", "Done."), ("user", "Thanks.")]
    assert [(run.command, run.output, run.ok, [edit.diff for edit in run.edits]) for run in runs] == [
        ("ls", "x", None, []),
        (None, "Saved.", True, ["+<b>1</b>"]),
    ]


def test_what_a_sub_agent_is_told_is_its_parents_word(tmp_path: Path):
    put(tmp_path, message("user", "Fix it."))
    child = tmp_path / "sessions" / "1_a" / "counter.messages.json"
    origin = {"parentThreadId": "1_a", "subagent": "counter"}
    session = {"sessionId": "1_a__counter", "agent": "subagent", "origin": origin}
    child.write_text(json.dumps({**session, "messages": [message("user", "Count.")]}), encoding="utf-8")
    found = {thread.thread_id: thread for thread in threads(tmp_path)}
    assert set(found) == {"1_a", "1_a__counter"}
    assert found["1_a__counter"].parent_thread_id == "1_a"
    assert found["1_a__counter"].source == '{"subagent":"counter"}'
    assert read(reader, child)[0] == [("agent", "Count.")]


def test_a_sub_task_of_roo_codes_is_told_by_its_parent(tmp_path: Path):
    prompt = message("user", text("<user_message>\nCount.\n</user_message>"))
    path = put_task(tmp_path, prompt, parentTaskId="t-0", workspace="/w")
    (thread,) = threads(tmp_path)
    assert (thread.parent_thread_id, thread.cwd, thread.preview) == ("t-0", "/w", "")
    assert read(reader, path)[0] == [("agent", "Count.")]


def test_a_fork_is_read_from_where_it_left_its_origin(tmp_path: Path):
    common = [message("user", "A.", 1), message("user", "B.", 2)]
    origin = put(tmp_path, *common, message("user", "C.", 3))
    fork = put(tmp_path, *common, message("user", "D.", 4), name="2_b", fork="1_a")
    assert [said for _, said in read(reader, fork)[0]] == ["D."]
    origin.unlink()
    assert [said for _, said in read(reader, fork)[0]] == ["A.", "B.", "D."]


def test_a_root_may_be_the_clients_home_its_data_or_one_session(tmp_path: Path):
    path = put(tmp_path / "data", message("user", "A."))
    assert [len(threads(root)) for root in (tmp_path, tmp_path / "data", path.parent, path)] == [1] * 4
    (thread,) = threads(tmp_path)
    assert (thread.cwd, thread.git_branch, thread.title, thread.source) == ("/w", "b", "T", "cli")


def test_editors_are_looked_into_only_where_an_extension_is(tmp_path: Path):
    storage = tmp_path / "VSCodium" / "User" / "globalStorage" / "rooveterinaryinc.roo-cline"
    storage.mkdir(parents=True)
    environ = {"XDG_CONFIG_HOME": str(tmp_path), "CLINE_DIR": "/cline"}
    assert HOMES["cline"].roots(environ) == (Path("/cline/data"), storage)


@given(cut=st.floats(0, 1), garbage=st.binary(max_size=40))
def test_a_document_cut_anywhere_loses_nothing_before_the_cut(tmp_path_factory, cut: float, garbage: bytes):
    (sample,) = SAMPLE.glob("sessions/*/*.messages.json")
    data = sample.read_bytes()
    at = int(len(data) * cut)
    path = tmp_path_factory.mktemp("cut") / sample.name
    path.write_bytes(data[:at] + garbage)
    threads(path.parent)
    messages = data[:at].count(b'"role"') - 1
    before = [(item.type, item.raw) for item in items(sample) if item.line_no <= messages]
    # Without the manifest beside it no folder is known, and paths stay whole.
    part = [(item.type, item.raw.replace(b"/home/dev/demo-app/", b"")) for item in items(path)]
    assert part[: len(before)] == [(kind, raw.replace(b"/home/dev/demo-app/", b"")) for kind, raw in before]


def items(path: Path) -> list[Item]:
    found: list[Item] = []
    with suppress(RolloutError):
        small = Reading(batch_bytes=4096, chunk_bytes=512)
        with reader.open_items(path, max_line_bytes=LIMIT, reading=small) as stream:
            found.extend(stream)
    return found
