from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden import DATA, LIMIT, describe, placeless, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.errors import RolloutError
from stillroom.sessions.agents import pydantic_ai as reader
from stillroom.sessions.discovery import Found, Unchanged

SAMPLES = DATA / "pydantic-ai" / "2.68"
HISTORY = json.loads((SAMPLES / "pydantic_ai_all_messages.json").read_text(encoding="utf-8"))


def put(folder: Path, messages: object, name: str = "talk.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path


def request(*parts: dict[str, object], **fields: object) -> dict[str, object]:
    return {"kind": "request", "parts": list(parts), "timestamp": "2026-11-29T12:23:23.677945Z", **fields}


def response(*parts: dict[str, object]) -> dict[str, object]:
    return {"kind": "response", "parts": list(parts), "timestamp": "2026-11-29T12:23:24.677945Z"}


def part(kind: str, content: object = None, **fields: object) -> dict[str, object]:
    return {"part_kind": kind, "content": content, **fields}


def look(root: Path) -> list[Found]:
    return [each for each in reader.discover(root, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]


def test_a_history_is_read_as_expected_and_is_not_new_the_second_time():
    """A real file; after a change on purpose write `describe` anew and read the difference."""
    assert placeless(describe(reader, SAMPLES)) == (SAMPLES / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, SAMPLES) == {Unchanged}
    (found,) = look(SAMPLES)
    assert (found.thread.created_at_ms, found.thread.updated_at_ms) == (1795955003678, 1795955004361)


def test_lines_hold_a_message_or_a_list_of_them(tmp_path: Path):
    whole = read(reader, put(tmp_path, HISTORY))[0]
    one, lists, repeated = (tmp_path / f"{name}.jsonl" for name in ("one", "lists", "repeated"))
    one.write_text("\n".join(map(json.dumps, HISTORY)), encoding="utf-8")
    lists.write_text(json.dumps(HISTORY[:4]) + "\n" + json.dumps(HISTORY[4:]) + "\n", encoding="utf-8")
    repeated.write_text(json.dumps(HISTORY[:4]) + "\n" + json.dumps(HISTORY) + "\n", encoding="utf-8")
    (tmp_path / "talk.json").unlink()
    for path in (one, lists, repeated):
        (tmp_path / "alone").mkdir(exist_ok=True)
        assert read(reader, path.replace(tmp_path / "alone" / path.name))[0] == whole
        (tmp_path / "alone" / path.name).unlink()


def test_a_history_that_holds_all_of_an_earlier_one_is_read_for_its_new_part(tmp_path: Path):
    earlier, later, other = put(tmp_path, HISTORY[:4], "1.json"), put(tmp_path, HISTORY, "2.json"), tmp_path / "3.json"
    other.write_text(json.dumps([{**HISTORY[0], "conversation_id": "other"}, *HISTORY[1:]]), encoding="utf-8")
    assert [text for who, text in read(reader, earlier)[0] if who == "user"] == ["Check the history [[par]]"]
    assert [text for who, text in read(reader, later)[0] if who == "user"] == ["Plain follow up"]
    assert len([text for who, text in read(reader, other)[0] if who == "user"]) == 2
    earlier.write_text("7" + earlier.read_text(encoding="utf-8"), encoding="utf-8")
    assert len([text for who, text in read(reader, later)[0] if who == "user"]) == 2
    earlier.unlink()
    assert len([text for who, text in read(reader, later)[0] if who == "user"]) == 2


def test_what_no_person_said_is_no_users_word(tmp_path: Path):
    image = {"kind": "binary", "media_type": "image/png", "data": "AAAA"}
    messages = [
        request(part("system-prompt", "Be brief."), part("user-prompt", ["What?", image]), instructions="Be kind."),
        response(part("thinking", "hm"), part("text", "A cat."), part("compaction", "They like cats.")),
        request(part("retry-feedback", "Answer in JSON."), part("retry-prompt", "Once more.")),
        request(part("user-prompt", [image]), part("speech", speaker="user", transcript="And this?")),
        request(part("brand-new", "x"), part("instruction-delta", "y")),
        {"kind": "what", "parts": []},
    ]
    said, _, stats = read(reader, put(tmp_path, messages))
    assert said == [("user", "What?"), ("assistant", "A cat."), ("user", "And this?")]
    assert stats.unknown == {"request/brand-new": 1, "message/what": 1}
    assert stats.images == 2
    assert stats.dropped == {
        "instructions": 1,
        "compaction summary": 1,
        "written by the client": 2,
        "nothing said": 1,
    }


@pytest.mark.parametrize(
    ("returned", "outcome"),
    [
        (part("tool-return", "fine", outcome="success"), (None, None, "fine")),
        (part("tool-return", {"exit_code": 2, "stderr": "no"}, outcome="success"), (2, False, None)),
        (part("tool-return", "no such file", outcome="failed"), (None, False, "no such file")),
        (part("tool-return", "The user said no.", outcome="denied"), (None, False, None)),
        (part("retry-prompt", [{"type": "missing", "msg": "x"}], tool_name="bash"), (None, False, None)),
        (part("tool-return", [1, {"a": None}]), (None, None, '[1,{"a":null}]')),
    ],
)
def test_an_outcome_is_what_the_result_tells(tmp_path: Path, returned: dict[str, object], outcome: tuple[object, ...]):
    asked = part("tool-call", tool_name="bash", args={"command": "x"}, tool_call_id="c1")
    path = put(tmp_path, [response(asked), request({**returned, "tool_call_id": "c1"})])
    (run,) = read(reader, path)[1]
    assert (run.command, run.exit_code, run.ok) == ("x", *outcome[:2])
    assert outcome[2] is None or run.output == outcome[2]


def test_a_file_without_messages_is_told(tmp_path: Path):
    for name, text in {"a.json": "{}", "b.json": "[]", "c.json": '[{"role": "user"}]', "d.jsonl": "no\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for file in tmp_path.iterdir():
        assert [type(each).__name__ for each in reader.discover(file, {}, max_line_bytes=LIMIT)] == ["Broken"]
    # Among others in a folder it is another program's file.
    assert list(reader.discover(tmp_path, {}, max_line_bytes=LIMIT)) == []


@given(cut=st.floats(0, 1), garbage=st.binary(max_size=20), lines=st.booleans())
def test_a_damaged_file_loses_nothing_ahead_of_the_damage(tmp_path_factory, cut: float, garbage: bytes, lines: bool):
    folder = tmp_path_factory.mktemp("cut")
    path = folder / ("talk.jsonl" if lines else "talk.json")
    text = "\n".join(map(json.dumps, HISTORY)) if lines else json.dumps(HISTORY)
    at = int(cut * len(text))
    path.write_bytes(text.encode()[:at] + garbage)
    whole = sum(len(json.dumps(message)) for message in HISTORY[:1]) + 2 < at
    list(reader.discover(folder, {}, max_line_bytes=LIMIT))
    try:
        said = read(reader, path)[0]
    except RolloutError:  # no message is whole
        said = []
    assert not whole or said[0] == ("user", "Check the history [[par]]")
