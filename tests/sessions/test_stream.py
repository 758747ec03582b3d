from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.errors import EmptyRollout, RolloutError
from stillroom.sessions.events import read_events
from stillroom.sessions.item import Item
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import open_items

LIMIT = 8 * 1024 * 1024


def read(path: Path, *, limit: int = LIMIT) -> tuple[list[Item], ReadStats]:
    with open_items(path, max_line_bytes=limit) as stream:
        return list(stream), stream.stats


def line(payload: object, *, type: str = "response_item", **more: object) -> bytes:
    record = {"timestamp": "2026-11-29T12:16:15.270Z", "ordinal": 7, "type": type, "payload": payload, **more}
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def message(text: str, *, role: str = "user") -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def test_an_item_is_the_payload_as_it_stands_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    payload = b'{"type":"message", "role":"user","content":[{"type":"input_text","text":"h\\u00e9"}]}'
    head = b'{"timestamp":"2026-11-29T12:16:15.270Z","ordinal":3,"type":"response_item","payload":'
    path.write_bytes(head + payload + b',"metadata":{"client_authored":false}}\n')
    items, stats = read(path)
    assert items == [Item("message", "user", payload, 1795954575270, 1)]
    assert (stats.lines, stats.kept, stats.bad_lines) == (1, 1, 0)


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("message", True),
        ("agent_message", True),
        ("local_shell_call", True),
        ("function_call", True),
        ("function_call_output", True),
        ("tool_search_call", True),
        ("tool_search_output", True),
        ("custom_tool_call", True),
        ("custom_tool_call_output", True),
        ("web_search_call", True),
        ("reasoning", False),
        ("image_generation_call", False),
        ("compaction", False),
        ("context_compaction", False),
        ("compaction_trigger", False),
        ("additional_tools", False),
    ],
)
def test_policy_of_kinds(tmp_path: Path, kind: str, kept: bool) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(line({"type": kind, "role": "assistant"} if kind == "message" else {"type": kind}))
    items, stats = read(path)
    assert [item.type for item in items] == ([kind] if kept else [])
    assert stats.unknown == {}


def test_what_the_harness_says_is_dropped_and_other_roles_pass(tmp_path: Path) -> None:
    path, roles = tmp_path / "rollout.jsonl", ("developer", "system", "assistant", "user", "tool")
    path.write_bytes(b"".join(line(message("x", role=role)) for role in roles))
    items, _ = read(path)
    assert [item.role for item in items] == ["assistant", "user", "tool"]


def test_unknown_kinds_are_counted_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(line({"type": "hologram"}) + line({}, type="telepathy") + line({}, type="telepathy"))
    items, stats = read(path)
    assert items == []
    assert stats.unknown == {"response_item/hologram": 1, "telepathy": 2}
    assert stats.bad_lines == 0


def test_a_file_without_lines_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"\n  \n")
    with pytest.raises(EmptyRollout):
        read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RolloutError, match=r"gone\.jsonl"):
        read(tmp_path / "gone.jsonl")


def test_an_image_and_shown_memory_leave_the_items(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    image = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 1000}
    seen = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "see"}, image]}
    output = {"type": "function_call_output", "output": "a <stillroom-memory>m</stillroom-memory>"}
    path.write_bytes(line(seen) + line(output) + line(message("<stillroom-memory>m</stillroom-memory>")))
    items, stats = read(path)
    assert b"[image omitted: 1000 bytes]" in items[0].raw
    assert json.loads(items[1].raw)["output"] == "a "
    assert (len(items), stats.images, stats.kept) == (2, 1, 2)


def test_messages_between_agents_become_items(tmp_path: Path) -> None:
    """Spec §10.2 item 27."""
    path = tmp_path / "rollout.jsonl"
    plain = {"author": "/root", "recipient": "/root/a", "content": "look into it", "trigger_turn": True}
    secret = {
        "author": "/root/a",
        "recipient": "/root",
        "content": "",
        "encrypted_content": "gAAA",
        "trigger_turn": False,
    }
    kind = "inter_agent_communication"
    path.write_bytes(
        line(plain, type=kind) + line(secret, type=kind) + line({"trigger_turn": True}, type=f"{kind}_metadata")
    )
    items, stats = read(path)
    assert [json.loads(item.raw) for item in items] == [
        {
            "type": "agent_message",
            "author": "/root",
            "recipient": "/root/a",
            "content": [{"type": "input_text", "text": "look into it"}],
        },
        {
            "type": "agent_message",
            "author": "/root/a",
            "recipient": "/root",
            "content": [{"type": "input_text", "text": "MESSAGE from /root/a to /root: [encrypted: 4 bytes]"}],
        },
    ]
    assert stats.unknown == {}


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"response_item","payload":{"role":"user","type":"message","content":[]' + b',"id":"x"}}\n',
        b'{"payload":{"type":"message","role":"assistant"},"type":"response_item","timestamp":"2026-11-29T12:16:15.270Z"}\n',
        b' {"timestamp":5,"ordinal":"x","type":"response_item","payload":{"type":"message","role":"tool"}} \r\n',
        b'\0\0\0{"type":"response_item","payload":{"type":"message","role":"assistant"}}\n',
        b'\xef\xbb\xbf{"type":"response_item","payload":{"type":"message","role":"assistant"}}\n',
        b'{"type":"response_item","payload":{"type":"message","role":"assistant","text":"\\ud800 half"}}\n',
        b'{"type":"response_item","payload":{"type":"message","role":"assistant","text":"bare \x01"}}\n',
        b'{"type":"response_item","payload":{"type":"message","role":"assistant","text":"not \xff utf-8"}}\n',
        b'{"type":"response_item","payload":{"type":"message","role":"assistant"}}',
    ],
)
def test_other_ways_to_write_a_line_are_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(data)
    items, stats = read(path)
    expected = 0 if b'"content":[]' in data else 1  # a user's message without any part says nothing
    assert len(items) == stats.kept == expected
    assert stats.bad_lines == 0
    for item in items:
        json.loads(item.raw.decode())


