from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from golden import DATA, LIMIT, describe, read, seen_again
from hypothesis import example, given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.errors import EmptyRollout
from stillroom.sessions.agents import chat as reader
from stillroom.sessions.chat_parts import Shell, read_shell
from stillroom.sessions.discovery import Broken, Found, Unchanged

SAMPLES = DATA / "chat-messages" / "samples"
HELLO = [{"role": "user", "content": "Use tabs."}, {"role": "assistant", "content": "Done."}]
SHARED = [{"from": "human", "value": "Use tabs."}, {"from": "gpt", "value": "Done."}]
SAID = [("user", "Use tabs."), ("assistant", "Done.")]


def unnamed(text: str) -> str:
    """Threads are named by where their files lie: in another order, without their ids."""
    return "\n".join(sorted(thread.partition("\n")[2].strip() for thread in text.split("\n\n# ")))


def found_in(root: Path) -> list[Found]:
    return [each for each in reader.discover(root, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]


def in_lines(values: Iterable[object]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def test_conversations_are_read_as_expected_and_are_not_new_the_second_time():
    """After a change on purpose write `unnamed(describe(…))` anew and read the difference."""
    assert unnamed(describe(reader, SAMPLES)) == (SAMPLES / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, SAMPLES) == {Unchanged}


@pytest.mark.parametrize(
    ("name", "text", "fragments"),
    [
        ("a.json", json.dumps(HELLO, indent=2), [""]),
        ("a.json", "\ufeff" + json.dumps({"model": "m", "messages": HELLO}), [""]),
        ("a.json", in_lines(HELLO), [""]),
        ("a.jsonl", in_lines(HELLO).rstrip("\n"), [""]),
        ("a.json", json.dumps([{"messages": HELLO}, {"messages": [{}, *HELLO]}], indent=1), ["#0", "#1"]),
        ("a.jsonl", in_lines([{"messages": HELLO}, {"messages": [{}, *HELLO]}]).rstrip("\n"), ["#0", "#100"]),
        ("a.ndjson", "\n" + in_lines([{"conversations": SHARED}]), ["#1"]),
    ],
)
def test_every_layout_is_told_by_its_beginning(tmp_path: Path, name: str, text: str, fragments: list[str]):
    (tmp_path / name).write_text(text, encoding="utf-8")
    threads = [each.thread for each in found_in(tmp_path)]
    assert [Path(thread.rollout_path).name for thread in threads] == [name + fragment for fragment in fragments]
    for thread in threads:
        assert read(reader, Path(thread.rollout_path))[0] == SAID
        assert (thread.source, thread.preview) == ("cli", "Use tabs.")
    assert seen_again(reader, tmp_path) == {Unchanged}
    assert seen_again(reader, tmp_path / name) == {Unchanged}


def test_appended_conversations_leave_the_others_as_they_are(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text(in_lines([{"messages": HELLO}]), encoding="utf-8")
    (first,) = found_in(tmp_path)
    with path.open("a", encoding="utf-8") as file:
        file.write(
            "no json\n" + json.dumps({"messages": HELLO[:1], "title": "Second", "created_at": 1_790_000_000}) + "\n{"
        )
    known = {first.thread.rollout_path: first.stamp}
    unchanged, broken, second = reader.discover(tmp_path, known, max_line_bytes=LIMIT)
    assert unchanged == Unchanged(first.thread.rollout_path)
    assert isinstance(broken, Broken)
    assert isinstance(second, Found)
    assert (second.thread.title, second.thread.updated_at_ms) == ("Second", 1_790_000_000_000)


def test_of_a_log_that_repeats_each_conversation_only_the_last_is_read(tmp_path: Path):
    """As a proxy writes it: each request holds all that was said before, and requests of two talks are mixed."""
    path, other = tmp_path / "a.jsonl", [{"role": "user", "content": "Hi."}]
    path.write_text(in_lines([{"messages": HELLO[:1]}, {"messages": other}, {"messages": HELLO}]), encoding="utf-8")
    before = found_in(tmp_path)
    assert [each.thread.preview for each in before] == ["Hi.", "Use tabs."]
    with path.open("a", encoding="utf-8") as file:
        file.write(in_lines([{"messages": [*HELLO, {"role": "user", "content": "Thanks."}]}]))
    known = {each.thread.rollout_path: each.stamp for each in before}
    unchanged, grown = reader.discover(tmp_path, known, max_line_bytes=LIMIT)
    assert unchanged == Unchanged(before[0].thread.rollout_path)
    assert isinstance(grown, Found)
    assert grown.thread.thread_id == before[1].thread.thread_id
    assert read(reader, Path(grown.thread.rollout_path))[0] == [*SAID, ("user", "Thanks.")]


def test_calls_and_results_of_every_form_are_matched(tmp_path: Path):
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "<system-reminder>x</system-reminder>Go."}]},
        {"role": "user", "content": [{"type": "text", "text": "<task-notification>done</task-notification>"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "A."},
                {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "make"}},
                {"type": "tool_use", "id": "t2", "name": "Write", "input": {"file_path": "/w/a", "content": "x"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t2", "content": "ok"},
                {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": [{"text": "no"}]},
            ],
        },
        {"from": "function_call", "value": '{"name":"sh","arguments":{"cmd":"ls"}}'},
        {"from": "observation", "value": "<returncode>2</returncode>\n<output>\nnone\n</output>"},
        {"role": "assistant", "content": None, "function_call": {"name": "web_search", "arguments": '{"query":"q"}'}},
        {"role": "function", "name": "web_search", "content": "found"},
        {"role": "assistant", "tool_calls": [{"id": "e", "function": {"name": "str_replace_editor", "arguments":
            '{"command":"view","path":"/w/a"}'}}]},
        {"role": "tool", "tool_call_id": "e", "content": "Exit code 1\nx"},
        {"role": "narrator", "content": "x"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}, {"type": "hologram"}]},
    ]  # fmt: skip
    (tmp_path / "a.jsonl").write_text(in_lines(messages), encoding="utf-8")
    said, ran, stats = read(reader, tmp_path / "a.jsonl")
    assert said == [("user", "Go."), ("assistant", "A.")]
    assert [(each.tool, each.command, each.exit_code, each.ok, each.output) for each in ran] == [
        ("bash", "make", None, False, "no"),
        ("apply_patch", None, None, True, "ok"),
        ("sh", "ls", 2, False, "none\n"),
        ("web_search", None, None, None, "found"),
        ("str_replace_editor", None, None, None, "Exit code 1\nx"),
    ]
    assert stats.unknown == {"message/narrator": 1, "block/hologram": 1}
    assert (stats.images, stats.dropped) == (1, {"nothing said": 1})


