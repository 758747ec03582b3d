"""The doubles are product: what they promise is tested like everything else."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import msgspec
import pytest

from stillroom.errors import InvalidReply, ModelUnavailable
from stillroom.models import StructuredRequest
from stillroom.sessions.stream import open_items
from stillroom.stopping import Stop
from stillroom.testing import (
    SAMPLE_MEMORY,
    CallTool,
    CallTools,
    LoopbackModel,
    Say,
    ScriptedModel,
    Slowly,
    Status,
    sample_rollout,
)

REQUEST = StructuredRequest(
    system="s", user="u", schema={}, schema_name="n", effort="low", max_output_tokens=1, thread_id=None
)


def post(url: str, body: object) -> bytes:
    request = urllib.request.Request(url, data=msgspec.json.encode(body), headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        read: bytes = response.read()
        return read


def test_replies_come_in_order_and_the_last_one_repeats():
    with LoopbackModel([Say("one"), Say("two")]) as server:
        texts = [
            msgspec.json.decode(post(f"{server.base_url}/responses", {"input": "x"}))["output"][0]["content"][0]["text"]
            for _ in range(3)
        ]
    assert texts == ["one", "two", "two"]
    assert [request.number for request in server.requests] == [1, 2, 3]


@pytest.mark.parametrize("path", ["responses", "chat/completions", "messages"])
@pytest.mark.parametrize("reply", [Say("hello"), CallTools((CallTool("a", {"x": 1}), CallTool("b")))])
def test_every_protocol_streams_when_asked(path: str, reply: Say | CallTools):
    with LoopbackModel(reply) as server:
        streamed = post(f"{server.base_url}/{path}", {"model": "m", "stream": True})
        whole = post(f"{server.base_url}/{path}", {"model": "m"})
    events = [line for line in streamed.splitlines() if line.startswith(b"data: ")]
    assert len(events) >= 3
    for word in (b"hello",) if isinstance(reply, Say) else (b'"a"', b'"b"'):
        assert word in streamed
        assert word in whole


def test_gemini_is_asked_by_its_path_and_streams_by_it():
    body = {"contents": [{"role": "user", "parts": [{"text": "Find "}, {"text": "out."}]}]}
    with LoopbackModel([Say("hello"), CallTools((CallTool("a", {"x": 1}), CallTool("b")))]) as server:
        models = f"{server.base_url.removesuffix('v1')}v1beta/models/m"
        whole = msgspec.json.decode(post(f"{models}:generateContent", body))
        streamed = post(f"{models}:streamGenerateContent?alt=sse", body)
    assert whole["candidates"][0]["content"] == {"role": "model", "parts": [{"text": "hello"}]}
    event = msgspec.json.decode(streamed.removeprefix(b"data: ").strip())
    calls = [part["functionCall"] for part in event["candidates"][0]["content"]["parts"]]
    assert [(call["name"], call["args"]) for call in calls] == [("a", {"x": 1}), ("b", {})]
    assert [request.user_text for request in server.requests] == ["Find out."] * 2


def test_an_open_schema_is_refused_as_a_strict_api_would():
    body = {"text": {"format": {"type": "json_schema", "strict": True, "schema": {"type": "object", "properties": {}}}}}
    with LoopbackModel() as server, pytest.raises(urllib.error.HTTPError) as caught:
        post(f"{server.base_url}/responses", body)
    with caught.value as refused:
        assert refused.code == 400
        assert b"additionalProperties" in refused.read()


def test_a_port_that_is_taken_is_an_error():
    with (
        LoopbackModel() as first,
        pytest.raises(OSError, match="address already in use"),
        LoopbackModel(port=first.port),
    ):
        pass


def test_a_status_carries_its_headers():
    with LoopbackModel(Slowly(0, Status(status=429, headers={"retry-after": "7"}))) as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(f"{server.base_url}/responses", {})
        with caught.value as refused:
            assert refused.headers["retry-after"] == "7"


def test_it_runs_in_its_own_process_until_its_input_is_closed():
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "stillroom.testing", "--answer", "hello", "--times"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert b"hello" in post(f"{url}/responses", {})
        times, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert len(times.split()) == 1


def test_a_scripted_model_answers_and_fails_as_told():
    model = ScriptedModel(["a", InvalidReply("bad"), ModelUnavailable()])
    assert model.complete(REQUEST, stop=Stop()).text == "a"
    with pytest.raises(InvalidReply, match="bad"):
        model.complete(REQUEST, stop=Stop())
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            model.complete(REQUEST, stop=Stop())
    assert len(model.requests) == 4


@pytest.mark.parametrize("size", [1, 61_000, 560_000])
def test_a_sample_session_has_the_size_and_can_be_read(tmp_path: Path, size: int):
    path = sample_rollout(tmp_path, size_bytes=size)
    assert path.stat().st_size == pytest.approx(max(size, 700), rel=0.1)
    with open_items(path, max_line_bytes=2**20) as items:
        kinds = [item.type for item in items]
    assert kinds[0] == "message"
    assert (items.stats.bad_lines, items.stats.unknown, items.stats.memory_mode) == (0, {}, None)


def test_what_it_says_by_itself_is_a_memory():
    assert set(SAMPLE_MEMORY) == {"raw_memory", "rollout_summary", "rollout_slug"}
