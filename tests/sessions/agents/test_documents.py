"""Huge JSON documents, taken apart; what `json.loads` makes of the same text is the measure."""

from __future__ import annotations

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.errors import EmptyRollout, RolloutError
from stillroom.sessions.discovery import Broken
from stillroom.sessions.documents import TORN, all_fields, elements, fields, lines
from stillroom.sessions.readers import reader_of
from stillroom.sessions.stats import ReadStats

LIMIT = 8 * 1024 * 1024
SOURCE = Path(__file__).parents[3] / "src"
text = st.text('aé😀"\\\\{}[],:\n', max_size=12)
scalars = st.sampled_from([None, True, 0, -1.5e300]) | text
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=6
)
indents = st.sampled_from([None, 0, 2, "\t"])
pieces = st.builds(lambda size: Reading(chunk_bytes=size, batch_bytes=64), st.integers(1, 40))


def encoded(value: object, indent: int | str | None, *, ascii_only: bool) -> bytes:
    return json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode()


def split(data: bytes, path: tuple[str | int, ...], reading: Reading) -> list[bytes]:
    return list(elements(BytesIO(data), path, max_line_bytes=LIMIT, reading=reading))


@given(before=values, listed=st.lists(values, max_size=4), after=values, indent=indents, ascii_only=..., reading=pieces)
def test_elements_are_those_that_json_finds(
    before: Any, listed: list[Any], after: Any, indent: int | str | None, ascii_only: bool, reading: Reading
):
    document = {"list": {"deep": "[1]"}, "before": before, "there": [before, {"in": listed}], "after": after}
    data = encoded(document, indent, ascii_only=ascii_only)
    assert [json.loads(line) for line in split(data, ("there", 1, "in"), reading)] == listed
    assert [json.loads(line) for line in split(encoded(listed, indent, ascii_only=ascii_only), (), reading)] == listed
    assert split(data, ("there", 1, "out"), reading) == split(data, ("list", "deep"), reading) == []
    found = fields(BytesIO(data), ["before", "after", "gone"], max_bytes=LIMIT, reading=reading)
    assert {name: json.loads(bytes(raw)) for name, raw in found.items()} == {"before": before, "after": after}


@given(listed=st.lists(values, max_size=4), indent=indents, cut=st.floats(0, 1), reading=pieces)
def test_of_a_document_cut_anywhere_come_the_elements_before_the_cut(
    listed: list[Any], indent: int | str | None, cut: float, reading: Reading
):
    data, ends = b'{"list":[ ', []
    for element in listed:
        data += encoded(element, indent, ascii_only=False)
        ends.append(len(data))
        data += b" ,"
    at = 1 + int(len(data) * cut)
    *read, last = split(data[:at], ("list",), reading)
    assert last == TORN
    # Where a number ends is told by what follows it.
    assert [json.loads(line) for line in read][: len(listed)] == listed[: sum(end < at for end in ends)] or (
        at in ends and len(read) == ends.index(at) + 1
    )


@given(data=st.binary() | st.lists(st.sampled_from('{}[],:"\\ \n1ae'), max_size=60).map(lambda c: "".join(c).encode()))
@example(b'{"list":[1}')
@example(b"\\" * 100)
def test_garbage_is_refused_or_gives_lines(data: bytes):
    for path in ((), ("list",), (0,)):
        for size in (1, 7, 100):
            try:
                read = list(lines(BytesIO(data), path, reading=Reading(chunk_bytes=size)))
            except RolloutError:
                continue
            assert b"".join(read).endswith((b"\n", TORN)) or not b"".join(read)
    fields(BytesIO(data), ["list"], max_bytes=100, reading=Reading(chunk_bytes=7))


def test_deep_nesting_is_no_danger():
    deep = b"[" * 50_000 + b"]" * 50_000
    assert split(b'{"list":[' + deep + b",7]}", ("list",), Reading(chunk_bytes=1000)) == [deep + b"\n", b"7\n"]
    assert split(b"[" * 100_000, (), Reading()) == [TORN]
    assert split(b'{"a":' * 50_000, ("list",), Reading()) == [TORN]


