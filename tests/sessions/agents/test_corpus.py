"""What holds of every sample of every agent. An agent that is added without one fails here."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from corpus import CORPUS, Sample, samples_of
from golden import LIMIT

from stillroom.homes import HOMES
from stillroom.sessions.discovery import Found, Unchanged
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.thread import Thread


def found_in(sample: Sample, home: Path) -> list[Found]:
    discovered = list(reader_of(sample.agent).discover(home, {}, max_line_bytes=LIMIT))
    found = [each for each in discovered if isinstance(each, Found)]
    assert found and found == discovered
    return found


def items_of(thread: Thread) -> list[tuple[str, str | None, bytes]]:
    with open_thread(thread, max_line_bytes=LIMIT) as items:
        return [(item.type, item.role, item.raw) for item in items]


@pytest.mark.parametrize("agent", HOMES)
def test_every_agent_has_a_sample(agent: str) -> None:
    assert samples_of(agent)


@pytest.mark.parametrize("sample", CORPUS, ids=str)
def test_a_sample_that_is_read_twice_has_nothing_new(sample: Sample, tmp_path: Path) -> None:
    home = sample.put(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    found = found_in(sample, home)
    names = [each.thread.thread_id for each in found]
    assert len(names) == len(set(names))
    read = [items_of(each.thread) for each in found]
    known = {each.thread.rollout_path: each.stamp for each in found}
    again = list(reader_of(sample.agent).discover(home, known, max_line_bytes=LIMIT))
    assert sorted(each.path for each in again if isinstance(each, Unchanged)) == sorted(known)
    assert len(again) == len(known)
    assert list(reader_of(sample.agent).refreshed(home, [each.thread for each in found])) == []
    assert [items_of(each.thread) for each in found] == read
    assert named_alone(sample, found) == {each.thread.thread_id: each.thread for each in found}
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def named_alone(sample: Sample, found: list[Found]) -> dict[str, Thread]:
    """What is found where each file is named itself, as an entry of `[[sources]]` or by `stillroom ingest`."""
    files = {each.thread.rollout_path.partition("#")[0] for each in found}
    discovered = [
        each for file in files for each in reader_of(sample.agent).discover(Path(file), {}, max_line_bytes=LIMIT)
    ]
    return {each.thread.thread_id: each.thread for each in discovered if isinstance(each, Found)}


#: The files of this one hold the same conversation, each in a layout of its own.
@pytest.mark.parametrize("sample", [each for each in CORPUS if each.agent != "chat-messages"], ids=str)
def test_no_call_and_no_result_of_a_home_is_read_twice(sample: Sample, tmp_path: Path) -> None:
    """Forks, resumed copies, snapshots and mirrored events repeat them; providers make their ids unique."""
    found = found_in(sample, sample.put(tmp_path))
    items = (item for each in found for item in items_of(each.thread))
    calls = Counter((kind, json.loads(raw)["call_id"]) for kind, _, raw in items if b'"call_id"' in raw)
    assert calls.total() == len(calls)
