from __future__ import annotations

import json
from pathlib import Path

import pytest
from claude_code_session import FILE, LIMIT, line, says, user

from stillroom.sessions.agents.claude_code.reader import discover
from stillroom.sessions.discovery import Broken, Discovery, Found, Unchanged
from stillroom.thread import FileStamp, Thread

ENQUEUE = b'{"type":"queue-operation","operation":"enqueue","content":"x","sessionId":"s"}\n'


def put(home: Path, *lines: bytes, name: str = FILE) -> Path:
    path = home / "projects" / "-w" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path


def look(home: Path, known: dict[str, FileStamp] | None = None) -> list[Discovery]:
    return list(discover(home, known or {}, max_line_bytes=LIMIT))


def thread(home: Path) -> Thread:
    (found,) = look(home)
    assert isinstance(found, Found)
    return found.thread


@pytest.mark.parametrize(
    ("entrypoint", "source"),
    [
        ("cli", "cli"),
        ("claude-vscode", "vscode"),
        ("sdk-cli", "exec"),
        ("sdk-py", "exec"),
        ("sdk-ts", "exec"),
        ("mcp", "mcp"),
        (None, "cli"),
    ],
)
def test_how_a_session_was_started_is_told_in_codexs_words(tmp_path: Path, entrypoint: str | None, source: str):
    put(tmp_path, user(1, "Fix it.", entrypoint=entrypoint))
    assert thread(tmp_path).source == source


def test_a_version_without_entrypoints_queues_every_prompt_of_a_script(tmp_path: Path):
    put(tmp_path, ENQUEUE, user(1, "Fix it.", entrypoint=None))
    assert thread(tmp_path).source == "exec"
    put(tmp_path, user(1, "Fix it.", entrypoint=None), ENQUEUE)
    assert thread(tmp_path).source == "cli"


def test_a_scripts_session_that_a_person_resumed_is_the_persons(tmp_path: Path):
    put(tmp_path, user(1, "Fix it.", entrypoint="sdk-cli"), user(2, "And this.", entrypoint="cli"))
    assert thread(tmp_path).source == "cli"


def test_a_grown_session_is_found_again_with_its_new_time_and_name(tmp_path: Path):
    path = put(tmp_path, user(1, "Fix it."))
    (first,) = look(tmp_path)
    assert isinstance(first, Found)
    known = {str(path): first.stamp}
    assert look(tmp_path, known) == [Unchanged(str(path))]
    title = json.dumps({"type": "custom-title", "customTitle": "mine", "sessionId": "s"}).encode() + b"\n"
    more = says(2, "x" * 300_000) + title + line("assistant", 50)
    path.write_bytes(path.read_bytes() + more + b'{"torn":')
    (again,) = look(tmp_path, known)
    assert isinstance(again, Found)
    assert (again.thread.title, again.thread.preview) == ("mine", "Fix it.")
    assert again.thread.updated_at_ms - first.thread.updated_at_ms == 49_000
    assert again.stamp.offset == path.stat().st_size - len(b'{"torn":')


def test_files_that_are_no_sessions_are_left_alone(tmp_path: Path):
    sid = FILE.removesuffix(".jsonl")
    put(tmp_path, user(1, "Fix it."))
    for name in ("memory/MEMORY.md", "notes.jsonl", f"{sid}/subagents/workflows/wf_1/journal.jsonl", "a.txt"):
        path = tmp_path / "projects" / "-w" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}\n")
    (tmp_path / "projects" / "-w" / "loop").symlink_to(tmp_path / "projects")
    (tmp_path / "projects" / "file").write_bytes(b"")
    (tmp_path / "history.jsonl").write_bytes(b"{}\n")
    assert thread(tmp_path).preview == "Fix it."


def test_sub_agents_of_workflows_are_threads_under_their_session(tmp_path: Path):
    sid = FILE.removesuffix(".jsonl")
    put(tmp_path, user(1, "Go.", isSidechain=True), name=f"{sid}/subagents/workflows/wf_1/agent-a1.jsonl")
    found = thread(tmp_path)
    assert (found.thread_id, found.parent_thread_id) == (f"{sid}:agent-a1", sid)
    assert (found.source, found.preview) == ('{"subagent":"other"}', "")


def test_a_description_beside_a_sub_agents_file_may_hold_anything(tmp_path: Path):
    path = put(
        tmp_path, user(1, "Go.", isSidechain=True), name=f"{FILE.removesuffix('.jsonl')}/subagents/agent-a1.jsonl"
    )
    path.with_suffix(".meta.json").write_bytes(b'{"x":' * 20_000)
    assert thread(tmp_path).source == '{"subagent":"other"}'


def test_a_broken_file_fails_alone(tmp_path: Path):
    put(tmp_path, b"\0\1 no session\n", name="99999999-2222-4333-8444-555555555555.jsonl")
    put(tmp_path, b"", name="88888888-2222-4333-8444-555555555555.jsonl")
    put(tmp_path, user(1, "Fix it."))
    kinds = sorted(type(discovery).__name__ for discovery in look(tmp_path))
    assert kinds == ["Broken", "Broken", "Found"]
    assert all(discovery.reason for discovery in look(tmp_path) if isinstance(discovery, Broken))


def test_a_home_that_is_not_there_has_no_sessions(tmp_path: Path):
    assert look(tmp_path / "nowhere") == []
