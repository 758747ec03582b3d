from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from golden import DATA, LIMIT, describe, read, seen_again

from stillroom.sessions.agents import gemini as reader
from stillroom.sessions.discovery import Broken, Found, Unchanged
from stillroom.sessions.google_parts import Shell, read_shell

SAMPLES = DATA / "gemini-cli"
LAYOUTS = ("0.61.0-headless", "0.61.0-interactive-hooks")
HEADER = {"sessionId": "s-1", "startTime": "2026-11-29T12:00:00.000Z", "kind": "main"}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sessions_are_read_as_expected_and_are_not_new_the_second_time(layout: str):
    """Real files of the client; after a change on purpose write `describe` anew and read the difference."""
    home = SAMPLES / layout
    assert describe(reader, home) == (home / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, home) == {Unchanged}


def user(number: int, *texts: str, **fields: object) -> dict[str, object]:
    at = f"2026-11-29T12:00:{number:02}.000Z"
    return {"id": f"m-{number}", "timestamp": at, "type": "user", "content": [{"text": t} for t in texts], **fields}


def gemini(number: int, content: object, *calls: dict[str, object]) -> dict[str, object]:
    return {**user(number), "type": "gemini", "content": content, "toolCalls": list(calls)}


def call(
    name: str, output: dict[str, object] | None = None, status: str = "success", **args: object
) -> dict[str, object]:
    made: dict[str, object] = {"id": f"{name}-1", "name": name, "args": args, "status": status}
    if output is not None:
        made["result"] = [{"functionResponse": {"id": f"{name}-1", "name": name, "response": output}}]
    return made


def put(home: Path, *lines: dict[str, object], name: str = "session-x.jsonl") -> Path:
    path = home / "tmp" / "w" / "chats" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, *lines)), encoding="utf-8")
    return path


def test_what_the_client_and_hooks_wrote_is_nobodys_word(tmp_path: Path):
    said, _, stats = read(
        reader,
        put(
            tmp_path,
            user(1, "<session_context>x</session_context>"),
            user(2, "Fix it.", "<hook_context>remember</hook_context>"),
            user(3, "Use tabs.<hook_context>x</hook_context>", displayContent=[{"text": "Use tabs."}]),
            user(4, "/compress"),
            user(5, "/home/w/a.py is broken"),
            {**user(6, "oops"), "type": "error"},
            {**user(7, "x"), "type": "hologram"},
            {"odd": 1},
        ),
    )
    assert said == [("user", "Fix it."), ("user", "Use tabs."), ("user", "/home/w/a.py is broken")]
    assert stats.unknown == {"message/hologram": 1, "line": 1}


def test_rewinds_mark_what_they_took_back(tmp_path: Path):
    said, _, stats = read(
        reader,
        put(
            tmp_path,
            user(1, "A."),
            gemini(2, "a"),
            user(3, "B."),
            {"$set": {"messages": [user(9, "Summary of all."), user(8, "B.")]}},
            user(4, "C."),
            {"$rewindTo": "m-8"},
            user(5, "D."),
        ),
    )
    assert [who for who, _ in said] == ["user", "assistant", "harness", "harness", "user"]
    assert (stats.superseded, stats.dropped["compaction summary"]) == (2, 2)
    assert [who for who, _ in read(reader, put(tmp_path, user(1, "A."), {"$rewindTo": "?"}, user(2, "B.")))[0]] == [
        "harness",
        "user",
    ]


def test_a_session_that_is_only_a_snapshot_is_read_from_it(tmp_path: Path):
    asked = {"functionCall": {"id": "c", "name": "run_shell_command", "args": {"command": "make"}}}
    ended = {
        "functionResponse": {"id": "c", "name": "run_shell_command", "response": {"output": "Output: no\nExit Code: 2"}}
    }
    snapshot = [user(1, "A."), gemini(2, [{"text": "thinking", "thought": True}, {"text": "a"}, asked]), user(3)]
    snapshot[2]["content"] = [ended]
    said, runs, _ = read(reader, put(tmp_path, {"$set": {"messages": snapshot}}, user(1, "A."), user(4, "B.")))
    assert said == [("user", "A."), ("assistant", "a"), ("user", "B.")]
    assert [(run.command, run.exit_code, run.output) for run in runs] == [("make", 2, "no")]


