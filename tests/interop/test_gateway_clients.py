"""The real Codex CLI and the real Claude Code behind `stillroom budget serve`: told what is left, stopped at the limit,
sub-agents on the same ledger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.interop.claude_client import claude_binary, run_claude
from tests.interop.codex_client import REPOSITORY, CodexServer, write_config
from tests.interop.npm import ClientUnavailable

from stillroom.testing import CallTool, LoopbackModel, RecordedRequest, SendBytes

pytestmark = [pytest.mark.interop, pytest.mark.timeout(200)]


@contextmanager
def _gateway(home: Path, upstream: str, *options: str) -> Iterator[str]:
    """The command as a person starts it; its base URL."""
    command = [sys.executable, "-m", "stillroom", "budget", "serve", "--upstream", upstream, "--home", str(home)]
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    process = subprocess.Popen(
        [*command, "--port", "0", *options], env=environ, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stderr is not None
    try:
        yield process.stderr.readline().split()[2] + "/v1"
    finally:
        process.terminate()
        assert process.wait(10) == 0
        process.stderr.close()


def _status(home: Path) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "stillroom", "budget", "status", "--json", "--home", str(home)]
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=True)
    budgets: list[dict[str, Any]] = json.loads(done.stdout)["budgets"]
    return budgets


def _stream(item: dict[str, Any], *, output_tokens: int) -> SendBytes:
    usage = {"input_tokens": 50, "input_tokens_details": {"cached_tokens": 50}, "output_tokens": output_tokens}
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": [item]}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**response, "usage": {**usage, "total_tokens": 1}}},
    ]
    parts = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
    return SendBytes("".join(parts).encode(), "text/event-stream")


def _say(text: str, *, output_tokens: int) -> SendBytes:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    return _stream(item, output_tokens=output_tokens)


def _call(name: str, arguments: dict[str, str], *, number: int, output_tokens: int, **more: str) -> SendBytes:
    ids = {"id": f"fc_{number}", "call_id": f"call_{number}"}
    item = {"type": "function_call", "status": "completed", "name": name, "arguments": json.dumps(arguments), **ids}
    return _stream({**item, **more}, output_tokens=output_tokens)


def _told(request: RecordedRequest) -> list[str]:
    """The reminders of a request; each must be its last item."""
    items = request.json["input"]
    texts = [part.get("text", "") for item in items for part in item.get("content") or () if isinstance(part, dict)]
    found = [text for text in texts if text.startswith("<rollout_budget>")]
    if found:
        assert (items[-1]["role"], items[-1]["content"][-1]["text"]) == ("developer", found[-1])
    return [text.splitlines()[1] for text in found]


def _left(tokens: int) -> str:
    return f"You have {tokens} weighted tokens left in the shared session token budget."


def test_a_turn_that_would_go_on_for_ever_is_told_what_is_left_and_ends_at_the_limit(
    binary: Path, tmp_path: Path
) -> None:
    home, project = tmp_path / "stillroom", tmp_path / "project"
    project.mkdir()

    def work(request: RecordedRequest) -> SendBytes:
        return _call("exec_command", {"cmd": "true"}, number=request.number, output_tokens=400)

    with LoopbackModel(work) as model:
        with _gateway(home, model.base_url, "--limit", "1000", "--remind-at", "700,300") as base_url:
            write_config(tmp_path / "codex", base_url, memories=False)
            with CodexServer(binary, tmp_path / "codex") as codex:
                thread_id = codex.start_thread(project)
                first = codex.turn(thread_id, "Go on for ever.")["turn"]
                again = codex.turn(thread_id, "Go on.")["turn"]
        assert [_told(request) for request in model.requests] == [[_left(1000)], [_left(600)], [_left(200)]]
        assert all(request.headers["authorization"] == "Bearer dummy" for request in model.requests)
    for turn in (first, again):
        assert turn["status"] == "failed"
        assert "the shared session token budget is used up: 1,200 of 1,000" in turn["error"]["message"]
    (budget,) = _status(home)
    assert (budget["tree_id"], budget["used"], budget["exhausted"]) == (thread_id, 1200, True)


def test_a_sub_agent_spends_from_the_same_budget(binary: Path, tmp_path: Path) -> None:
    home, project = tmp_path / "stillroom", tmp_path / "project"
    project.mkdir()

    def work(request: RecordedRequest) -> SendBytes:
        if request.headers.get("x-codex-parent-thread-id"):
            return _say("I looked around.", output_tokens=700)
        if not any(item["type"] == "function_call" for item in request.json["input"]):
            task = {"task_name": "looker", "message": "Look around."}
            more = {"namespace": "collaboration"}
            return _call("spawn_agent", task, number=1, output_tokens=200, **more)
        calls = sum(item["type"] == "function_call" for item in request.json["input"])
        return _call("wait_agent", {}, number=calls + 1, output_tokens=30, namespace="collaboration")

    with LoopbackModel(work) as model, _gateway(home, model.base_url, "--limit", "900") as base_url:
        write_config(tmp_path / "codex", base_url, memories=False)
        config = tmp_path / "codex" / "config.toml"
        text = config.read_text(encoding="utf-8").replace("[features]", "[features]\nmulti_agent_v2 = true")
        config.write_text(text, encoding="utf-8")
        with CodexServer(binary, tmp_path / "codex") as codex:
            thread_id = codex.start_thread(project)
            turn = codex.turn(thread_id, "Let somebody look around.")["turn"]
        children = [request for request in model.requests if request.headers.get("x-codex-parent-thread-id")]
        assert len(children) == 1
        assert _told(children[0])  # a thread's first request is told
    assert turn["status"] == "failed"
    assert "budget is used up" in turn["error"]["message"]
    (budget,) = _status(home)
    assert budget["tree_id"] == thread_id
    threads = {thread["thread_id"]: thread for thread in budget["threads"]}
    child = threads[children[0].headers["thread-id"]]
    assert (child["used"], child["parent_thread_id"]) == (700, thread_id)
    assert threads[thread_id]["used_with_children"] == budget["used"] >= 900


def test_claude_code_is_told_what_is_left_and_ends_at_the_limit(tmp_path: Path) -> None:
    try:
        binary = claude_binary()
    except ClientUnavailable as error:
        pytest.skip(f"the real Claude Code can't be had: {error}")
    home, project = tmp_path / "stillroom", tmp_path / "project"
    project.mkdir()
    arguments = ("--allowedTools", "Bash", "-p", "Go on for ever.")
    with LoopbackModel(lambda request: CallTool("Bash", {"command": f"echo {request.number}"})) as model:
        with (
            _gateway(home, model.base_url, "--limit", "25000") as base_url,
            pytest.raises(AssertionError, match="API Error: 402 the shared session token budget is used up"),
        ):
            run_claude(binary, tmp_path / "claude", base_url, *arguments, cwd=project)
        # A question is about 12,000 tokens: one and two are under the limit, the third meets it.
        assert 2 <= len(model.requests) <= 3
        told = ["<rollout_budget>" in str(request.json["messages"][-1]["content"][-1]) for request in model.requests]
    assert told[0]
    (budget,) = _status(home)
    assert budget["tree_id"] == model.requests[0].headers["x-claude-code-session-id"]
    assert budget["exhausted"]