@pytest.mark.parametrize(
    "data",
    [
        b"garbage\n",
        b'{"type":"response_item"}\n',
        b'{"type":"response_item","payload":[]}\n',
        b'{"type":7,"payload":{}}\n',
        b'{"timestamp":"2026-11-29T12:16:15.270Z","type":"event_msg","payload":{"type":"tok\n',
        b'{"timestamp":"2026-11-29T12:16:15.270Z","type":"response_item","payload":{"type":"message","role":"user"\n',
        b"[" * 100_000 + b"\n",
        b'{"type":"response_item","payload":{"type":"message","role":"user","content":'
        + b"[" * 5000
        + b"]" * 5000
        + b"}}\n",
        b'{"type":"session_meta","payload":"x"}\n',
    ],
)
def test_a_bad_line_is_counted_and_the_others_are_read(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(data + line(message("x")))
    items, stats = read(path)
    assert [item.line_no for item in items] == [2]
    assert stats.bad_lines == 1


def test_a_torn_last_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(line(message("x")) + line(message("y"))[:-20])
    items, stats = read(path)
    assert (len(items), stats.bad_lines, stats.torn) == (1, 0, True)


def test_mode_and_folder_are_those_of_the_last_lines_of_this_thread(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(
        line({"id": "a", "cwd": "/w", "memory_mode": "enabled"}, type="session_meta")
        + line({"id": "a", "memory_mode": "disabled"}, type="session_meta")
        + line({"id": "parent", "memory_mode": "polluted"}, type="session_meta")
        + line({"id": "a", "memory_mode": "strange"}, type="session_meta")
        + line({"cwd": "/w/deeper"}, type="turn_context")
    )
    _, stats = read(path)
    assert (stats.memory_mode, stats.last_cwd) == ("disabled", "/w/deeper")


def test_reading_stops_after_the_asked_bytes(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(line(message("x")) * 100)
    with open_items(path, max_line_bytes=LIMIT, stop_after_bytes=1000) as stream:
        assert 5 < len(list(stream)) < 20


SESSION = max((Path(__file__).parents[2] / "examples/codex-home").rglob("*.jsonl"), key=lambda path: path.name)


@given(st.integers(0, SESSION.stat().st_size))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_cut_at_any_byte_gives_a_prefix_of_its_items(tmp_path: Path, at: int) -> None:
    whole, _ = read(SESSION)
    path = tmp_path / "cut.jsonl"
    path.write_bytes(SESSION.read_bytes()[:at])
    if at == 0:
        return
    items, stats = read(path)
    assert items == whole[: len(items)]
    assert stats.bad_lines == 0


@given(
    st.lists(st.binary(max_size=80) | st.sampled_from(SESSION.read_bytes().splitlines()), max_size=20),
    st.integers(64, 4000),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_stands_in_a_file_items_are_valid_json(tmp_path: Path, lines: list[bytes], limit: int) -> None:
    path = tmp_path / "garbage.jsonl"
    path.write_bytes(b"\n".join(lines))
    try:
        items, stats = read(path, limit=limit)
    except EmptyRollout:
        return
    assert stats.kept == len(items)
    for item in items:
        assert json.loads(item.raw.decode())["type"] == item.type
    read_events(items)


@given(st.integers(0, 10_000), st.binary(min_size=1, max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damage_at_any_place_costs_only_the_lines_that_it_touches(tmp_path: Path, at: int, damage: bytes) -> None:
    whole, _ = read(SESSION)
    data = bytearray(SESSION.read_bytes())
    at %= len(data)
    data[at : at + len(damage)] = damage
    path = tmp_path / "damaged.jsonl"
    path.write_bytes(bytes(data))
    items, _ = read(path)
    lost = {item.raw for item in whole} - {item.raw for item in items}
    assert len(lost) <= 1 + SESSION.read_bytes()[at : at + len(damage)].count(b"\n")


@given(
    st.lists(st.sampled_from(["a", "b needle", "é", "needle" * 400, "x" * 900]), max_size=60), st.integers(100, 3000)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_only_wanted_lines_become_items_and_the_first(tmp_path: Path, texts: list[str], batch_bytes: int) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"".join(line(message(text)) for text in ["first", *texts]))

    def wanted(part: bytes) -> bool:
        return b"needle" in part

    every, _ = read(path)
    with open_items(path, max_line_bytes=LIMIT, reading=Reading(batch_bytes=batch_bytes)) as stream:
        assert list(stream.only(wanted)) == [item for item in every if item.line_no == 1 or b"needle" in item.raw]
        assert stream.stats.lines == len(texts) + 1
