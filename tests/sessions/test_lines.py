from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.errors import RolloutError
from stillroom.sessions.jsonl import Squeezer, open_stored, read_lines, stored_path
from stillroom.sessions.stats import ReadStats

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SMALL = Reading(chunk_bytes=64, blob_run_bytes=48, string_end_bytes=40)


def read(data: bytes, *, limit: int = 256, reading: Reading = SMALL) -> tuple[list[bytes], ReadStats]:
    stats = ReadStats()
    return list(read_lines(io.BufferedReader(io.BytesIO(data)), stats, max_line_bytes=limit, reading=reading)), stats


def squeeze(pieces: list[bytes], *, limit: int = 4096) -> bytes | None:
    squeezer = Squeezer(limit=limit, reading=SMALL)
    for piece in pieces:
        squeezer.feed(piece)
    return squeezer.finish()


@given(st.lists(st.binary(min_size=1, max_size=200).filter(lambda line: b"\n" not in line and not line.isspace())))
def test_short_lines_come_out_as_they_are(lines: list[bytes]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    if lines and lines[0].startswith(b"\xef\xbb\xbf"):
        return
    out, stats = read(data)
    assert out == [line + b"\n" for line in lines]
    assert (stats.lines, stats.bytes, stats.long_lines, stats.torn) == (len(lines), len(data), 0, False)


def test_blank_lines_a_byte_order_mark_and_windows_line_ends() -> None:
    out, stats = read(b"\xef\xbb\xbf{}\r\n\r\n \n[]\n")
    assert out == [b"{}\r\n", b"[]\n"]
    assert stats.lines == 4
    assert read(b"\xef\xbb\xbf")[0] == []


def test_the_last_line_without_a_newline_is_torn() -> None:
    out, stats = read(b'{"a":1}\n{"b"')
    assert out == [b'{"a":1}\n', b'{"b"']
    assert stats.torn


def test_a_line_of_exactly_the_limit_is_not_long() -> None:
    line = b'"' + b"x " * 126 + b'x"\n'
    assert len(line) == 256
    assert read(line) == ([line], ReadStats(bytes=256, lines=1))


def test_base64_in_a_long_line_becomes_its_size() -> None:
    line = json.dumps({"a": "see: " + "QUJD" * 500, "b": "kept"}).encode() + b"\n"
    out, stats = read(line + b"{}\n")
    assert [json.loads(text) for text in out] == [{"a": "see: [blob: 2000 bytes]", "b": "kept"}, {}]
    assert (stats.long_lines, stats.cut_bytes, stats.lines, stats.bytes) == (
        1,
        len(line) - len(out[0]),
        2,
        len(line) + 3,
    )


def test_the_letter_of_an_escape_is_not_taken_for_base64() -> None:
    for escape in ("\\n", "\\u00e9", "\\\\"):
        out, _ = read(b'{"a":"' + b". " * 100 + escape.encode() + b"A" * 500 + b'"}\n')
        text = json.loads(out[0])["a"]
        assert text.endswith(" bytes]"), escape


def test_a_huge_string_keeps_both_ends() -> None:
    text = "begin " + "lorem ipsum " * 500 + " end"
    out, stats = read(json.dumps({"a": text}).encode() + b"\n")
    kept = json.loads(out[0])["a"]
    assert kept.startswith("begin lorem") and kept.endswith("ipsum  end")
    head, _, rest = kept.partition("[… ")
    count, _, tail = rest.partition(" bytes cut …]")
    assert int(count) == len(text) - len(head) - len(tail)
    assert stats.cut_bytes > 5000


def test_a_line_of_many_small_strings_stays_long_and_is_passed_over() -> None:
    out, stats = read(json.dumps(["a b"] * 1000).encode() + b"\n{}\n")
    assert out == [b"{}\n"]
    assert (stats.lines, stats.long_lines, stats.bad_lines) == (2, 1, 1)


def test_a_long_line_that_nobody_wants_is_not_squeezed() -> None:
    stats = ReadStats()
    data = b'"' + b"x y " * 500 + b'"\n{}\n'
    lines = read_lines(
        io.BufferedReader(io.BytesIO(data)),
        stats,
        max_line_bytes=256,
        wanted=lambda head: head[:1] != b'"',
        reading=SMALL,
    )
    assert list(lines) == [b"{}\n"]
    assert (stats.long_lines, stats.bad_lines, stats.cut_bytes) == (1, 0, len(data) - 3)


def test_a_torn_long_line_is_not_a_bad_one() -> None:
    out, stats = read(b'{}\n{"a":"' + b"x y " * 500)
    assert out == [b"{}\n"]
    assert (stats.torn, stats.bad_lines, stats.long_lines) == (True, 0, 1)


@given(st.lists(st.integers(0, 400), max_size=6), st.lists(st.integers(1, 500), min_size=1, max_size=8))
def test_a_run_of_letters_is_a_blob_from_its_full_length_on_wherever_the_pieces_end(
    lengths: list[int], sizes: list[int]
) -> None:
    line = b'"' + b" ".join(b"A" * length for length in lengths) + b'"'
    squeezer = Squeezer(limit=8192, reading=Reading(chunk_bytes=300, blob_run_bytes=200, string_end_bytes=4096))
    at = 0
    for size in itertools.cycle(sizes):
        if at >= len(line):
            break
        squeezer.feed(line[at : at + size])
        at += size
    kept = [b"A" * length if length < 200 else b"[blob: %d bytes]" % length for length in lengths]
    assert squeezer.finish() == b'"' + b" ".join(kept) + b'"'


TEXT = st.text(alphabet=st.sampled_from('aZ0+ \\"/\n\té世😀\x00\x7f'), max_size=300)


@example(['000\x7f😀😀😀000000"""""\x00\x7f\x7f\x7f😀😀😀'], [1], True)
@given(st.lists(TEXT, min_size=1, max_size=6), st.lists(st.integers(1, 120), min_size=1, max_size=8), st.booleans())
def test_a_squeezed_line_is_json_with_the_ends_of_every_string_wherever_the_pieces_end(
    texts: list[str], sizes: list[int], escaped: bool
) -> None:
    line = json.dumps(texts, ensure_ascii=escaped).encode()
    pieces, at = [], 0
    for number in range(len(line)):
        if at >= len(line):
            break
        pieces.append(line[at : at + sizes[number % len(sizes)]])
        at += len(pieces[-1])
    squeezed = squeeze(pieces)
    if squeezed is None:
        assert b"\\" * 96 in line
        return
    assert squeezed == squeeze([line])
    for text, kept in zip(texts, json.loads(squeezed), strict=True):
        if len(json.dumps(text, ensure_ascii=escaped)) < 48:
            assert kept == text
        elif "[blob" not in kept:
            head, mark, rest = kept.partition("[… ")
            assert text.startswith(head)
            assert text.endswith(rest.partition(" bytes cut …]")[2]) if mark else kept == text


@given(st.binary(max_size=2000), st.integers(1, 300))
def test_any_bytes_can_be_read(data: bytes, limit: int) -> None:
    _, stats = read(data, limit=limit)
    assert stats.bytes == len(data)
    assert stats.lines == data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


def test_the_plain_file_is_preferred_to_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    archive = tmp_path / "rollout.jsonl.zst"
    archive.write_bytes(zstd.compress(b"archive\n"))
    with open_stored(path) as file:
        assert file.read() == b"archive\n"
    path.write_bytes(b"plain\n")
    assert stored_path(path) == path
    with open_stored(path) as file:
        assert file.read() == b"plain\n"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RolloutError, match="no ordinary file"):
        open_stored(tmp_path)


