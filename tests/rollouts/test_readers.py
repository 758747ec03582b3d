from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from stillroom.errors import RolloutError
from stillroom.homes import HOMES
from stillroom.rollouts.found import Found
from stillroom.rollouts.readers import open_thread, reader_of
from stillroom.testing import sample_rollout


def test_a_thread_is_read_by_the_reader_of_its_agent(tmp_path: Path):
    sample_rollout(tmp_path, number=0, started_at_ms=1_780_000_000_000)
    (discovery,) = reader_of("codex").discover(tmp_path, {}, max_line_bytes=1 << 20)
    assert isinstance(discovery, Found)
    with open_thread(discovery.thread, max_line_bytes=1 << 20) as items:
        assert [item.type for item in items][:1] == ["message"]
    stranger = msgspec.structs.replace(discovery.thread, agent="nobody")
    with pytest.raises(RolloutError, match="`nobody`"):
        open_thread(stranger, max_line_bytes=1 << 20)


def test_every_reader_stands_under_its_own_name():
    assert [reader_of(agent).AGENT for agent in HOMES] == list(HOMES)
