"""The real Codex CLI and Stillroom on one machine: each reads what the other wrote.

Needs npm, and its registry once: the CLI is kept under `.cache/npm`. Its model is a loopback server: no key is needed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.interop.codex_client import REPOSITORY, CodexServer, write_config

from stillroom.sessions.agents.codex import discover
from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.stream import open_items
from stillroom.testing import CallTool, LoopbackModel, RecordedRequest, Reply, Say
from stillroom.thread import Thread

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

MAX_LINE_BYTES = 8 * 1024 * 1024
WISH = "Please run the checks with `make verify`; never call pytest directly."


def _coder(request: RecordedRequest) -> Reply:
    """A coding agent of two steps: run the project's check, then say so."""
    items = request.json["input"]
    last = next(i for i, item in reversed(list(enumerate(items))) if item.get("role") == "user")
    if any(item.get("type") == "function_call_output" for item in items[last:]):
        return Say("`make verify` passes: 3 checks.")
    return CallTool("exec_command", {"cmd": "make verify"})


def _project(path: Path) -> Path:
    path.mkdir()
    (path / "Makefile").write_text("verify:\n\t@echo 3 checks passed\n", encoding="utf-8")
    for command in (["init", "-q", "-b", "trunk"], ["add", "-A"], ["commit", "-q", "-m", "Begin"]):
        who = ["-c", "user.name=dev", "-c", "user.email=dev@example.com"]
        subprocess.run(["git", *who, *command], cwd=path, check=True, timeout=30)
    return path


def _record(binary: Path, tmp_path: Path, *words: str) -> tuple[Path, Path, str]:
    """A session of the real CLI with one turn a word: its CODEX_HOME, the project, the thread."""
    codex_home, project = tmp_path / "codex", _project(tmp_path / "project")
    with LoopbackModel(_coder) as model:
        write_config(codex_home, model.base_url, memories=False)
        with CodexServer(binary, codex_home) as codex:
            thread_id = codex.start_thread(project)
            for said in words:
                codex.turn(thread_id, said)
    return codex_home, project, thread_id


def _thread(codex_home: Path) -> Thread:
    (found,) = [found for found in discover(codex_home, {}) if isinstance(found, Found)]
    return found.thread


def _stillroom(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY / "src"),
        "HOME": str(home.parent),
        "STILLROOM_HOME": str(home),
    }
    command = [sys.executable, "-m", "stillroom", *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)


def test_a_thread_of_the_real_codex_is_registered_with_what_its_database_knows(binary: Path, tmp_path: Path) -> None:
    codex_home, project, thread_id = _record(binary, tmp_path, WISH)
    assert list(codex_home.glob("state_*.sqlite"))
    thread = _thread(codex_home)
    assert (thread.thread_id, thread.agent, thread.source) == (thread_id, "codex", "vscode")
    assert (thread.cwd, thread.git_branch, thread.memory_mode) == (str(project), "trunk", "enabled")
    assert thread.preview == WISH
    assert thread.title
    assert not thread.archived
    assert Path(thread.rollout_path).is_file()


def test_a_rollout_of_the_real_codex_reads_as_what_happened(binary: Path, tmp_path: Path) -> None:
    codex_home, _, _ = _record(binary, tmp_path, WISH)
    with open_items(Path(_thread(codex_home).rollout_path), max_line_bytes=MAX_LINE_BYTES) as items:
        events = read_events(items)
    assert [event.text for event in events if isinstance(event, Said) and event.who == "user"] == [WISH]
    (ran,) = [event for event in events if isinstance(event, Ran)]
    assert (ran.command, ran.exit_code, ran.ok) == ("make verify", 0, True)
    assert "3 checks passed" in ran.output
    last = [event for event in events if isinstance(event, Said) and event.who == "assistant"][-1]
    assert (last.text, last.final) == ("`make verify` passes: 3 checks.", True)


def test_a_thread_whose_memory_is_switched_off_in_codex_is_not_enabled(binary: Path, tmp_path: Path) -> None:
    codex_home, project = tmp_path / "codex", _project(tmp_path / "project")
    with LoopbackModel(_coder) as model:
        write_config(codex_home, model.base_url, memories=True)
        with CodexServer(binary, codex_home) as codex:
            thread_id = codex.start_thread(project)
            codex.turn(thread_id, WISH)
            codex.request("thread/memoryMode/set", {"threadId": thread_id, "mode": "disabled"})
    assert _thread(codex_home).memory_mode == "disabled"


def test_a_fresh_codex_session_is_given_the_folder_that_we_wrote(binary: Path, tmp_path: Path) -> None:
    codex_home, project, _ = _record(binary, tmp_path, WISH)
    week_later = _thread(codex_home).updated_at + 7 * 86_400
    folder = codex_home / "memories"
    home = tmp_path / "stillroom"
    home.mkdir()
    source = f'memories.default_sources = false\n[[sources]]\nformat = "codex"\nroot = {json.dumps(str(codex_home))}\n'
    (home / "config.toml").write_text(source, encoding="utf-8")
    done = _stillroom("run", "--root", str(folder), "--now", str(week_later), "--json", home=home)
    assert done.returncode == 0, done.stderr
    summary = (folder / "memory_summary.md").read_text(encoding="utf-8")
    assert summary.splitlines()[0] == "v1"
    assert "make verify" in summary

    with LoopbackModel(Say("Hello.")) as model:
        write_config(codex_home, model.base_url, memories=True, keys={"generate_memories": False})
        with CodexServer(binary, codex_home) as codex:
            codex.turn(codex.start_thread(project), "Good morning.")
        sent = [text for request in model.requests for text in _texts(request)]
    # The header line is for programs; a session is given what follows.
    rule = next(line for line in summary.splitlines() if "make verify" in line)
    assert any(rule in text for text in sent), "the summary is in no request"


def _texts(request: RecordedRequest) -> list[str]:
    contents = [item.get("content") or [] for item in request.json["input"] if item.get("type") == "message"]
    return [part.get("text", "") for content in contents for part in content if isinstance(part, dict)]