def test_a_long_element_loses_its_blob_or_is_counted():
    image, hopeless = {"text": "seen", "data": "A" * 100_000}, list(range(100_000))
    stats, small = ReadStats(), Reading(chunk_bytes=1000)
    data = json.dumps([image, hopeless, "last"], indent=1).encode()
    read = elements(BytesIO(data), (), max_line_bytes=10_000, stats=stats, reading=small)
    assert [json.loads(line) for line in read] == [{"text": "seen", "data": "[blob: 100000 bytes]"}, None, "last"]
    assert (stats.long_lines, stats.bad_lines, stats.torn) == (2, 1, False)
    assert stats.cut_bytes > 500_000


def test_fields_are_looked_for_no_farther_than_asked_for():
    data = b'\xef\xbb\xbf {"id":"x","m\\u0065":1,"big":"' + b"y" * 1000 + b'","list":[1,2],"late":2}'
    names = ("id", "me", "big", "late")

    def found(data: bytes, **options: Any) -> dict[str, Any]:
        return {name: json.loads(bytes(raw)) for name, raw in fields(BytesIO(data), names, **options).items()}

    assert found(data, max_bytes=100) == {"id": "x", "me": 1, "late": 2}
    assert found(data, max_bytes=100, stop_after_bytes=500) == {"id": "x", "me": 1}
    assert found(b"[0," + data[3:] + b"]", max_bytes=2, path=(1,)) == {"me": 1, "late": 2}
    assert [name for name, _ in all_fields(BytesIO(b'{"in":' + data[3:]), path=("in",), max_bytes=3)] == [
        *("id", "me", "late")
    ]
    assert found(b"what", max_bytes=100) == found(b"", max_bytes=100) == {}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_a_document_of_200_mb_takes_little_memory(tmp_path: Path):
    """One element has 60 MB of base64, and the keys are indented: nothing but the file may be large."""
    with (tmp_path / "huge.json").open("w", encoding="utf-8") as file:
        file.write('{\n "messages": [\n')
        turn = json.dumps({"role": "tool", "content": 'say "a\\b"\n' * 400, "n": [[{"x": [1, {}]}]]}, indent=2)
        for _ in range(29_000):
            file.write(turn + ",\n")
        file.write('{"image": "')
        for _ in range(60):
            file.write("QUJD" * 250_000)
        file.write('"}\n]}')
    assert (tmp_path / "huge.json").stat().st_size > 200_000_000
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from stillroom.sessions.documents import elements\n"
        "with open(sys.argv[1], 'rb') as file:\n"
        "    read = sum(1 for _ in elements(file, ('messages',), max_line_bytes=8 << 20))\n"
        "peak = Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]\n"
        "print(read, int(peak) // 1024)\n"
    )
    asked = [sys.executable, "-c", script, str(tmp_path / "huge.json")]
    done = subprocess.run(
        asked, stdout=subprocess.PIPE, text=True, check=True, timeout=120, env={"PYTHONPATH": str(SOURCE)}
    )
    read, peak_mb = map(int, done.stdout.split())
    assert read == 29_001
    assert peak_mb < 100


@pytest.mark.parametrize(
    "agent", ["atif", "chat-messages", "continue", "inspect-ai", "langchain", "pydantic-ai", "swe-agent"]
)
@pytest.mark.parametrize("text", ['{"messages":[{"role":"us', '{"messages":[', '{"a":1'])
def test_of_a_document_that_is_cut_it_is_said_that_it_is(agent: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text(text, encoding="utf-8")
    (broken,) = reader_of(agent).discover(path, {}, max_line_bytes=1 << 20)
    assert isinstance(broken, Broken)
    assert "breaks off" in broken.reason
    path.write_text('{"a":1}', encoding="utf-8")
    (whole,) = reader_of(agent).discover(path, {}, max_line_bytes=1 << 20)
    assert isinstance(whole, Broken)
    assert "breaks off" not in whole.reason


def test_of_a_session_whose_document_is_cut_it_is_said_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cut.messages.json"
    path.write_text('{"messages":[{"role":"us', encoding="utf-8")
    with (
        reader_of("cline").open_items(path, max_line_bytes=1 << 20) as items,
        pytest.raises(EmptyRollout, match="breaks off before its first record is whole"),
    ):
        list(items)
