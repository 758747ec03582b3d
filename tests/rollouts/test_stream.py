from __future__ import annotations

import json
from pathlib import Path

import pytest

from stillroom.errors import EmptyRollout, RolloutError
from stillroom.rollouts.item import Item
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import open_items

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


def test_developer_messages_are_dropped_and_other_roles_pass(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"".join(line(message("x", role=role)) for role in ("developer", "assistant", "user", "tool")))
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
