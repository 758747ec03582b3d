from __future__ import annotations

import json
from pathlib import Path

from golden import DATA, LIMIT, describe, read, seen_again

from stillroom.sessions.agents import pi as reader
from stillroom.sessions.discovery import Broken, Found, Unchanged

FIRST, SECOND = (f"2026-11-29T12-0{number}-00-000Z_s-{number}.jsonl" for number in (1, 2))


def test_sessions_are_read_as_expected_and_are_not_new_the_second_time():
    """Real files of the client; after a change on purpose write `describe` anew and read the difference."""
    home = DATA / "pi" / "1.6.0"
    assert describe(reader, home) == (home / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, home) == {Unchanged}


def entry(number: int, kind: str = "message", under: int | None = None, **fields: object) -> dict[str, object]:
    parent = number - 1 if under is None else under
    return {
        "type": kind,
        "id": f"e-{number}",
        "parentId": f"e-{parent}" if parent else None,
        "timestamp": f"2026-11-29T12:00:{number:02}.000Z",
        **fields,
    }


def user(number: int, text: str, under: int | None = None) -> dict[str, object]:
    return entry(number, under=under, message={"role": "user", "content": [{"type": "text", "text": text}]})


def answer(number: int, *blocks: dict[str, object], **fields: object) -> dict[str, object]:
    return entry(number, message={"role": "assistant", "content": list(blocks), **fields})


def call(number: int, name: str, **arguments: object) -> dict[str, object]:
    return answer(number, {"type": "toolCall", "id": f"c-{number}", "name": name, "arguments": arguments})


def result(number: int, name: str, text: str, *, failed: bool) -> dict[str, object]:
    told = {"toolCallId": f"c-{number - 1}", "toolName": name, "isError": failed}
    return entry(number, message={"role": "toolResult", "content": [{"type": "text", "text": text}], **told})


def put(home: Path, *entries: dict[str, object], name: str = FIRST, project: str = "--w--", **header: object) -> Path:
    path = home / "sessions" / project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    first = {"type": "session", "version": 3, "id": name[-9:-6], "cwd": "/w", **header}
    lines = (json.dumps(each, separators=(",", ":")) + "\n" for each in (first, *entries))
    path.write_text("".join(lines), encoding="utf-8")
    return path


