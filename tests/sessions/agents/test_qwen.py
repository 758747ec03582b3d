from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden import DATA, LIMIT, describe, read, seen_again

from stillroom.sessions.agents import qwen as reader
from stillroom.sessions.discovery import Broken, Unchanged

SAMPLES = DATA / "qwen-code"
FIRST, SECOND = (f"{digit * 8}-2222-4333-8444-555555555555" for digit in "12")


@pytest.mark.parametrize("layout", ["0.24.4", "0.24.4-hooks"])
def test_sessions_are_read_as_expected_and_are_not_new_the_second_time(layout: str):
    """Real files of the client; after a change on purpose write `describe` anew and read the difference."""
    home = SAMPLES / layout
    assert describe(reader, home) == (home / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, home) == {Unchanged}


def line(kind: str, number: int, *parts: object, under: int | None = None, **fields: object) -> dict[str, object]:
    parent = number - 1 if under is None else under
    return {
        "uuid": f"u-{number}",
        "parentUuid": f"u-{parent}" if parent else None,
        "sessionId": FIRST,
        "timestamp": f"2026-11-29T12:00:{number:02}.000Z",
        "type": kind,
        "cwd": "/w",
        "version": "0.24.4",
        "message": {"parts": list(parts)},
        **fields,
    }


def user(number: int, *texts: str, **fields: object) -> dict[str, object]:
    parts = [{"text": text} for text in texts]
    return line("user", number, *parts, **{"provenance": "real_user", **fields})  # type: ignore[arg-type]


def put(home: Path, *lines: dict[str, object], name: str = FIRST) -> Path:
    path = home / "projects" / "-w" / "chats" / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    return path


def test_only_what_was_typed_is_the_users_word(tmp_path: Path):
    said, _, stats = read(
        reader,
        put(
            tmp_path,
            user(1, "Fix it.", "<qwen:user-prompt-submit-context>\nremember\n</qwen:user-prompt-submit-context>"),
            user(2, "And this.", subtype="mid_turn_user_message"),
            user(3, "Every hour.", subtype="cron"),
            user(4, "Go on.", provenance="system"),
            user(5, "<task-notification><result>Two.</result></task-notification>", provenance="system"),
            line("system", 6, subtype="chat_compression", systemPayload={"compressedHistory": []}),
            line("system", 7, subtype="weather"),
            line("telepathy", 8),
            line("assistant", 9, {"text": "hm", "thought": True}, {"text": "Done."}),
            user(1, "Fix it."),
        ),
    )
    assert said == [("user", "Fix it."), ("user", "And this."), ("agent", "Two."), ("assistant", "Done.")]
    assert stats.unknown == {"system/weather": 1, "telepathy": 1}
    assert stats.dropped == {"written by the client": 2, "seen before": 1}


def test_prompts_of_a_branch_that_was_left_are_marked(tmp_path: Path):
    lines = [user(1, "A."), user(2, "B."), user(3, "C."), user(4, "D.", under=1)]
    said, _, stats = read(reader, put(tmp_path, *lines))
    assert [who for who, _ in said] == ["user", "harness", "harness", "user"]
    assert stats.superseded == 2
    # Where a line is missing nothing is marked.
    assert [who for who, _ in read(reader, put(tmp_path, user(1, "A."), user(4, "D.", under=3)))[0]] == ["user", "user"]


def test_a_fork_is_read_from_where_it_left_its_origin(tmp_path: Path):
    common = [user(1, "A."), user(2, "B.")]
    origin = put(tmp_path, *common, user(3, "C."))
    fork = put(tmp_path, *common, user(13, "D.", under=2, sessionId=SECOND), name=SECOND)
    assert [text for _, text in read(reader, origin)[0]] == ["A.", "B.", "C."]
    assert [text for _, text in read(reader, fork)[0]] == ["D."]
    origin.unlink()
    assert [text for _, text in read(reader, fork)[0]] == ["A.", "B.", "D."]


def test_of_two_copies_the_longer_holds_only_what_is_new(tmp_path: Path):
    lines = [user(number, f"{number}.", sessionId="gone") for number in (1, 2, 3)]
    short, whole = put(tmp_path, *lines[:2]), put(tmp_path, *lines, name=SECOND)
    assert [[text for _, text in read(reader, path)[0]] for path in (short, whole)] == [["1.", "2."], ["3."]]


def test_a_call_ended_as_its_result_says(tmp_path: Path):
    def call(number: int, name: str, **args: object) -> dict[str, object]:
        return line("assistant", number, {"functionCall": {"id": f"c-{number}", "name": name, "args": args}})

    def result(number: int, name: str, response: dict[str, object], **told: object) -> dict[str, object]:
        part = {"functionResponse": {"id": f"c-{number - 1}", "name": name, "response": response}}
        return line("tool_result", number, part, toolCallResult=told)

    _, runs, _ = read(
        reader,
        put(
            tmp_path,
            call(1, "run_shell_command", command="a"),
            result(2, "run_shell_command", {"output": "x"}, status="success", resultDisplay={"exitCode": 7}),
            call(3, "run_shell_command", command="b"),
            result(4, "run_shell_command", {"error": "cancelled"}, status="error", resultDisplay="cancelled"),
            call(5, "edit", file_path="/w/a", old_string="1", new_string="2"),
            result(6, "edit", {"output": "ok"}, status="success", resultDisplay={}),
        ),
    )
    assert [(run.exit_code, run.ok, [edit.path for edit in run.edits]) for run in runs] == [
        (7, False, []),
        (None, False, []),
        (None, True, ["a"]),
    ]


def test_a_file_without_a_record_is_told(tmp_path: Path):
    put(tmp_path, {"odd": 1})
    assert [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)] == [Broken]
