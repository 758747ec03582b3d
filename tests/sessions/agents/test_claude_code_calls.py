from __future__ import annotations

import json
from pathlib import Path

import pytest
from claude_code_session import FILE, LIMIT, assistant, calls, read, returns, runs, says, user

from stillroom.extract.external import ExternalContext
from stillroom.sessions.agents.claude_code.reader import open_items
from stillroom.sessions.evidence import render_evidence

OK = {"stdout": "", "stderr": "", "interrupted": False}


@pytest.mark.parametrize(
    ("content", "failed", "told", "outcome"),
    [
        ("fine", False, OK, (0, True, "fine")),
        ("", False, None, (0, True, "")),
        ("Exit code 127\nnot found", True, "Error: Exit code 127\nnot found", (127, False, "not found")),
        ("Exit code 1", True, None, (1, False, "")),
        ("Traceback", True, None, (None, False, "Traceback")),
        ("Exit code 3 is what it printed", False, OK, (0, True, "Exit code 3 is what it printed")),
        ("Exit code: 3\nOutput:\nx", False, OK, (0, True, "Exit code: 3\nOutput:\nx")),
        ("", False, {**OK, "returnCodeInterpretation": "No matches found"}, (1, False, "")),
        ("half", False, {**OK, "interrupted": True}, (None, False, "half")),
        ("Command running in background with ID: b1", False, None, (None, None, None)),
        ("ok\n\n<system-reminder>\nbe nice\n</system-reminder>\n", False, OK, (0, True, "ok")),
    ],
)
def test_a_shell_commands_outcome_is_what_its_text_tells(
    tmp_path: Path, content: str, failed: bool, told: object, outcome: tuple[int | None, bool | None, str | None]
):
    events, _ = read(
        tmp_path, calls(1, "Bash", command="./x"), returns(2, content, of=1, failed=failed, toolUseResult=told)
    )
    (run,) = runs(events)
    assert (run.command, run.exit_code, run.ok) == ("./x", *outcome[:2])
    assert outcome[2] is None or run.output == outcome[2]


def test_no_other_tools_output_is_taken_for_an_exit_code(tmp_path: Path):
    events, _ = read(tmp_path, calls(1, "Read", file_path="/w/log"), returns(2, "Exit code: 1\nfailed", of=1))
    assert [(run.exit_code, run.ok) for run in runs(events)] == [(None, True)]


def test_edits_are_patches_with_paths_as_the_folder_sees_them(tmp_path: Path):
    events, _ = read(
        tmp_path,
        calls(1, "Edit", file_path="/w/src/a.py", old_string="a\nb", new_string="c"),
        returns(2, "updated", of=1),
        calls(3, "Write", file_path="/elsewhere/b.md", content="x\n"),
        returns(4, "Error", of=3, failed=True),
        calls(5, "MultiEdit", file_path="/w/c.py", edits=[{"old_string": "1", "new_string": ""}, {"new_string": "2"}]),
    )
    done = [(run.ok, [(edit.action, edit.path, edit.diff) for edit in run.edits]) for run in runs(events)]
    assert done == [
        (True, [("update", "src/a.py", "@@\n-a\n-b\n+c")]),
        (False, [("add", "/elsewhere/b.md", "+x\n+")]),
        (None, [("update", "c.py", "@@\n-1\n@@\n+2")]),
    ]


def test_parallel_calls_find_their_own_results(tmp_path: Path):
    events, _ = read(
        tmp_path,
        calls(1, "Bash", command="a"),
        calls(2, "Bash", command="b"),
        returns(3, "of b", of=2, toolUseResult=OK),
        returns(4, "of a", of=1, toolUseResult=OK),
    )
    assert [(run.command, run.output) for run in runs(events)] == [("a", "of a"), ("b", "of b")]


@pytest.mark.parametrize("name", ["WebSearch", "WebFetch", "mcp__docs__find"])
def test_words_from_outside_are_noticed(tmp_path: Path, name: str):
    read(tmp_path, calls(1, name, query="x", url="https://x"), returns(2, "found", of=1))
    external = ExternalContext()
    with open_items(tmp_path / FILE, max_line_bytes=LIMIT) as items:
        assert len(list(external.watch(items))) == 2
    assert external.seen


def test_an_answered_question_is_the_users_word(tmp_path: Path):
    question = {"question": "Which database?", "options": [{"label": "SQLite"}, {"label": "PostgreSQL"}]}
    read(
        tmp_path,
        calls(1, "AskUserQuestion", questions=[question]),
        returns(2, "answered", of=1, toolUseResult={"answers": {"Which database?": "SQLite"}}),
    )
    with open_items(tmp_path / FILE, max_line_bytes=LIMIT) as items:
        rendered = render_evidence(items, token_limit=1000, redact=str)
    assert "[user" in rendered.text
    assert "SQLite" in rendered.text.partition("[user")[2]


@pytest.mark.parametrize("damage", [b"\\ud83d", b"\xff"])
def test_damage_in_a_result_spoils_one_letter(tmp_path: Path, damage: bytes):
    text = "ok A\n\n<system-reminder>\nbe nice\n</system-reminder>\n"
    torn = returns(2, text, of=1, toolUseResult=OK).replace(b" A", b" " + damage)
    whole = says(3, "A good result, told in more than a hundred letters, so that nobody looks whether it says anything")
    events, stats = read(tmp_path, calls(1, "Bash", command="./x"), torn, whole.replace(b"A", b"\xff"))
    assert runs(events)[0].output[:3] == "ok " and len(runs(events)[0].output) == 4
    assert stats.bad_lines == 0
    with open_items(tmp_path / FILE, max_line_bytes=LIMIT) as items:
        assert all(json.loads(item.raw.decode()) for item in items)


def test_results_made_of_parts_are_joined(tmp_path: Path):
    image = {"type": "image", "source": {"type": "base64", "data": "A" * 100}}
    parts = [{"type": "text", "text": "one"}, image, {"type": "text", "text": "two"}]
    events, _ = read(tmp_path, calls(1, "mcp__x__y"), returns(2, parts, of=1))
    assert runs(events)[0].output == "one\n[image omitted: 100 bytes]\ntwo"


def test_a_blob_in_a_long_line_is_cut_and_counted(tmp_path: Path):
    image = {"type": "image", "source": {"type": "base64", "data": "QUJD" * 100_000}}
    events, stats = read(
        tmp_path,
        user(1, "Look."),
        calls(2, "Read", file_path="/w/a.png"),
        returns(3, [image], of=2, toolUseResult={"file": {"base64": "QUJD" * 100_000}}),
        assistant(4, {"type": "text", "text": "A cat."}),
        limit=64 * 1024,
    )
    assert stats.long_lines == 1
    assert stats.cut_bytes > 700_000
    assert runs(events)[0].output == "[image omitted: 400000 bytes]"
    assert json.dumps(events[-1].text) == '"A cat."'  # type: ignore[union-attr]