@pytest.mark.parametrize("name", ["rollout.jsonl", "rollout.jsonl.zst"])
def test_a_named_pipe_is_refused_and_blocks_nobody(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(RolloutError, match="no ordinary file"):
        open_stored(tmp_path / "rollout.jsonl")


def test_an_archive_leaves_no_open_file(tmp_path: Path) -> None:
    archive = tmp_path / "rollout.jsonl.zst"
    archive.write_bytes(zstd.compress(b"archive\n" * 1000))
    before = sorted(Path("/dev/fd").iterdir())
    with open_stored(archive) as file:
        assert file.readline() == b"archive\n"
    assert sorted(Path("/dev/fd").iterdir()) == before


def test_a_damaged_archive_gives_the_lines_before_the_damage(tmp_path: Path) -> None:
    whole = b"".join(b'{"n":%d}\n' % number for number in range(100_000))
    archive = tmp_path / "rollout.jsonl.zst"
    archive.write_bytes(zstd.compress(whole)[:-1000])
    stats = ReadStats()
    with open_stored(archive) as file:
        lines = list(read_lines(file, stats, max_line_bytes=1000))
    assert stats.broken is not None and stats.bad_lines == 1
    assert whole.startswith(b"".join(lines[:-1]))


MEASURE = """
import sys
from pathlib import Path
from stillroom.sessions.render import render_string
from stillroom.sessions.stream import open_items
with open_items(Path(sys.argv[1]), max_line_bytes=8 * 1024 * 1024) as items:
    render_string(items, token_limit=150_000, redact=lambda text: text)
print(items.stats.kept, items.stats.long_lines, Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_lines_of_20_mb_are_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    head = b'{"timestamp":"2026-11-29T12:16:15.270Z","type":"response_item","payload":{"type":'
    with path.open("wb") as file:
        for number in range(3):
            file.write(head + b'"function_call_output","call_id":"c%d","output":"' % number)
            for _ in range(21):
                file.write(b"one more line of a log \\n" * 43_700 if number else b"iVBORw0KGgo" * 95_300)
            file.write(b'"}}\n')
    assert path.stat().st_size > 64_000_000
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)],
        env={"PYTHONPATH": source},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    kept, long_lines, peak_kb = map(int, done.stdout.split())
    assert (kept, long_lines) == (3, 3)
    assert peak_kb < 80_000
