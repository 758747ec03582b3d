from __future__ import annotations

from collections import Counter
from pathlib import Path

from claude_code_golden import SAMPLES
from golden import LIMIT
from hypothesis import given
from hypothesis import strategies as st

from stillroom.config import Reading
from stillroom.sessions.agents.claude_code.reader import discover, open_items
from stillroom.sessions.item import Item

FILES = sorted(SAMPLES.rglob("*.jsonl"))
NAME = "11111111-2222-4333-8444-555555555555.jsonl"
#: Pieces so small that every sample has many.
SMALL = Reading(batch_bytes=4096, chunk_bytes=512, head_bytes=4096, tail_window_bytes=2048)
samples = st.sampled_from([path for path in FILES if path.stat().st_size > 3000])


def items(folder: Path, data: bytes, name: str = NAME) -> list[Item]:
    path = folder / "projects" / "-w" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for discovery in discover(folder, {}, max_line_bytes=LIMIT, reading=SMALL):
        assert discovery is not None
    with open_items(path, max_line_bytes=LIMIT, reading=SMALL) as stream:
        read = list(stream) if data.strip() else []
    if data.strip():
        with open_items(path, max_line_bytes=LIMIT, reading=SMALL) as stream:
            assert b",".join(stream.texts()) == b",".join(item.raw for item in read)
    return read


def said(read: list[Item]) -> Counter[bytes]:
    # What is superseded is only known of the whole file.
    return Counter(item.raw for item in read if b"superseded_message" not in item.raw)


@given(first=samples, second=samples)
def test_two_files_in_one_say_nothing_twice_and_lose_nothing(tmp_path_factory, first: Path, second: Path):
    folder = tmp_path_factory.mktemp("both")
    alone = items(folder, first.read_bytes()), items(folder, second.read_bytes())
    both = items(folder, first.read_bytes() + second.read_bytes())
    assert len(both) == len({(item.raw, item.timestamp_ms, item.line_no) for item in both})
    if first == second:
        assert [item.raw for item in both] == [item.raw for item in alone[0]]
    assert set(said(alone[0])) | set(said(alone[1])) <= set(said(both))
