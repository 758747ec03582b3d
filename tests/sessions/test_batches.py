"""The fast ways through a file give what the plain one gives: one line at a time, each looked at alone."""

from __future__ import annotations

import io
import json
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.errors import EmptyRollout
from stillroom.sessions.item import MESSAGES, Item
from stillroom.sessions.jsonl import open_stored, read_batches, read_lines
from stillroom.sessions.records import Records
from stillroom.sessions.render import render_string, render_texts
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import open_items

EXAMPLES = sorted((Path(__file__).parents[2] / "examples/codex-home").rglob("*.jsonl"))
RECORDED = [line for path in EXAMPLES for line in path.read_bytes().splitlines()]
SMALL = Reading(
    chunk_bytes=64,
    blob_run_bytes=48,
    string_end_bytes=40,
    batch_bytes=800,
    seam_guard_bytes=40,
    seam_margin_bytes=120,
)


def line(payload: str, *, type: str = "response_item", ordinal: str = "") -> bytes:
    head = f'{{"timestamp":"2026-11-29T12:16:15.270Z",{ordinal}"type":"{type}","payload":'
    return head.encode() + payload.encode("utf-8", "surrogateescape") + b"}"


def said(text: str, role: str = "assistant", more: str = "") -> str:
    return f'{{"type":"message",{more}"role":"{role}","content":[{{"type":"input_text","text":"{text}"}}]}}'


STRANGE = [
    line(said("plain")),
    line(said("plain", more='"id":"m","status":"done",')),
    line(said("plain", "user")),
    line(said("plain", "tool"), ordinal='"ordinal":12,'),
    line(said("plain", "developer"), ordinal='"ordinal":3,'),
    line(said("# AGENTS.md instructions for /w\\n</INSTRUCTIONS>", "user")),
    line(said(" <skill>x</skill> ", "user")),
    line(said("<stillroom-memory>m</stillroom-memory>")),
    line(said("see <stillroom-memory>m</stillroom-memory>", "user")),
    line(said("data:image/png;base64," + "A" * 100)),
    line(said("\udcff is not UTF-8")),
    line(said("é 世")),
    line(said("\\ud800")),
    line(said("unclosed")[:-3]),
    line(said("plain", "user")[:-2] + ',{"type":"input_text","text":"<SKILL>x</SKILL>"}]}'),
    line(said("plain", "user")[:-2] + ',{"type":"input_image","image_url":"u"},5]}'),
    line(said('plain","text":"<skill>x</skill>', "user")),
    line(said('plain","te\\u0078t":"<skill>x</skill>', "user")),
    line(said("plain", "user")[:-1] + ',"content" :[]}'),
    line(said('plain","text" : "<skill>x</skill>', "user")),
    line(said("plain", "user")[:-1] + ',"c\\u006fntent":[]}'),
    line(said("<environment_context>x</environment_context>", "user"), ordinal='"ordinal":9,'),
    line(said("plain", "user"), ordinal='"ordinal":10,')[:-1] + b',"metadata":{"content":[{"text":"y"}]}}',
    line(said("plain", "system"))[:-2],
    line(said("plain", "user")[:-1] + ',"role":"developer"}'),
    line(said("plain", "developer")[:-1] + ',"role":"assistant"}'),
    line(said("plain")[:-1] + ',"role":5}'),
    line('{"type":"message","content":[{"text":7}],"role":"assistant"}'),
    line('{"type":"message","content":"x","role":"developer"}'),
    line('{"type":"function_call","name":"x"}'),
    line('{"type":"function_call","name":"x"}') + b"}",
    line('{"type":"function_call","name":"x"}') + b" " + line('{"type":"function_call","name":"y"}'),
    line('{"type":"function_call_output","output":"x","call_id":')[:-1],
    line('{"type":"message","role":"user","content":[]}'),
    line('{"type":"message","role":"user","content":"x"}'),
    line('{"type":"message","role":"user"}'),
    line('{"role":"user","type":"message","content":[]}'),
    line('{"type":"hologram"}'),
    line('{"type":"reasoning"}')[:-1],
    line("{}", type="event_msg"),
    line("{}", type="event_msg") + b"\r",
    line("{}", type="event_msg")[:-2],
    line('{"cwd":"/deeper"}', type="turn_context"),
    line('{"cwd":""}', type="turn_context"),
    line('{"cwd":5}', type="turn_context"),
    line('{"cwd":"/torn"', type="turn_context")[:-1],
    line('{"id":"another","cwd":"/elsewhere"}', type="session_meta"),
    line('{"session_id":"a","cwd":"/here"}', type="session_meta"),
    line("[]", type="session_meta"),
    b'{"timestamp":"2026-11-29T12:16:15.270Z","payload":' + said("plain").encode() + b',"type":"response_item"}',
    b'{"timestamp":"2026-11-29T12:16:15.270Z","more":{"type":"event_msg","x":1},"type":"response_item","payload":'
    + said("plain").encode()
    + b"}",
    line('{"id":"a","memory_mode":"disabled"}', type="session_meta"),
    line('{"author":"a","recipient":"b","content":"c"}', type="inter_agent_communication"),
    b"\0\0" + line(said("plain")),
    b"\xef\xbb\xbf" + line(said("plain")),
    line(said("plain"))[:60] + line("{}", type="event_msg"),
    b'{"timestamp":"2026-11-29T12:16:15.270Z","type":"response_item","p\\u0061yload":' + said("plain").encode() + b"}",
    b"",
    b" \t",
    b"{",
]
LINES = st.lists(st.sampled_from(STRANGE) | st.sampled_from(RECORDED) | st.binary(max_size=60), max_size=30)


