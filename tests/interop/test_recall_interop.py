"""The whole round with real agents: a session, a pass, a new session that is told and cites, a pass that counts.

The agents are installed by `stillroom init` alone. Their model is a loopback server: no key is needed, nothing leaves
the machine.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.interop.claude_client import claude_binary, run_claude
from tests.interop.codex_client import REPOSITORY, CodexServer, codex_binary, write_config
from tests.interop.npm import ClientUnavailable

from stillroom.testing import CallTool, LoopbackModel, RecordedRequest, Reply, Say

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

WISH = "Please run the checks with `make verify`; never call pytest directly."
DAY = 86_400


class Machine:
    """A person's machine: a home for the agents, one for Stillroom, a project."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.home = path / "stillroom"
        self.codex = path / "codex"
        self.claude = path / "claude"
        self.project = path / "project"
        self.project.mkdir()
        (self.project / "Makefile").write_text("verify:\n\t@echo 3 checks passed\n", encoding="utf-8")
        for command in (["init", "-q", "-b", "trunk"], ["add", "-A"], ["commit", "-q", "-m", "Begin"]):
            who = ["-c", "user.name=dev", "-c", "user.email=dev@example.com"]
            subprocess.run(["git", *who, *command], cwd=self.project, check=True, timeout=30)

    @property
    def environ(self) -> Mapping[str, str]:
        """What every program here is given; the hook as well, by the agent that runs it."""
        return {
            "PYTHONPATH": str(REPOSITORY / "src"),
            "STILLROOM_HOME": str(self.home),
            "CODEX_HOME": str(self.codex),
            "CLAUDE_CONFIG_DIR": str(self.claude),
        }

    def stillroom(self, *arguments: str) -> str:
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.path), **self.environ}
        command = [sys.executable, "-m", "stillroom", *arguments]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    def distil(self, *, days_later: int) -> None:
        self.stillroom("run", "--now", str(int(time.time()) + days_later * DAY))
        # The hook would start a pass of its own beside the test.
        (self.home / "pass.stamp").touch()

    def used(self, thread_id: str) -> int:
        with sqlite3.connect(self.home / "state.sqlite3") as db:
            query = "SELECT coalesce(usage_count, 0) FROM stage1_outputs WHERE thread_id = ?"
            (count,) = db.execute(query, (thread_id,)).fetchone()
        return int(count)

    def given(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.home / "sessions.jsonl").read_text().splitlines()]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def _citing(thread_id: str) -> Say:
    return Say(
        "I ran `make verify`, as you like it.\n"
        "<oai-mem-citation>\n<citation_entries>\nMEMORY.md:1-1|note=[how to run the checks]\n</citation_entries>\n"
        f"<rollout_ids>\n{thread_id}\n</rollout_ids>\n</oai-mem-citation>"
    )


def _hook_entry(settings: Path) -> str:
    command: str = json.loads(settings.read_text())["hooks"]["SessionStart"][0]["hooks"][0]["command"]
    return command


