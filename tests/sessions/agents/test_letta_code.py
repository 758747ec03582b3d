from __future__ import annotations

import base64
import json
from pathlib import Path

from golden import DATA, LIMIT, describe, read, seen_again

from stillroom.sessions.agents import letta_code as reader
from stillroom.sessions.discovery import Broken, Found, Unchanged

INVENTED = "2026-01-01T00:00:07.000Z"


def test_sessions_are_read_as_expected_and_are_not_new_the_second_time():
    """Real files of the client; after a change on purpose write `describe` anew and read the difference."""
    home = DATA / "letta-code" / "0.25.9"
    assert describe(reader, home) == (home / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, home) == {Unchanged}


def message(number: int, role: str, *texts: str, created_at: str = INVENTED, **fields: object) -> dict[str, object]:
    metadata = {"created_at": created_at, "conversation_id": "conv-1"}
    content = [{"type": "text", "text": text} for text in texts]
    return {"id": f"ui-msg-{number}", "role": role, "metadata": metadata, "content": content, **fields}


def put(home: Path, *messages: dict[str, object], agent: str = "agent-1", **told: object) -> Path:
    folder = home / "conversations" / "one"
    folder.mkdir(parents=True, exist_ok=True)
    conversation = {"id": "conv-1", "agent_id": agent, **told}
    (folder / "conversation.json").write_text(json.dumps(conversation), encoding="utf-8")
    path = folder / "messages.jsonl"
    path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in messages), encoding="utf-8")
    return path


def found(home: Path) -> Found:
    (each,) = reader.discover(home, {}, max_line_bytes=LIMIT)
    assert isinstance(each, Found)
    return each


def test_only_what_was_typed_is_the_users_word(tmp_path: Path):
    compacted = message(3, "user", "The user wants tabs.", metadata={"compaction": {"summary": "The user wants tabs."}})
    note = "<task-notification><summary>done</summary><result>Two.</result></task-notification>"
    said, _, stats = read(
        reader,
        put(
            tmp_path,
            message(1, "user", "<system-reminder>where you are</system-reminder>", "Fix it."),
            message(2, "user", "<system-reminder>be quick</system-reminder>"),
            compacted,
            message(4, "user", note),
            message(5, "assistant", "Done."),
            message(1, "user", "Fix it."),
        ),
    )
    assert said == [("user", "Fix it."), ("agent", "Two."), ("assistant", "Done.")]
    assert stats.dropped == {"nothing said": 1, "compaction summary": 1, "seen before": 1}


def test_a_call_ended_as_its_result_says(tmp_path: Path):
    def call(number: int, name: str, **arguments: object) -> dict[str, object]:
        block = {"type": "toolCall", "id": f"c-{number}", "name": name, "arguments": arguments}
        return message(number, "assistant", content=[block])

    def result(number: int, name: str, text: str, *, failed: bool = False) -> dict[str, object]:
        return message(number, "toolResult", text, toolCallId=f"c-{number - 1}", toolName=name, isError=failed)

    _, runs, _ = read(
        reader,
        put(
            tmp_path,
            call(1, "Bash", command="a"),
            result(2, "Bash", "Exit code: 7\nx"),
            call(3, "exec_command", cmd="b"),
            result(4, "exec_command", "x"),
            call(5, "Bash", command="c"),
            result(6, "Bash", "Command running in background with ID: bash_1"),
            call(7, "MultiEdit", file_path="/w/a", edits=[{"old_string": "1", "new_string": "2"}]),
            result(8, "MultiEdit", "ok"),
            call(9, "Write", file_path="/w/b", content="1"),
            result(10, "Write", "no", failed=True),
        ),
    )
    assert [(run.exit_code, run.ok, [edit.path for edit in run.edits]) for run in runs] == [
        (7, False, []),
        (0, True, []),
        (None, None, []),
        (None, True, ["/w/a"]),
        (None, False, ["/w/b"]),
    ]
    assert runs[0].output == "x"


def test_a_time_that_the_client_made_up_is_not_believed(tmp_path: Path):
    path = put(tmp_path, message(1, "user", "A."), message(2, "user", "B.", created_at="2026-11-29T12:00:00.000Z"))
    with reader.open_items(path, max_line_bytes=LIMIT) as items:
        assert [item.timestamp_ms for item in items] == [None, 1_795_953_600_000]
    thread = found(tmp_path).thread
    assert thread.created_at_ms == thread.updated_at_ms == 1_795_953_600_000
    path = put(tmp_path, message(1, "user", "A."))
    assert found(tmp_path).thread.updated_at_ms == path.stat().st_mtime_ns // 1_000_000


def test_what_another_agents_helper_was_asked_is_not_the_users_word(tmp_path: Path):
    path = put(tmp_path, message(1, "user", "Count."), agent="helper", archived=True, summary="Counting")
    name = base64.urlsafe_b64encode(b"helper").decode().rstrip("=")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / f"{name}.json").write_text('{"tags":["role:subagent"]}', encoding="utf-8")
    assert read(reader, path)[0] == [("agent", "Count.")]
    thread = found(tmp_path).thread
    assert (thread.thread_id, thread.archived, thread.title) == ("helper:conv-1", True, "Counting")
    assert thread.source == '{"subagent":"other"}'


def test_a_file_of_messages_alone_tells_whose_it_is(tmp_path: Path):
    path = put(tmp_path, message(1, "user", "A.", metadata={"agent_id": "agent-2", "conversation_id": "conv-7"}))
    path.with_name("conversation.json").unlink()
    assert found(path).thread.thread_id == "agent-2:conv-7"


def test_a_conversation_of_nobody_is_told(tmp_path: Path):
    put(tmp_path, message(1, "user", "A.")).with_name("conversation.json").unlink()
    assert [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)] == [Broken]
