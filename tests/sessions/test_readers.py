from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from stillroom.errors import RolloutError
from stillroom.homes import HOMES
from stillroom.sessions.discovery import Found
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.testing import sample_rollout

DATA = Path(__file__).parents[1] / "data"


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


#: A session of each client that keeps its sessions in a home of its own, and where a memory may lie beside it.
SESSIONS = {
    "claude-code": ("claude-code/2.1.50", "projects/*/*.jsonl"),
    "gemini-cli": ("gemini-cli/0.61.0-headless", "tmp/*/chats/session-*.jsonl"),
    "qwen-code": ("qwen-code/0.24.4", "projects/*/chats/*.jsonl"),
    "copilot-cli": ("copilot-cli/1.0.102", "session-state/*/events.jsonl"),
}
MEMORIES = ("memory", "memories", "memories/rollout_summaries", "projects/-p/memory", "tmp/p/memory", ".claude-mem")


@pytest.mark.parametrize("agent", ["codex", *SESSIONS])
def test_what_lies_in_the_folder_of_a_memory_is_not_read(agent: str, tmp_path: Path):
    """Not even what looks like a session: another memory system's files are not the agent's."""
    if agent == "codex":
        session = sample_rollout(tmp_path / "sample", number=0, started_at_ms=1_780_000_000_000)
    else:
        folder, pattern = SESSIONS[agent]
        session = next((DATA / folder).glob(pattern))
    for place in MEMORIES:
        (tmp_path / "home" / place).mkdir(parents=True, exist_ok=True)
        shutil.copy(session, tmp_path / "home" / place / session.name)
        (tmp_path / "home" / place / "MEMORY.md").write_text("Remember this.", encoding="utf-8")
    assert list(reader_of(agent).discover(tmp_path / "home", {}, max_line_bytes=1 << 20)) == []