def plainly(path: Path, limit: int, reading: Reading) -> tuple[list[Item], ReadStats]:
    stats = ReadStats()
    records = Records(stats)
    items = []
    with open_stored(path) as file:
        for text in read_lines(file, stats, max_line_bytes=limit, wanted=records.may_matter, reading=reading):
            if (item := records.item(text, stats.lines)) is not None:
                items.append(item)
                stats.kept += 1
                stats.messages += item.type in MESSAGES
    return items, stats


@given(LINES, st.sampled_from([90, 300, 1 << 20]), st.sampled_from([64, 800, 1 << 17]), st.sampled_from([b"", b"\n"]))
@example([b"\xef\xbb\xbf"], 90, 64, b"")
@example([STRANGE[0][:88] + b"x"], 90, 64, b"\n")
@example([STRANGE[0]] * 20 + [STRANGE[24]] * 20, 1 << 20, 800, b"\n")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_items_and_counts_are_those_of_the_plain_way(
    tmp_path: Path, lines: list[bytes], limit: int, batch_bytes: int, end: bytes
) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"\n".join(lines) + end)
    reading = Reading(chunk_bytes=64, blob_run_bytes=48, string_end_bytes=40, batch_bytes=batch_bytes)
    expected, counts = plainly(path, limit, reading)
    try:
        with open_items(path, max_line_bytes=limit, reading=reading) as stream:
            assert list(stream) == expected
        assert stream.stats == counts
        with open_items(path, max_line_bytes=limit, reading=reading) as stream:
            joined = b",".join(stream.texts())
        assert joined == b",".join(item.raw for item in expected)
        assert stream.stats == counts
    except EmptyRollout:
        assert expected == []


@given(LINES, st.integers(0, 400))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_rendered_session_is_the_same_from_items_and_from_texts(
    tmp_path: Path, lines: list[bytes], token_limit: int
) -> None:
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"\n".join([RECORDED[0], *lines]))
    rendered = []
    for read in (False, True):
        with open_items(path, max_line_bytes=1 << 20, reading=SMALL) as stream:
            if read:
                rendered.append(render_texts(stream.texts(), token_limit=token_limit, redact=str.upper, reading=SMALL))
            else:
                rendered.append(render_string(stream, token_limit=token_limit, redact=str.upper, reading=SMALL))
    assert rendered[0] == rendered[1]


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(0, 600), st.integers(1, 200))
def test_a_batch_ends_with_the_line_that_passes_the_mark(lines: list[bytes], stop: int, batch_bytes: int) -> None:
    data = b"\n".join(lines)
    stats = ReadStats()
    reading = Reading(batch_bytes=8 * batch_bytes)
    read = read_batches(
        io.BufferedReader(io.BytesIO(data)), stats, max_line_bytes=1000, stop_after_bytes=stop, reading=reading
    )
    out = [text for batch in read for text in batch]
    end = data.find(b"\n", stop) + 1 or len(data)
    assert stats.bytes == (end if stop < len(data) else len(data))
    assert b"".join(out) == data[: stats.bytes].removeprefix(b"\xef\xbb\xbf")


def test_recorded_sessions_are_valid_json_when_joined() -> None:
    for path in EXAMPLES:
        with open_items(path, max_line_bytes=1 << 20) as stream:
            assert len(json.loads(b"[" + b",".join(stream.texts()) + b"]")) == stream.stats.kept > 0


def test_after_too_many_repairs_a_broken_line_is_only_counted() -> None:
    half_pair = line(said("\\ud83d"))
    records = Records(ReadStats(), max_repairs=2)
    items = list(records.items([half_pair] * 4, 1))
    assert (len(items), records.stats.bad_lines) == (2, 2)


def test_a_line_without_a_payload_costs_no_repair() -> None:
    records = Records(ReadStats(), max_repairs=1)
    assert len(list(records.items([b"{\n", b"1\n", b"\0\n", line(said("\\ud83d"))], 1))) == 1
    assert records.stats.bad_lines == 3
