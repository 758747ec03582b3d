from __future__ import annotations

import json
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from golden import DATA, LIMIT, describe, read, seen_again
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.errors import RolloutError
from stillroom.sessions.agents import inspect_ai as reader
from stillroom.sessions.discovery import Broken, Found, Unchanged

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SAMPLES = DATA / "inspect-ai" / "0.3.285"
EVAL = {"eval_id": "e-1", "created": "2026-11-29T12:00:00+00:00", "task": "demo", "model": "openai/m"}
EVAL |= {"revision": {"origin": "git@h:o/r.git", "commit": "abc"}, "packages": {"inspect_ai": "0.3.285"}}


def sample(number: int, *messages: object, **fields: object) -> dict[str, object]:
    return {"id": number, "epoch": 1, "input": f"Task {number}.", "messages": messages, **fields}


def document(folder: Path, *samples: object) -> Path:
    path = folder / "2026-11-29T12-23-28-00-00_demo_x.json"
    path.write_text(json.dumps({"version": 2, "eval": EVAL, "samples": samples}, indent=2), encoding="utf-8")
    return path


def archived(path: Path, members: dict[str, object], *, method: int = 93) -> Path:
    """A ZIP archive as inspect_ai writes it: without help, as Python before 3.14 can't pack with Zstandard."""
    body, directory = b"", b""
    for name, value in members.items():
        text = json.dumps(value).encode()
        packed = zstd.compress(text) if method == 93 else text
        fields = (20, 0, method, 0, 0x5B7D, zlib.crc32(text), len(packed), len(text), len(name), 0)
        directory += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, *fields, 0, 0, 0, 0, len(body)) + name.encode()
        body += struct.pack("<IHHHHHIIIHH", 0x04034B50, *fields) + name.encode() + packed
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(members), len(members), len(directory), len(body), 0)
    path.write_bytes(body + directory + end)
    return path


def found_in(root: Path, known: dict[str, Any] | None = None) -> list[Found]:
    return [each for each in reader.discover(root, known or {}, max_line_bytes=LIMIT) if isinstance(each, Found)]


def test_samples_of_both_forms_are_read_as_expected_and_are_not_new_the_second_time():
    """Real logs; after a change on purpose write `describe` anew and read the difference."""
    assert describe(reader, SAMPLES) == (SAMPLES / "expected.txt").read_text(encoding="utf-8")
    assert seen_again(reader, SAMPLES) == {Unchanged}


def test_every_epoch_of_a_sample_is_a_thread_with_what_it_was_worth(tmp_path: Path):
    messages = [
        {"role": "system", "content": "You…"},
        {"role": "user", "content": "Task 1.", "source": "input"},
        {
            "role": "assistant",
            "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "A."}],
            "tool_calls": [
                {"id": "a", "function": "bash", "arguments": {"cmd": "make"}},
                {"id": "b", "function": "python", "arguments": {"code": "1"}},
            ],
        },
        {"role": "tool", "content": "", "tool_call_id": "b", "error": {"type": "timeout", "message": "Too slow."}},
        {"role": "tool", "content": "done", "tool_call_id": "a", "function": "bash"},
        {"role": "user", "content": "Use tabs.", "source": "operator"},
    ]
    scores = {"match": {"value": "I", "explanation": "Not it."}, "cost": {"value": 0.5}}
    members = {
        "_journal/start.json": {"version": 2, "eval": EVAL},
        "samples/a/b_epoch_1.json": sample(1, *messages, scores=scores, error={"message": "Out of tokens."}),
        "samples/a/b_epoch_2.json": sample(1, *messages[:2], uuid="uuid-1234"),
        "_journal/summaries/1.json": [{"id": "a/b", "epoch": 2, "input": [{"role": "user", "content": "T."}]}],
    }
    archived(tmp_path / "log.eval", members)
    first, second = (each.thread for each in found_in(tmp_path))
    assert Path(first.rollout_path).name == "log.eval#a%2Fb_epoch_1"
    assert (first.title, first.preview) == ("demo: sample 1, epoch 1", "Task 1.")
    assert (first.source, first.git_origin_url, first.git_sha) == ("cli", "git@h:o/r.git", "abc")
    assert (second.title, second.preview) == ("demo: sample a/b, epoch 2", "T.")
    assert len({first.thread_id, second.thread_id}) == 2
    worth = "The scorer `match` gave I (incorrect). Not it.\nThe scorer `cost` gave 0.5.\n"
    worth += "The run of this sample broke off: Out of tokens."
    said, ran, stats = read(reader, Path(first.rollout_path))
    assert said == [
        ("agent", "Task 1."),
        ("assistant", "A."),
        ("user", "Use tabs."),
        ("agent", worth),
    ]
    assert [(each.tool, each.command, each.ok, each.output) for each in ran] == [
        ("bash", "make", None, "done"),
        ("python", None, False, "Too slow."),
    ]
    assert (stats.unknown, stats.dropped) == ({}, {"system prompt": 1})


