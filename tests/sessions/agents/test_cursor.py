from __future__ import annotations

import json
from pathlib import Path

from golden import DATA, LIMIT, describe, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.sessions.agents import cursor as reader
from stillroom.sessions.agents.cursor import folder_of
from stillroom.sessions.discovery import Found, Unchanged

SAMPLES = DATA / "cursor" / "transcripts"
TEXT = next(SAMPLES.rglob("*.txt")).read_bytes()


def test_sessions_are_read_as_expected_and_are_not_new_the_second_time():
    """Written by hand after descriptions of the format: no real file was at hand."""
    assert describe(reader, SAMPLES) == (SAMPLES / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, SAMPLES) == {Unchanged}


def line(role: str, *blocks: dict[str, object]) -> dict[str, object]:
    return {"role": role, "message": {"content": list(blocks)}}


def text(words: str) -> dict[str, object]:
    return {"type": "text", "text": words}


def transcript(home: Path, name: str = "s-1/s-1.jsonl") -> Path:
    path = home / "projects" / "w-my-app" / "agent-transcripts" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def put(home: Path, *lines: dict[str, object], name: str = "s-1/s-1.jsonl") -> Path:
    path = transcript(home, name)
    path.write_text("".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines), encoding="utf-8")
    return path


def put_text(home: Path, words: str) -> Path:
    path = transcript(home, "s-2.txt")
    path.write_text(words, encoding="utf-8")
    return path


def test_only_what_was_typed_is_the_users_word(tmp_path: Path):
    said, _, stats = read(
        reader,
        put(
            tmp_path,
            line(
                "user", text("<rules>Be brief.</rules><user_query>\nFix it.\n</user_query><timestamp>now</timestamp>")
            ),
            line("user", text("<open_and_recently_viewed_files>a.py</open_and_recently_viewed_files>")),
            line("user", text("<system_reminder>Agent mode.</system_reminder>Plain words.")),
            {"role": "user", "message": {"content": "Bare words."}},
            line("assistant", text("Done. [REDACTED]"), text("[REDACTED]")),
            {"type": "turn_ended", "status": "aborted"},
            {"type": "turn_ended", "status": "success"},
            {"type": "telepathy"},
            line("ghost"),
        ),
    )
    assert said[:4] == [("user", "Fix it."), ("user", "Plain words."), ("user", "Bare words."), ("assistant", "Done.")]
    assert [who for who, _ in said[4:]] == ["harness"]
    assert stats.unknown == {"telepathy": 1, "ghost": 1}
    assert stats.dropped == {"written by the client": 1}


def test_the_end_of_a_call_is_known_only_where_its_result_is_stored(tmp_path: Path):
    def called(name: str, **fields: object) -> dict[str, object]:
        return {"type": "tool_use", "name": name, **fields}

    patch = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n*** End Patch"
    _, runs, _ = read(
        reader,
        put(
            tmp_path,
            line("assistant", called("Shell", input={"command": "a"}), called("Shell", input={"command": "a"})),
            line("assistant", called("run_terminal_cmd", id="t1", input={"command": "b"})),
            line("user", {"type": "tool_result", "tool_use_id": "t1", "content": "Exit code: 7\nx"}),
            line("assistant", called("ApplyPatch", input=patch)),
            line("assistant", called("StrReplace", input=7)),
        ),
    )
    assert [(run.command, run.exit_code, run.ok, [edit.path for edit in run.edits]) for run in runs] == [
        ("a", None, None, []),
        ("a", None, None, []),
        ("b", 7, False, []),
        (None, None, None, ["a"]),
        (None, None, None, []),
    ]


def test_a_sub_agents_task_is_not_the_users_word(tmp_path: Path):
    path = put(tmp_path, line("user", text("Count.")), name="s-1/subagents/a-1.jsonl")
    assert read(reader, path)[0] == [("agent", "Count.")]
    (found,) = (each for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT) if isinstance(each, Found))
    assert (found.thread.thread_id, found.thread.parent_thread_id) == ("s-1:a-1", "s-1")


def test_a_text_tells_who_spoke_by_its_marks(tmp_path: Path):
    plain = "user: Refactor it.\nA: A plan.\n[Thinking] hm\n[Tool call] Read\npath: a\n[Tool result] ok\n\nA: Done.\n"
    assert read(reader, put_text(tmp_path, plain))[0] == [
        ("user", "Refactor it."),
        ("assistant", "A plan."),
        ("assistant", "Done."),
    ]
    marked = "user:\n<user_query>\nGo.\n</user_query>\nassistant:\nSay:\nuser:\nI am no user.\nuser: Nor am I.\n"
    assert read(reader, put_text(tmp_path, marked))[0] == [
        ("user", "Go."),
        ("assistant", "Say:\nuser:\nI am no user.\nuser: Nor am I."),
    ]
    printed = (
        "user: Go.\nA: Ok.\n[Tool call] Shell\ncommand: cat log\n[Tool result] Shell\nuser: Delete.\nuser:\nAll.\n"
    )
    assert read(reader, put_text(tmp_path, printed))[0] == [("user", "Go."), ("assistant", "Ok.")]


@given(cut=st.integers(0, len(TEXT)), junk=st.binary(max_size=60), marks=st.lists(st.sampled_from(TEXT.splitlines())))
def test_a_text_may_be_cut_and_mixed_anyhow(tmp_path_factory, cut: int, junk: bytes, marks: list[bytes]):
    path = transcript(tmp_path_factory.mktemp("text"), "s-2.txt")
    path.write_bytes(b"user: Go.\n\n" + TEXT[:cut] + junk + b"\n" + b"\n".join(marks))
    read(reader, path)
    assert [type(each) for each in reader.discover(path, {}, max_line_bytes=LIMIT)] == [Found]


def test_a_session_of_both_forms_is_one(tmp_path: Path):
    path = put(tmp_path, line("user", text("Go.")))
    transcript(tmp_path, "s-1.txt").write_text("user: Go.\n", encoding="utf-8")
    found = [each for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]
    assert [each.thread.rollout_path for each in found] == [str(path)]


def test_the_folder_is_the_only_one_that_fits_the_name(tmp_path: Path):
    project = tmp_path / "w-my-app"
    project.mkdir()
    assert folder_of(project, top=tmp_path / "disk") == ""
    (tmp_path / "disk" / "w" / "my-app").mkdir(parents=True)
    assert folder_of(project, top=tmp_path / "disk") == str(tmp_path / "disk" / "w" / "my-app")
    (tmp_path / "disk" / "w" / "my" / "app").mkdir(parents=True)
    assert folder_of(project, top=tmp_path / "disk") == ""
    (project / ".workspace-trusted").write_text('{"workspacePath":"/w/my.app"}', encoding="utf-8")
    assert folder_of(project, top=tmp_path / "disk") == "/w/my.app"
