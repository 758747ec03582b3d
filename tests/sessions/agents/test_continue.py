from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from golden import DATA, LIMIT, describe, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.errors import RolloutError
from stillroom.sessions.agents import continue_dev as reader
from stillroom.sessions.discovery import Broken, Found, Unchanged
from stillroom.sessions.item import Item

SAMPLE = DATA / "continue" / "1.5.47"
Element = dict[str, object]


def test_sessions_are_read_as_expected_and_are_not_new_the_second_time():
    """A real file of the client; after a change on purpose write `describe` anew and read the difference."""
    assert describe(reader, SAMPLE) == (SAMPLE / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, SAMPLE) == {Unchanged}


def said(role: str, content: object, **fields: object) -> Element:
    return {"message": {"role": role, "content": content}, "contextItems": [{"content": "a file"}], **fields}


def called(number: int, name: str, status: str, *outputs: dict[str, str], **arguments: object) -> Element:
    call = {"id": f"c-{number}", "function": {"name": name, "arguments": json.dumps(arguments)}}
    state = {"toolCallId": f"c-{number}", "toolCall": call, "status": status, "output": outputs}
    return {"message": {"role": "assistant", "content": "", "toolCalls": [call]}, "toolCallStates": [state]}


def put(home: Path, *history: Element, name: str = "s-1", folder: str = "/w", began: dict[str, int] | None = None):
    path = home / "sessions" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    session = {"sessionId": name, "title": "T", "workspaceDirectory": folder, "history": history, "usage": {}}
    path.write_text(json.dumps(session, indent=2), encoding="utf-8")
    index = [{"sessionId": each, "dateCreated": str(at)} for each, at in (began or {}).items()]
    (home / "sessions" / "sessions.json").write_text(json.dumps(index), encoding="utf-8")
    return path


def look(home: Path) -> list[Found | Unchanged | Broken]:
    return list(reader.discover(home, {}, max_line_bytes=LIMIT))


def test_only_what_was_typed_is_the_users_word(tmp_path: Path):
    parts = [{"type": "text", "text": "And this."}, {"type": "imageUrl", "imageUrl": {"url": "data:"}}]
    spoken, _, stats = read(
        reader,
        put(
            tmp_path,
            said("system", "You are."),
            said("user", "Fix it.<system-reminder>remember</system-reminder>"),
            said("user", parts),
            said("thinking", "hm"),
            said("assistant", "Done."),
            said("assistant", "The user wants tabs.", conversationSummary="The user wants tabs."),
            said("telepathy", "x"),
            {"message": {"role": ["odd"]}},
        ),
    )
    assert spoken == [("user", "Fix it."), ("user", "And this."), ("assistant", "Done.")]
    assert stats.unknown == {"telepathy": 1, "": 1}
    assert stats.dropped == {"written by the client": 1, "told elsewhere": 1, "compaction summary": 1}
    assert stats.images == 1


def test_a_call_ended_as_its_result_says(tmp_path: Path):
    terminal = "run_terminal_command"
    answer = {"content": 'User selected option 1: "Tabs"'}
    spoken, runs, _ = read(
        reader,
        put(
            tmp_path,
            called(1, "Bash", "errored", {"content": "Error (exit code 2): no"}, command="a"),
            called(2, "Bash", "done", {"content": "x"}, command="b"),
            called(3, terminal, "done", {"content": "x", "status": "Command failed with exit code 3"}, command="c"),
            called(4, terminal, "done", {"content": "x", "status": "Command completed"}, command="d"),
            called(5, terminal, "canceled", command="e"),
            called(6, "create_new_file", "done", {"content": "ok"}, filepath="/w/a", contents="1"),
            called(7, "Read", "errored", {"content": "none"}, filepath="/w/b"),
            called(8, "AskQuestion", "done", answer, question="Tabs or spaces?", options=["Tabs"]),
            called(9, "Bash", "calling", command="f"),
        ),
    )
    assert [(run.command, run.exit_code, run.ok, [edit.path for edit in run.edits]) for run in runs if run.output] == [
        ("a", 2, False, []),
        ("b", None, None, []),
        ("c", 3, False, []),
        ("d", 0, True, []),
        (None, None, True, ["a"]),
        (None, None, False, []),
        (None, None, None, []),
    ]
    assert [run.ok for run in runs if not run.output] == [False, None]
    assert spoken == []


