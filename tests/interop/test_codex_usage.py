"""What the real Codex CLI records of an answer that cites memory, and of its forks, is counted once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interop.codex_client import CodexServer, write_config
from tests.recall.usage_home import REMEMBERED, UsageHome, citing

from stillroom.testing import CallTool, LoopbackModel, RecordedRequest, Reply, Say

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]


def _reader(request: RecordedRequest) -> Reply:
    """An agent that reads the memory, then answers and cites it."""
    items = request.json["input"]
    last = next(at for at, item in reversed(list(enumerate(items))) if item.get("role") == "user")
    if any(item.get("type") == "function_call_output" for item in items[last:]):
        return Say(citing(REMEMBERED, words="Run `make check`.")["content"][0]["text"])
    return CallTool("exec_command", {"cmd": "rg -n make ~/.stillroom/memories/MEMORY.md | head -n 5"})


@pytest.mark.parametrize("history", ["legacy", "paginated"])
def test_each_answer_of_a_session_and_its_fork_is_one_use(tmp_path: Path, binary: Path, history: str) -> None:
    home, project = UsageHome(tmp_path), tmp_path / "project"
    home.remember()
    home.count()
    project.mkdir()
    with LoopbackModel(_reader) as model:
        write_config(home.codex, model.base_url, memories=False)
        with CodexServer(binary, home.codex) as codex:
            begun = codex.request("thread/start", {"cwd": str(project), "historyMode": history})
            thread_id = begun["thread"]["id"]
            codex.turn(thread_id, "How are the tests run?")
            codex.turn(thread_id, "And how again?")
            assert home.count().counted == 2
            fork = codex.request("thread/fork", {"threadId": thread_id})["thread"]["id"]
            codex.turn(fork, "How are they run in a fork?")
    report = home.count()
    assert (report.citing, report.counted, report.reads) == (1, 1, {"memory_md": 1})
    assert home.usage()[0] == 3
    assert home.count().searched == 0
    home.store.close()
