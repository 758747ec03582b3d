from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.homes import HOMES
from stillroom.rollouts.known_fields import FieldWatch, Known, known_fields, unknown_fields, watch_fields
from stillroom.rollouts.readers import open_thread
from stillroom.rollouts.stats import ReadStats
from stillroom.thread import Thread

CLAUDE = known_fields("claude-code")


def unknown(record: object, known: Known = CLAUDE) -> list[str]:
    return unknown_fields(json.dumps(record).encode(), known)


def test_a_field_is_told_with_the_kind_of_record_and_where_it_stands() -> None:
    block = {"type": "tool_use", "id": "1", "name": "Bash", "input": {"any": 1}, "haste": True}
    message = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "a"}, block], "mood": 1}
    assert unknown({"type": "assistant", "uuid": "1", "message": message, "weather": {"rain": 1}}) == [
        "assistant.weather",
        "assistant.message:message.mood",
        "assistant.message:message.content:tool_use.haste",
    ]


def test_what_is_passed_over_as_a_whole_is_not_looked_into() -> None:
    assert unknown({"type": "cost-state", "anything": 1}) == []
    assert unknown({"type": "of another version", "anything": 1}) == []
    assert unknown({"type": "user", "message": "no object"}) == []
    assert unknown({"type": "user", "toolUseResult": {"anything": 1}}) == []
    assert unknown([{"type": "user", "anything": 1}]) == []


@pytest.mark.parametrize("name", ["ghp_9fK2mQ7vXw3LpZr8TbY5cHs1NdJ6gAe4UiOo", "a\x1b[31m", "", "x" * 49, "ключ", "a b"])
def test_a_name_that_is_not_fit_to_be_shown_is_counted_without_it(name: str) -> None:
    assert unknown({"type": "user", name: 1}) == ["user.?"]


def test_a_session_that_invents_names_cannot_fill_the_table() -> None:
    stats = ReadStats()
    FieldWatch("claude-code", stats).look(
        [json.dumps({"type": "user", **{f"a{line}_{n}": 1 for n in range(500)}}).encode() for line in range(30)]
    )
    assert len(stats.unknown_fields) == 100


def test_a_long_session_is_sampled_from_end_to_end() -> None:
    stats = ReadStats()
    watch = FieldWatch("claude-code", stats)
    plain, odd = b'{"type":"user"}\n', b'{"type":"user","mood":1}\n'
    for number in range(400):
        watch.look([odd if place == number % 7 else plain for place in range(9)])
    assert stats.unknown_fields == {"user.mood": 3}


def test_long_lines_are_not_looked_at() -> None:
    stats = ReadStats()
    FieldWatch("claude-code", stats).look([json.dumps({"type": "user", "mood": "x" * 40_000}).encode()])
    assert stats.unknown_fields == {}


@given(st.binary(max_size=200), st.sampled_from(sorted(HOMES)))
def test_nothing_that_a_line_holds_raises(line: bytes, agent: str) -> None:
    unknown_fields(line, known_fields(agent))
    unknown_fields(b"[" * 5000, known_fields(agent))


def test_an_invented_field_shows_after_a_session_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    lines = (
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [], "mood": n}}
        for n in (1, 2)
    )
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    thread = Thread(
        thread_id="a", agent="codex", rollout_path=str(path), source="cli", cwd="", created_at_ms=0, updated_at_ms=0
    )
    with watch_fields(open_thread(thread, max_line_bytes=1 << 20), thread.agent) as items:
        list(items)
    assert items.stats.unknown_fields == {"response_item.payload:message.mood": 2}
