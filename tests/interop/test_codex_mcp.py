"""The real Codex CLI with our MCP server: it lists the tools, calls them, and reads what a session is told."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.interop.codex_client import REPOSITORY, CodexServer, write_config

from stillroom.testing import LoopbackModel, RecordedRequest, Reply, Say
from stillroom.testing.script import SendBytes

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]

WISH = "Always run the checks of this project with `make verify`; never call pytest directly."
NAMESPACE = "mcp__stillroom"
URI = "stillroom://memory/instructions"


def _environment(home: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY / "src"),
        "HOME": str(home.parent),
        "STILLROOM_HOME": str(home),
    }


def _remember(binary: Path, codex_home: Path, project: Path, home: Path) -> None:
    """One session in the project, and a pass a week later."""
    with LoopbackModel(Say("I will.")) as model:
        write_config(codex_home, model.base_url, memories=False)
        with CodexServer(binary, codex_home) as codex:
            codex.turn(codex.start_thread(project), WISH)
    home.mkdir()
    source = f'memories.default_sources = false\n[[sources]]\nformat = "codex"\nroot = {json.dumps(str(codex_home))}\n'
    (home / "config.toml").write_text(source, encoding="utf-8")
    (rollout,) = codex_home.glob("sessions/**/*.jsonl")
    week_later = int(rollout.stat().st_mtime) + 7 * 86_400
    subprocess.run(
        [sys.executable, "-m", "stillroom", "run", "--now", str(week_later)],
        env=_environment(home),
        capture_output=True,
        timeout=120,
        check=True,
    )


def _item(item: dict[str, Any]) -> Reply:
    """A reply of one item, of a kind that the loopback model has no words for."""
    response = {"id": "r", "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}
    events = [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]
    body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return SendBytes(body.encode(), "text/event-stream")


def _call(number: int, name: str, namespace: str | None = NAMESPACE, **arguments: object) -> dict[str, Any]:
    call = {"type": "function_call", "call_id": f"c{number}", "name": name, "arguments": json.dumps(arguments)}
    return call | ({"namespace": namespace} if namespace else {})


def _script(calls: list[dict[str, Any]]) -> Callable[[RecordedRequest], Reply]:
    left: Iterator[dict[str, Any]] = iter(calls)

    def reply(request: RecordedRequest) -> Reply:
        call = next(left, None)
        return Say("Done.") if call is None else _item(call)

    return reply


def _outputs(request: RecordedRequest) -> dict[str, Any]:
    """What each call of the conversation was answered."""
    return {
        item["call_id"]: item.get("output", item.get("tools"))
        for item in request.json["input"]
        if item["type"] in ("function_call_output", "tool_search_output")
    }


@contextmanager
def _over_http(home: Path) -> Iterator[str]:
    """`stillroom mcp --http` in a process of its own; its address."""
    command = [sys.executable, "-m", "stillroom", "mcp", "--http", "--port", "0"]
    with subprocess.Popen(command, env=_environment(home), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            yield next(line.split()[-1] for line in process.stderr if line.startswith("listening on "))
        finally:
            process.terminate()
            process.communicate(timeout=30)


def test_codex_calls_the_server_over_http_with_the_token(binary: Path, tmp_path: Path) -> None:
    codex_home, project, home = tmp_path / "codex", tmp_path / "project", tmp_path / "stillroom"
    project.mkdir()
    (home / "memories").mkdir(parents=True)
    (home / "memories" / "MEMORY.md").write_text("# Task Group: app\n", encoding="utf-8")
    with _over_http(home) as url, LoopbackModel(_script([_call(1, "list")])) as model:
        write_config(codex_home, model.base_url, memories=False)
        with (codex_home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(f'[mcp_servers.stillroom]\nurl = "{url}"\nbearer_token_env_var = "STILLROOM_TOKEN"\n')
        token = (home / "mcp-token").read_text(encoding="utf-8").strip()
        with CodexServer(binary, codex_home, environ={"STILLROOM_TOKEN": token}) as codex:
            thread_id = codex.start_thread(project)
            codex.wait_for("mcpServer/startupStatus/updated", name="stillroom", status="ready")
            codex.turn(thread_id, "What do you know of this project?")
        outputs = _outputs(model.requests[-1])
    assert '"path":"MEMORY.md"' in outputs["c1"]


def test_codex_lists_our_tools_calls_them_and_reads_the_instructions(binary: Path, tmp_path: Path) -> None:
    codex_home, project, home = tmp_path / "codex", tmp_path / "project", tmp_path / "stillroom"
    project.mkdir()
    _remember(binary, codex_home, project, home)
    search = {"type": "tool_search_call", "execution": "client", "call_id": "c0", "status": "completed"}
    note = "2026-11-30T08-00-00-tabs.md"
    calls = [
        {**search, "arguments": {"query": "stillroom memory search read list note", "limit": 8}},
        _call(1, "list"),
        _call(2, "search", queries=["make verify"], path="MEMORY.md"),
        _call(3, "read", path="../config.toml"),
        _call(4, "add_ad_hoc_note", filename=note, note="Prefer tabs."),
        _call(5, "read_mcp_resource", None, server="stillroom", uri=URI),
    ]
    with LoopbackModel(_script(calls)) as model:
        write_config(codex_home, model.base_url, memories=False)
        with (codex_home / "config.toml").open("a", encoding="utf-8") as config:
            config.write(
                "[mcp_servers.stillroom]\n"
                f"command = {json.dumps(sys.executable)}\n"
                f'args = ["-m", "stillroom", "mcp", "--home", {json.dumps(str(home))}]\n'
                f"env = {{ PYTHONPATH = {json.dumps(str(REPOSITORY / 'src'))} }}\n"
                "startup_timeout_sec = 60\n"
            )
        with CodexServer(binary, codex_home) as codex:
            thread_id = codex.start_thread(project)
            codex.wait_for("mcpServer/startupStatus/updated", name="stillroom", status="ready")
            codex.turn(thread_id, "What do you know of this project?")
        outputs = _outputs(model.requests[-1])

    (namespace,) = outputs["c0"]
    assert namespace["name"] == NAMESPACE
    assert {"list", "read", "search", "add_ad_hoc_note"} <= {tool["name"] for tool in namespace["tools"]}
    assert '"path":"MEMORY.md"' in outputs["c1"]
    assert "make verify" in outputs["c2"]
    assert "no path inside the memory folder" in json.dumps(outputs["c3"])
    kept = (home / "memories" / "extensions/ad_hoc/notes" / note).read_text(encoding="utf-8")
    assert kept == f"in project ({project}): Prefer tabs."  # an agent's note is for its project alone
    assert "<stillroom-memory>" in outputs["c5"]
    assert "make verify" in outputs["c5"], "the server was not started in the session's folder"