def test_codex_is_told_what_an_earlier_session_learned_and_its_citation_counts(machine: Machine) -> None:
    try:
        binary = codex_binary()
    except ClientUnavailable as error:
        pytest.skip(f"the real Codex CLI can't be had: {error}")

    def reply(request: RecordedRequest) -> Reply:
        items = request.json["input"]
        if WISH not in request.user_text:
            return _citing(learned)
        if any(item.get("type") == "function_call_output" for item in items):
            return Say("`make verify` passes: 3 checks.")
        return CallTool("exec_command", {"cmd": "make verify"})

    with LoopbackModel(reply) as model:
        write_config(machine.codex, model.base_url, memories=False)
        with CodexServer(binary, machine.codex, environ=machine.environ) as codex:
            learned = codex.start_thread(machine.project)
            codex.turn(learned, WISH)
        machine.distil(days_later=1)
        before = (machine.codex / "config.toml").read_text()
        machine.stillroom("init", "--agent", "codex")
        assert "stillroom" in _hook_entry(machine.codex / "hooks.json")

        with CodexServer(binary, machine.codex, environ=machine.environ) as codex:
            codex.turn(codex.start_thread(machine.project), "Good morning.")
            assert not _developer_texts(model.requests[-1], "<stillroom-memory>"), "Codex asks before it runs a hook"
            codex.trust_hooks(machine.project)
            told = codex.start_thread(machine.project)
            codex.turn(told, "Run the checks.")
            (text,) = _developer_texts(model.requests[-1], "<stillroom-memory>")
            codex.request("thread/compact/start", {"threadId": told})
            codex.wait_for("turn/completed", threadId=told)
            codex.turn(told, "And once more?")
            assert len(_developer_texts(model.requests[-1], "<stillroom-memory>")) == 1, "compaction took it away"
    assert "make verify" in text and text.rstrip().endswith("</stillroom-memory>")
    assert "## User preferences (MEMORY.md:" in text and "## Tasks (MEMORY.md:" in text
    assert [(entry["thread_id"], entry["source"]) for entry in machine.given()] == [
        (told, "startup"),
        (told, "compact"),
    ]

    assert machine.used(learned) == 0
    machine.distil(days_later=2)
    cited = machine.used(learned)
    assert cited >= 3, "each answer of the two later sessions cites it"
    machine.distil(days_later=3)
    assert machine.used(learned) == cited, "a message counts once"

    machine.stillroom("uninit", "--agent", "codex")
    assert not (machine.codex / "hooks.json").exists()
    assert (machine.codex / "config.toml").read_text().startswith(before)
    assert "mcp_servers" not in (machine.codex / "config.toml").read_text()


def test_claude_code_is_told_what_an_earlier_session_learned_and_its_citation_counts(machine: Machine) -> None:
    try:
        binary = claude_binary()
    except ClientUnavailable as error:
        pytest.skip(f"the real Claude Code can't be had: {error}")

    def coder(request: RecordedRequest) -> Reply:
        if "tool_result" in json.dumps(request.json["messages"]):
            return Say("`make verify` passes: 3 checks.")
        return CallTool("Bash", {"command": "make verify", "description": "Run the checks"})

    def claude(model: LoopbackModel, *arguments: str) -> str:
        return run_claude(
            binary, machine.claude, model.base_url, *arguments, cwd=machine.project, environ=machine.environ
        )

    with LoopbackModel(coder) as model:
        claude(model, "-p", "--allowedTools", "Bash(make verify)", "--", WISH)
    (recorded,) = (machine.claude / "projects").glob("*/*.jsonl")
    learned = recorded.stem
    machine.distil(days_later=1)
    machine.stillroom("init", "--agent", "claude-code")
    assert "stillroom" in _hook_entry(machine.claude / "settings.json")

    def reader(request: RecordedRequest) -> Reply:
        if "tool_result" in json.dumps(request.json["messages"]):
            return _citing(learned)
        return CallTool("Read", {"file_path": str(machine.home / "memories" / "MEMORY.md")})

    with LoopbackModel(reader) as model:
        claude(model, "-p", "Run the checks, please.")
        requests = [json.dumps(request.json) for request in model.requests if request.protocol == "messages"]
        told = str(machine.given()[0]["thread_id"])
        claude(model, "-p", "--resume", told, "/compact")
        claude(model, "-p", "--resume", told, "And once more?")
        last = json.dumps(model.requests[-1].json)
    assert requests[0].count("</stillroom-memory>") == 1 and "make verify" in requests[0]
    assert "## User preferences (MEMORY.md:" in requests[0]
    assert "haven't granted" not in requests[-1] and "# Task Group" in requests[-1], "the folder may be read"
    assert last.count("</stillroom-memory>") == 1, "compaction took it away; a resumed session still has it"
    assert [(entry["agent"], entry["thread_id"], entry["source"]) for entry in machine.given()] == [
        ("claude-code", told, "startup"),
        ("claude-code", told, "compact"),
    ]

    machine.distil(days_later=2)  # the end of each session has started a pass already
    assert machine.used(learned) >= 1
    machine.stillroom("uninit")
    assert not (machine.claude / "settings.json").exists()


def _developer_texts(request: RecordedRequest, mark: str) -> list[str]:
    messages = [item for item in request.json["input"] if item.get("role") == "developer"]
    texts = [part.get("text", "") for message in messages for part in message["content"]]
    return [text for text in texts if mark in text]