def test_a_tool_that_prints_an_answer_puts_no_words_into_anybodys_mouth(tmp_path: Path):
    answer = {"content": 'User answered: "Tabs"'}
    edit = called(1, "Edit", "done", answer, file_path="/w/a", old_string="1", new_string="2")
    _, runs, _ = read(reader, put(tmp_path, edit, called(2, "Ask", "done", answer, questions=[{"question": "?"}])))
    assert [(run.ok, run.output) for run in runs] == [(True, answer["content"])] * 2


def test_a_fork_is_read_from_where_it_left_its_origin(tmp_path: Path):
    common = [said("user", "A."), said("assistant", "a")]
    began = {"s-2": 1000, "s-1": 2000}
    origin = put(tmp_path, *common, said("user", "B."), name="s-2", began=began)
    fork = put(tmp_path, *common, said("user", "C."), said("user", "A."), began=began)
    assert [text for _, text in read(reader, origin)[0]] == ["A.", "a", "B."]
    assert [text for _, text in read(reader, fork)[0]] == ["C.", "A."]
    # The same prompt alone is no copy.
    put(tmp_path, common[0], said("assistant", "b"), name="s-2", began=began)
    assert [text for _, text in read(reader, fork)[0]] == ["A.", "a", "C.", "A."]


@pytest.mark.parametrize(
    ("folder", "cwd", "source"), [("/w", "/w", "cli"), ("file:///home/a%20b", "/home/a b", "vscode"), ("", "", "cli")]
)
def test_a_session_tells_where_and_when_it_began(tmp_path: Path, folder: str, cwd: str, source: str):
    put(tmp_path, said("user", "A."), folder=folder, began={"s-1": 1_780_000_000_000})
    (found,) = look(tmp_path)
    assert isinstance(found, Found)
    assert (found.thread.cwd, found.thread.source) == (cwd, source)
    assert found.thread.created_at_ms == 1_780_000_000_000 < found.thread.updated_at_ms


def test_a_root_may_be_one_session_or_a_folder_of_them(tmp_path: Path):
    path = put(tmp_path, said("user", "A."))
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    assert [[type(each) for each in look(root)] for root in (path, path.parent, tmp_path)] == [[Found]] * 3


def test_a_document_that_is_no_session_is_told(tmp_path: Path):
    put(tmp_path).write_text('{"odd": 1}', encoding="utf-8")
    assert [type(each) for each in look(tmp_path)] == [Broken]


@given(cut=st.floats(0, 1), garbage=st.binary(max_size=40))
def test_a_document_cut_anywhere_loses_nothing_before_the_cut(tmp_path_factory, cut: float, garbage: bytes):
    (sample,) = (SAMPLE / "sessions").glob("*-*.json")
    data = sample.read_bytes()
    at = int(len(data) * cut)
    path = tmp_path_factory.mktemp("cut") / sample.name
    path.write_bytes(data[:at] + garbage)
    assert len(look(path)) == 1
    whole, part = [(item.type, item.raw) for item in items(sample)], [(item.type, item.raw) for item in items(path)]
    # An element that the cut goes through may end in garbage.
    elements = data[:at].count(b'"contextItems"') - 1
    before = [(item.type, item.raw) for item in items(sample) if item.line_no <= elements]
    assert part[: len(before)] == whole[: len(before)] == before


def items(path: Path) -> list[Item]:
    read: list[Item] = []
    with suppress(RolloutError):
        small = Reading(batch_bytes=4096, chunk_bytes=512)
        with reader.open_items(path, max_line_bytes=LIMIT, reading=small) as stream:
            read.extend(stream)
    return read