@pytest.mark.parametrize(
    ("text", "shell"),
    [
        ("Exit code 2\nno", Shell("no", 2)),
        ("Exit code 2 of 3\nno", Shell("Exit code 2 of 3\nno", None)),
        ("<returncode>0</returncode>\n<output>\nyes\n</output>", Shell("yes\n", 0)),
        ('{"returncode": 1, "output": "no"}', Shell("no", 1)),
        ('{"returncode": 1, "output_head": "a", "output_tail": "z"}', Shell("a\n[…]\nz", 1)),
        ('{"returncode": "x"}', Shell('{"returncode": "x"}', None)),
        ("no\n[The command completed with exit code 3.]\n", Shell("no", 3)),
        ("no\n\nCommand exited with code 1", Shell("no", 1)),
        ("It said: Command exited with code 1\nand more", Shell("It said: Command exited with code 1\nand more", None)),
    ],
)
def test_exit_codes_are_read_where_programs_write_them(text: str, shell: Shell):
    assert read_shell(text) == shell


def test_a_file_without_messages_is_broken_alone(tmp_path: Path):
    (tmp_path / "good.json").write_text(json.dumps(HELLO), encoding="utf-8")
    for number, text in enumerate(("", "{}", "[]", "[[", "\x00", '{"messages":{}}', '{"role":"user"}', "[" * 100_000)):
        (tmp_path / f"{number}.json").write_text(text, encoding="utf-8")
    kinds = [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)]
    assert (kinds.count(Found), kinds.count(Broken)) == (1, 8)


@pytest.mark.slow
def test_of_a_data_set_the_first_ten_thousand_are_read(tmp_path: Path):
    rows = ({"messages": [{"role": "user", "content": f"Question {number}."}]} for number in range(10_050))
    (tmp_path / "a.jsonl").write_text(in_lines(rows), encoding="utf-8")
    *found, last = reader.discover(tmp_path, {}, max_line_bytes=LIMIT)
    assert len(found) == 10_000
    assert isinstance(last, Broken)
    assert "over 10000 conversations" in last.reason


@given(sample=st.sampled_from(sorted(SAMPLES.glob("*.json*"))), cut=st.floats(0, 1), tail=st.binary(max_size=20))
@example(sample=SAMPLES / "dataset.jsonl", cut=0.875, tail=b"\n")  # within the name of the first field of a row
def test_a_file_cut_anywhere_loses_nothing_before_the_cut(tmp_path_factory, sample: Path, cut: float, tail: bytes):
    folder, data = tmp_path_factory.mktemp("cut"), sample.read_bytes()
    path = folder / sample.name
    path.write_bytes(data[: int(len(data) * cut)] + tail)
    small = Reading(batch_bytes=4096, chunk_bytes=512)
    for each in reader.discover(folder, {}, max_line_bytes=LIMIT, reading=small):
        if isinstance(each, Found):
            rollout = Path(each.thread.rollout_path)
            try:
                with reader.open_items(rollout, max_line_bytes=LIMIT, reading=small) as items:
                    part = [(item.type, item.role) for item in items]
            except EmptyRollout:
                row = path.read_bytes()[int(rollout.name.rpartition("#")[2]) :]
                assert b'"content"' not in row  # it breaks off before its first message
                continue
            with reader.open_items(sample.with_name(rollout.name), max_line_bytes=LIMIT) as items:
                whole = [(item.type, item.role) for item in items]
            sure = max(len(part) - 1, 0)  # the last word may be another one
            assert part[:sure] == whole[:sure]