def test_calls_end_as_their_results_tell(tmp_path: Path):
    asked = [{"question": "Which?"}]
    _, runs, _ = read(
        reader,
        put(
            tmp_path,
            gemini(1, "", call("run_shell_command", {"output": "Output: x"}, command="ls")),
            gemini(2, "", call("write_file", {"output": "ok"}, file_path="/a", content="1")),
            gemini(3, "", call("read_file", {"error": "no such file"}, "error", file_path="/b")),
            gemini(4, "", call("mcp_docs_find", {"output": "words"}, query="x")),
            gemini(5, "", call("google_web_search", {"output": "words"}, query="x")),
            gemini(6, "", call("ask_user", {"output": '{"answers":{"0":"SQLite"}}'}, questions=asked)),
            gemini(7, "", call("slow")),
        ),
    )
    assert [(run.tool, run.exit_code, run.ok) for run in runs[:4]] == [
        ("run_shell_command", 0, True),
        ("apply_patch", None, True),
        ("read_file", None, False),
        ("mcp__docs_find", None, True),
    ]
    assert "SQLite" in runs[5].output
    assert runs[6].ok is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "<untrusted_context>\nOutput: a\nb\nExit Code: 1\nProcess Group PGID: 9\n</untrusted_context>",
            ("a\nb", 1, False),
        ),
        ("Command: a\nb\nDirectory: (root)\nOutput: x\nError: (none)\nExit Code: 0\nSignal: (none)", ("x", 0, False)),
        ("Output: x\nExit Code: (none)\nSignal: 9", ("x", None, True)),
        ("Exit Code: 3", ("Exit Code: 3", None, False)),
        ("Output: Exit Code: 3\nmore", ("Exit Code: 3\nmore", None, False)),
        ("Output:  " + "\n" * 5000, ("", None, False)),
    ],
)
def test_a_commands_output_is_read_without_the_clients_fields(text: str, told: tuple[str, int | None, bool]):
    shell = read_shell(text)
    assert shell._replace(output=shell.output.strip()) == Shell(*told)


def test_older_sessions_are_one_object_in_a_folder_named_by_a_hash(tmp_path: Path):
    folder = hashlib.sha256(b"/w/app").hexdigest()
    path = tmp_path / "tmp" / folder / "chats" / "session-2025-09-01T10-00-abc.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**HEADER, "messages": [user(1, "A."), gemini(2, "a")]}, indent=2), encoding="utf-8")
    (tmp_path / "projects.json").write_text('{"projects": {"/w/app": "app"}}', encoding="utf-8")
    (found,) = reader.discover(tmp_path, {}, max_line_bytes=LIMIT)
    assert isinstance(found, Found)
    assert (found.thread.cwd, found.thread.source, found.thread.preview) == ("/w/app", "cli", "A.")
    assert read(reader, path)[0] == [("user", "A."), ("assistant", "a")]
    path.write_text("[" * 9000, encoding="utf-8")
    assert [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)] == [Broken]


def test_an_older_session_cut_anywhere_loses_no_message_before_the_cut(tmp_path: Path):
    path = tmp_path / "tmp" / "app" / "chats" / "session-2025-09-01T10-00-abc.json"
    path.parent.mkdir(parents=True)
    messages = [json.dumps(each) for each in (user(1, "A."), gemini(2, "a"), user(3, "B."))]
    whole = json.dumps(HEADER)[:-1] + ', "messages": [' + ", ".join(messages) + '], "summary": "S"}'
    ends = [whole.index(message) + len(message) for message in messages]
    told = [("user", "A."), ("assistant", "a"), ("user", "B.")]
    for cut in range(1, len(whole), 7):
        path.write_text(whole[:cut], encoding="utf-8")
        (found,) = reader.discover(tmp_path, {}, max_line_bytes=LIMIT)
        assert isinstance(found, Found) == (cut > whole.index('"s-1"') + 5)
        if cut >= ends[0]:
            assert read(reader, path)[0] == told[: sum(end <= cut for end in ends)]