def test_a_log_that_grows_gives_only_its_new_samples(tmp_path: Path):
    members: dict[str, object] = {"header.json": {"eval": EVAL}, "samples/1_epoch_1.json": sample(1)}
    path = archived(tmp_path / "log.eval", members, method=0)
    known = {each.thread.rollout_path: each.stamp for each in found_in(path)}
    archived(path, {**members, "samples/2_epoch_1.json": sample(2)}, method=0)
    assert [each.thread.preview for each in found_in(path, known)] == ["Task 2."]


def test_attachments_stand_where_they_are_named_as_far_as_they_have_room(tmp_path: Path):
    names = {name: name * 16 for name in "ab"}
    text = f"See attachment://{names['a'] * 2} and attachment://{names['b'] * 2}."
    attachments = {names["a"] * 2: 'the "file"\n', names["b"] * 2: "x" * 300_000}
    path = document(tmp_path, {}, sample(2, {"role": "assistant", "content": text}, attachments=attachments))
    said, _, stats = read(reader, path.with_name(f"{path.name}#1"))
    assert said == [("assistant", 'See the "file"\n and [attachment left out].')]
    assert stats.dropped == {"attachment left out": 1}


def test_what_can_not_be_used_is_broken_alone(tmp_path: Path):
    good = archived(tmp_path / "good.eval", {"header.json": {"eval": EVAL}, "samples/1_epoch_1.json": sample(1)})
    data = good.read_bytes()
    archived(tmp_path / "no_log.eval", {"samples/1_epoch_1.json": sample(1)})
    (tmp_path / "torn.eval").write_bytes(data[:-60])
    (tmp_path / "damaged.eval").write_bytes(data.replace(b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfe"))
    (tmp_path / "huge.eval").write_bytes(data[:-10] + struct.pack("<I", 2**30) + data[-6:])
    (tmp_path / "2026-11-29T12-00-00-00-00_x_y.json").write_text('{"samples":[]}', encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "deflated.eval", "w", zipfile.ZIP_DEFLATED) as log:
        log.writestr("header.json", json.dumps({"eval": EVAL}))
    kinds = [type(each) for each in reader.discover(tmp_path, {}, max_line_bytes=LIMIT)]
    assert (kinds.count(Found), kinds.count(Broken)) == (1, 5)
    for name in ("good.eval", "good.eval#2_epoch_1", "gone.eval#1_epoch_1", "x.json#y"):
        with pytest.raises(RolloutError):
            read(reader, tmp_path / name)


@given(at=st.floats(0, 1), garbage=st.binary(min_size=1, max_size=8), cut=st.booleans())
def test_a_damaged_archive_raises_nothing_else(tmp_path_factory, at: float, garbage: bytes, cut: bool):
    data = next(SAMPLES.glob("*.eval")).read_bytes()
    place = int(len(data) * at)
    path = tmp_path_factory.mktemp("damaged") / "log.eval"
    path.write_bytes(data[:place] if cut else data[:place] + garbage + data[place + len(garbage) :])
    for each in reader.discover(path, {}, max_line_bytes=LIMIT, reading=Reading(chunk_bytes=512)):
        if isinstance(each, Found):
            try:
                read(reader, Path(each.thread.rollout_path))
            except RolloutError:
                continue


def test_a_document_cut_anywhere_keeps_its_whole_samples(tmp_path: Path):
    one = sample(1, {"role": "user", "content": "Task 1.", "source": "input"}, scores={"s": {"value": 1}})
    data = document(tmp_path, one, one).read_bytes()
    path = tmp_path / "log.json"
    counts: list[int] = []
    for at in (*range(0, len(data), 11), len(data)):
        path.write_bytes(data[:at])
        found = found_in(path)
        counts.append(len(found))
        for each in found:
            assert read(reader, Path(each.thread.rollout_path))[0][0] == ("agent", "Task 1.")
    assert counts == sorted(counts)
    assert set(counts) == {0, 1, 2}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_a_sample_of_300_mb_takes_little_memory(tmp_path: Path):
    """Packed it has some 100 KB; nothing but what is read at the time may be unpacked."""
    turn = {"role": "assistant", "content": 'say "a"\n' * 200}
    image = {"role": "user", "content": [{"type": "image", "image": "QUJD" * 20_000_000}]}
    log = archived(
        tmp_path / "log.eval",
        {
            "header.json": {"eval": EVAL},
            "samples/1_epoch_1.json": sample(1, {"role": "user", "content": "Go."}, *[turn] * 110_000, image),
        },
    )
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from stillroom.sessions.agents import inspect_ai as reader\n"
        "(found,) = reader.discover(Path(sys.argv[1]), {}, max_line_bytes=8 << 20)\n"
        "with reader.open_items(Path(found.thread.rollout_path), max_line_bytes=8 << 20) as items:\n"
        "    read = sum(1 for _ in items)\n"
        "peak = Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]\n"
        "print(read, items.stats.bytes >> 20, int(peak) // 1024)\n"
    )
    asked, environ = [sys.executable, "-c", script, str(log)], {"PYTHONPATH": str(DATA.parents[1] / "src")}
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=True, timeout=300, env=environ)
    items, read_mb, peak_mb = map(int, done.stdout.split())
    assert items == 110_001
    assert read_mb > 250
    assert peak_mb < 150