def test_only_what_was_typed_is_the_users_word(tmp_path: Path):
    said, _, stats = read(
        reader,
        put(
            tmp_path,
            entry(1, message={"role": "system", "content": "", "sections": {}}),
            user(2, '<skill name="review" location="/s">\nLook.\n</skill>\n\nFix it.'),
            entry(3, "custom_message", customType="memory", content="REMEMBER"),
            entry(4, message={"role": "user", "content": "And this."}),
            answer(5, {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Do"}, stopReason="aborted"),
            entry(6, "compaction", summary="The user wants tabs."),
            entry(7, "branch_summary", summary="The user wanted spaces."),
            entry(8, message={"role": "compactionSummary", "summary": "The user wants tabs."}),
            entry(9, "telepathy"),
            entry(10, message={"role": "ghost"}),
            user(11, "/compact"),
            user(2, "Fix it."),
        ),
    )
    assert [(who, text.strip()) for who, text in said[:3]] == [
        ("user", "Fix it."),
        ("user", "And this."),
        ("assistant", "Do"),
    ]
    assert [who for who, _ in said[3:]] == ["harness"]
    assert stats.unknown == {"telepathy": 1, "message/ghost": 1}
    assert stats.dropped == {
        "written by the client": 2,
        "compaction summary": 3,
        "seen before": 1,
        "command to the client": 1,
    }


def test_prompts_of_a_branch_that_was_left_are_marked(tmp_path: Path):
    entries = [user(1, "A."), user(2, "B."), user(3, "C."), user(4, "D.", under=1)]
    turned = [dict(reversed(each.items())) for each in entries]
    for lines in (entries, turned):
        said, _, stats = read(reader, put(tmp_path, *lines))
        assert [who for who, _ in said] == ["user", "harness", "harness", "user"]
        assert stats.superseded == 2


def test_a_fork_is_read_from_where_it_left_its_origin(tmp_path: Path):
    common = [user(1, "A."), user(2, "B.")]
    origin = put(tmp_path, *common, user(3, "C."))
    fork = put(tmp_path, *common, user(13, "D.", under=2), name=SECOND, project="--v--", parentSession=f"/gone/{FIRST}")
    assert [text for _, text in read(reader, origin)[0]] == ["A.", "B.", "C."]
    assert [text for _, text in read(reader, fork)[0]] == ["D."]
    origin.unlink()
    assert [text for _, text in read(reader, fork)[0]] == ["A.", "B.", "D."]


def test_a_header_leads_to_no_file_outside_of_the_sessions(tmp_path: Path):
    outside = put(tmp_path / "other", user(1, "A."))
    fork = put(tmp_path, user(1, "A."), name=SECOND, parentSession=str(outside))
    assert [text for _, text in read(reader, fork)[0]] == ["A."]


def test_a_call_ended_as_its_result_says(tmp_path: Path):
    _, runs, _ = read(
        reader,
        put(
            tmp_path,
            call(1, "bash", command="a"),
            result(2, "bash", "x\n\nCommand exited with code 7", failed=True),
            call(3, "bash", command="echo Command exited with code 7"),
            result(4, "bash", "Command exited with code 7", failed=False),
            call(5, "bash", command="b"),
            result(6, "bash", "Command aborted", failed=True),
            call(7, "edit", path="/w/a", edits=[{"oldText": "1", "newText": "2"}, {"oldText": "3", "newText": "4"}]),
            result(8, "edit", "ok", failed=False),
            call(9, "edit", path="/w/b", oldText="1", newText="2"),
            result(10, "edit", "Could not find", failed=True),
            call(11, "write", path="/w/c", content="1"),
            result(12, "write", "ok", failed=False),
            call(13, "edit", path=7),
        ),
    )
    assert [(run.exit_code, run.ok, [edit.path for edit in run.edits]) for run in runs] == [
        (7, False, []),
        (0, True, []),
        (None, False, []),
        (None, True, ["a"]),
        (None, False, ["b"]),
        (None, True, ["c"]),
        (None, None, []),
    ]
    assert [run.output for run in runs[:2]] == ["x", "Command exited with code 7"]


def test_sessions_are_found_wherever_they_may_lie(tmp_path: Path):
    path = put(tmp_path, user(1, "A."))
    for root in (tmp_path, tmp_path / "sessions", path.parent, path):
        found = [each for each in reader.discover(root, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]
        assert [each.thread.rollout_path for each in found] == [str(path)]


def test_what_a_fork_of_the_client_adds_is_understood(tmp_path: Path):
    """As oh-my-pi stores it."""
    session = put(
        tmp_path,
        entry(1, message={"role": "developer", "content": "Be brief."}),
        entry(2, message={"role": "fileMention", "files": []}),
        entry(3, message={"role": "pythonExecution", "code": "1+1", "output": "2"}),
        entry(4, "mode_change", mode="plan"),
        entry(5, "title_change", title="Adding"),
        title="First",
    )
    said, _, stats = read(reader, session)
    assert [who for who, _ in said] == ["harness"] and "<command>\n1+1\n" in said[0][1]
    assert (stats.unknown, stats.dropped) == ({}, {"written by the client": 2})
    task = put(tmp_path, user(1, "Count."), name="Task-1.jsonl", project=f"--w--/{session.stem}")
    assert read(reader, task)[0] == [("agent", "Count.")]
    found = [each for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]
    by_path = {each.thread.rollout_path: each.thread for each in found}
    assert by_path[str(session)].title == "Adding"
    assert (by_path[str(task)].parent_thread_id, by_path[str(task)].source) == ("s-1", '{"subagent":"other"}')


def test_a_file_without_a_header_is_told(tmp_path: Path):
    path = put(tmp_path)
    path.write_text('{"odd":1}\n', encoding="utf-8")
    assert [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)] == [Broken]
