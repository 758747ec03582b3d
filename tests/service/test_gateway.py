"""What a client meets behind the gateway: its model, reminders, and an end."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx2
import pytest
from gateway_thread import CONFIG, chunked, gateway, post, raw_upstream

from stillroom.budget import RolloutBudgetConfig
from stillroom.clock import SystemClock
from stillroom.config import GATEWAY, DatabaseLimits
from stillroom.service.gateway import Gateway
from stillroom.service.ledgers import Ledgers
from stillroom.service.naming import Named
from stillroom.service.upstream import Upstream
from stillroom.store.budgets import shared_budgets
from stillroom.testing import LoopbackModel, RecordedRequest, Say, SendBytes

RESPONSES = {"model": "m", "stream": True, "input": [{"type": "message", "role": "user", "content": "hello"}]}
CHAT = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
MESSAGES = {"model": "m", "stream": True, "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
PATHS = {"responses": "/v1/responses", "chat": "/v1/chat/completions", "messages": "/v1/messages"}
BODIES = {"responses": RESPONSES, "chat": CHAT, "messages": MESSAGES}
SMALL = RolloutBudgetConfig(limit_tokens=100, reminder_at_remaining_tokens=())
every_dialect = pytest.mark.parametrize("dialect", ["responses", "chat", "messages"])


@every_dialect
@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_comes_byte_for_byte_and_is_charged(tmp_path: Path, dialect: str, stream: bool) -> None:
    body = {**BODIES[dialect], "stream": stream}
    if dialect == "chat" and stream:
        body["stream_options"] = {"include_usage": True}
    quiet = RolloutBudgetConfig(limit_tokens=10**6, reminder_at_remaining_tokens=(), reminder_at_context_start=False)
    with LoopbackModel(Say("hello there")) as model:
        direct = post(model.port, PATHS[dialect], body)
        with gateway(tmp_path, model.base_url, quiet) as served:
            through = post(served.port, PATHS[dialect], body)
            assert through.body.replace(b"_2", b"_1") == direct.body
            assert through.headers["content-type"] == direct.headers["content-type"]
            used = served.used("nameless")
        assert model.requests[1].body == model.requests[0].body
    usage = (len(json.dumps(body)) // 4, len("hello there") // 4 + 3)
    assert used["main"] == pytest.approx(sum(usage), abs=12)
    assert served.told == []


@every_dialect
def test_a_reminder_is_the_last_item_and_changes_nothing_before_it(tmp_path: Path, dialect: str) -> None:
    with LoopbackModel(Say("ok")) as model, gateway(tmp_path, model.base_url) as served:
        for _ in range(2):
            assert post(served.port, PATHS[dialect], BODIES[dialect]).status == 200
        first, second = (request.json for request in model.requests)
    member = "input" if dialect == "responses" else "messages"
    sent = BODIES[dialect][member]
    told = (
        "<rollout_budget>\nYou have 100000 weighted tokens left in the shared session token budget.\n</rollout_budget>"
    )
    if dialect == "responses":
        item = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": told}]}
        assert first[member] == [*sent, item]
    elif dialect == "chat":
        assert first[member] == [*sent, {"role": "system", "content": told}]
    else:
        content = [{"type": "text", "text": "hello"}, {"type": "text", "text": told}]
        assert first[member] == [{"role": "user", "content": content}]
    assert second[member] == sent  # told once


def test_a_reminder_that_did_not_arrive_is_sent_again(tmp_path: Path) -> None:
    replies = iter([SendBytes(b"<html>", "text/html"), Say("ok")])
    with LoopbackModel(lambda request: next(replies)) as model, gateway(tmp_path, model.base_url) as served:
        assert post(served.port, PATHS["responses"], RESPONSES).status == 502
        assert post(served.port, PATHS["responses"], RESPONSES).status == 200
        assert all(b"rollout_budget" in request.body for request in model.requests)


@every_dialect
def test_an_exhausted_tree_sends_nothing_and_the_client_is_told_in_its_words(tmp_path: Path, dialect: str) -> None:
    with LoopbackModel(Say("x" * 1000)) as model, gateway(tmp_path, model.base_url, SMALL) as served:
        headers = {"x-stillroom-session": "t", "x-stillroom-thread": "a"}
        assert post(served.port, PATHS[dialect], BODIES[dialect], headers).status == 200
        got = post(served.port, PATHS[dialect], BODIES[dialect], headers)
        assert len(model.requests) == 1
        other = post(served.port, PATHS[dialect], BODIES[dialect], {"x-stillroom-session": "u"})
    status = 402 if dialect == "messages" else 400
    assert (got.status, got.headers["x-should-retry"]) == (status, "false")
    error = got.json["error"]
    assert error["type"] == "budget_exceeded"
    assert got.json.get("type") == ("error" if dialect == "messages" else None)
    assert "the shared session token budget is used up" in error["message"]
    assert error["outcome"]["tree_id"] == "t"
    assert error["outcome"]["threads"]["a"] >= 100
    assert other.status == 200


def test_the_real_clients_stop_at_once_with_the_typed_error(tmp_path: Path) -> None:
    anthropic, openai = pytest.importorskip("anthropic"), pytest.importorskip("openai")
    with LoopbackModel(Say("x" * 1000)) as model, gateway(tmp_path, model.base_url, SMALL) as served:
        base = f"http://127.0.0.1:{served.port}/t/shared"
        gpt = openai.OpenAI(base_url=f"{base}/v1", api_key="k-secret")
        claude = anthropic.Anthropic(base_url=base, api_key="k-secret")
        with gpt, claude:
            assert gpt.responses.create(model="m", input="hello").output_text == "x" * 1000
            with pytest.raises(openai.BadRequestError) as refused:
                gpt.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
            assert refused.value.code == "budget_exceeded"
            with pytest.raises(anthropic.APIStatusError, match="is used up"):
                claude.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hello"}])
        assert len(model.requests) == 1
        assert model.requests[0].headers["authorization"] == "Bearer k-secret"
        assert "k-secret" not in "".join(served.told)
    assert b"k-secret" not in served.database.read_bytes()


def test_the_usage_of_a_streamed_chat_is_asked_for_and_hidden_from_who_did_not_ask(tmp_path: Path) -> None:
    with LoopbackModel(Say("hello there")) as model:
        direct = post(model.port, PATHS["chat"], CHAT)
        with gateway(tmp_path, model.base_url) as served:
            through = post(served.port, PATHS["chat"], CHAT)
            assert served.used("nameless")["main"] > 0
        assert model.requests[1].json["stream_options"] == {"include_usage": True}
    events = [event for event in direct.body.split(b"\n\n") if b'"choices":[]' not in event]
    assert through.body.replace(b"_2", b"_1") == b"\n\n".join(events)


def test_threads_of_one_tree_share_its_budget_and_a_restart_goes_on(tmp_path: Path) -> None:
    codex = {"session-id": "root", "thread-id": "root", "x-codex-window-id": "root:0"}
    child = {**codex, "thread-id": "child", "x-codex-parent-thread-id": "root"}
    with LoopbackModel(Say("x" * 400)) as model:
        for headers in (codex, child):
            with gateway(tmp_path, model.base_url) as served:
                post(served.port, PATHS["responses"], RESPONSES, headers)
        used = served.used("root")
        assert set(used) == {"root", "child"}
        assert min(used.values()) > 100
        assert all(b"rollout_budget" in request.body for request in model.requests)
        assert not any(name.startswith("x-stillroom") for request in model.requests for name in request.headers)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_compressed_stream_is_charged_and_not_touched(tmp_path: Path, encoding: str) -> None:
    from stillroom.service.unpacking import zstd

    event = b'data: {"type":"response.completed","response":{"usage":{"input_tokens":30,"output_tokens":4}}}\n\n'
    packed = gzip.compress(event) if encoding == "gzip" else zstd.compress(event)
    headers = f"content-type: text/event-stream\r\ncontent-encoding: {encoding}"
    answer = chunked(*(packed[at : at + 7] for at in range(0, len(packed), 7)), headers=headers)
    with raw_upstream(lambda peer: peer.sendall(answer)) as url, gateway(tmp_path, url) as served:
        got = post(served.port, PATHS["responses"], RESPONSES, {"accept-encoding": f"br, {encoding}"})
        assert got.body == packed
        assert served.used("nameless") == {"main": 34.0}


@pytest.mark.parametrize("part, status", [("whole", 200), ("half", 400), ("bomb", 413)])
def test_a_packed_request_goes_on_only_when_it_is_whole_and_of_a_size_that_may_be_asked(
    tmp_path: Path, part: str, status: int
) -> None:
    plain = json.dumps({**RESPONSES, "input": "x" * (2_000_000 if part == "bomb" else 2000)}).encode()
    packed = gzip.compress(plain)
    sent = packed[: len(packed) // 2] if part == "half" else packed
    with LoopbackModel() as model, gateway(tmp_path, model.base_url, max_request_bytes=100_000) as served:
        got = post(served.port, PATHS["responses"], sent, {"content-encoding": "gzip"})
        assert (got.status, len(model.requests)) == (status, 1 if part == "whole" else 0)


def test_what_anthropic_reported_before_it_broke_off_is_charged_once(tmp_path: Path) -> None:
    start = b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":20,'
    start += b'"cache_read_input_tokens":70,"output_tokens":1}}}\n\n'
    with raw_upstream(lambda peer: peer.sendall(chunked(start, end=False))) as url, gateway(tmp_path, url) as served:
        got = post(served.port, PATHS["messages"], MESSAGES)
        assert got.body.startswith(start)
        last = got.body.removeprefix(start)
        assert last.startswith(b"event: error\ndata: ")
        error = json.loads(last.partition(b"data: ")[2])["error"]
        assert error["type"] == "upstream_broke_off"
        assert served.used("nameless") == {"main": 21.0}
    assert served.told == [f"`{url}` broke off in the middle of its answer"]


def test_half_an_event_or_half_a_body_never_looks_whole(tmp_path: Path) -> None:
    half = b'data: {"type":"respon'
    short = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"usage":'
    answers = iter([chunked(half, end=False), short])
    with (
        raw_upstream(lambda peer: peer.sendall(next(answers))) as url,
        gateway(tmp_path, url) as served,
    ):
        for _ in range(2):
            with httpx2.Client(trust_env=False) as client, pytest.raises(httpx2.TransportError):
                client.post(f"http://127.0.0.1:{served.port}/v1/responses", json=RESPONSES)


@pytest.mark.parametrize(
    ("answer", "status", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<p/>", 502, "upstream_invalid"),
        (b"HTTP/1.1 503 Busy\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<p/>", 503, "upstream_invalid"),
        (b"SSH-2.0-OpenSSH_9\r\n\r\n", 502, "upstream_invalid"),
        (b"", 502, "upstream_unreachable"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx", 502, "upstream_invalid"),
    ],
)
@every_dialect
def test_an_upstream_that_is_no_model_is_a_typed_error(
    tmp_path: Path, answer: bytes, status: int, kind: str, dialect: str
) -> None:
    with raw_upstream(lambda peer: peer.sendall(answer)) as url, gateway(tmp_path, url) as served:
        got = post(served.port, PATHS[dialect], BODIES[dialect])
        assert (got.status, got.json["error"]["type"]) == (status, kind)
        assert served.used("nameless") == {"main": 0.0}


def test_an_upstream_that_hangs_or_is_not_there_is_a_typed_error(tmp_path: Path) -> None:
    over = threading.Event()
    with raw_upstream(lambda peer: over.wait(5) and None) as url:
        with gateway(tmp_path, url, silence_timeout_seconds=0.2) as served:
            got = post(served.port, PATHS["chat"], CHAT)
            assert (got.status, got.json["error"]["type"]) == (504, "upstream_timeout")
        over.set()
    with gateway(tmp_path, url) as served:
        got = post(served.port, PATHS["chat"], CHAT)
        assert (got.status, got.json["error"]["type"]) == (502, "upstream_unreachable")


@pytest.mark.parametrize(
    ("usage", "told"),
    [
        ("null", "the upstream reported no usage"),
        ("{}", "the upstream reported no usage"),
        ('"lots"', "InvalidUsage"),
        ('{"input_tokens":"many","output_tokens":1}', "InvalidUsage"),
        ('{"input_tokens":5,"codex_rollout_budget_units":-1}', "InvalidUsage"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_usage_that_is_missing_or_malformed_charges_nothing_and_is_told(
    tmp_path: Path, usage: str, told: str, stream: bool
) -> None:
    inner = f'{{"output":[],"usage":{usage}}}'
    body = f'data: {{"type":"response.completed","response":{inner}}}\n\n' if stream else inner
    kind = "text/event-stream" if stream else "application/json"
    with LoopbackModel(SendBytes(body.encode(), kind)) as model, gateway(tmp_path, model.base_url) as served:
        got = post(served.port, PATHS["responses"], {**RESPONSES, "stream": stream})
        assert (got.status, got.body) == (200, body.encode())
        assert served.used("nameless") == {"main": 0.0}
        assert len(served.told) == 1
        assert told in served.told[0]


def test_errors_of_the_provider_go_through_and_cost_nothing(tmp_path: Path) -> None:
    error = b'{"error":{"message":"slow down","code":"rate_limit_exceeded"}}'
    head = b"HTTP/1.1 429 Slow\r\ncontent-type: application/json\r\nretry-after: 3\r\ncontent-length: %d\r\n\r\n"
    with (
        raw_upstream(lambda peer: peer.sendall(head % len(error) + error)) as url,
        gateway(tmp_path, url) as served,
    ):
        got = post(served.port, PATHS["chat"], CHAT)
        assert (got.status, got.body, got.headers["retry-after"]) == (429, error, "3")
        assert served.used("nameless") == {"main": 0.0}


def test_a_client_that_hangs_up_ends_the_request(tmp_path: Path) -> None:
    left = threading.Event()

    def answer(peer: socket.socket) -> None:
        peer.sendall(chunked(b": working\n\n", end=False))
        peer.settimeout(10)
        if peer.recv(1) == b"":
            left.set()

    with raw_upstream(answer) as url, gateway(tmp_path, url) as served:
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            body = json.dumps(RESPONSES).encode()
            client.sendall(
                b"POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n\r\n" % len(body) + body
            )
            assert client.recv(100).startswith(b"HTTP/1.1 200 OK")
        assert left.wait(10)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /v1/responses HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 2\r\n\r\n{}", 403),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\norigin: https://evil.example\r\ncontent-length: 2\r\n\r\n{}", 403),
        (b"GET / HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\n\r\n", 501),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}", 400),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n", 413),
        (b"POST /t/ HTTP/1.1\r\nhost: localhost\r\n\r\n", 400),
        (b"GET http://127.0.0.1/ HTTP/1.1\r\nhost: localhost\r\n\r\n", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", 400),
        (b"POST /v1/responses HTTP/1.1\r\nhost: localhost\r\nx-stillroom-session: " + b"x" * 999 + b"\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 400_000 + b"\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_of_a_local_program_is_refused(tmp_path: Path, head: bytes, status: int) -> None:
    with LoopbackModel() as model, gateway(tmp_path, model.base_url, max_request_bytes=1000) as served:
        with socket.create_connection(("127.0.0.1", served.port)) as client:
            client.sendall(head + (b"x" * 2000 if status == 413 else b""))
            said = client.recv(4096)
            assert said.startswith(b"HTTP/1.1 %d " % status)
            # Who sent a whole request with a bad name may ask again; after all else nobody knows where one begins.
            assert (b"\r\nconnection: close\r\n" in said) == (b"x-stillroom-session" not in head)
        assert model.requests == []


def test_a_client_that_waits_with_its_body_is_told_to_go_on(tmp_path: Path) -> None:
    body = json.dumps(RESPONSES).encode()
    head = b"POST /v1/responses HTTP/1.1\r\nhost: localhost\r\nexpect: 100-Continue\r\ncontent-length: %d\r\n\r\n"
    with LoopbackModel() as model, gateway(tmp_path, model.base_url) as served:
        with socket.create_connection(("127.0.0.1", served.port), timeout=10) as client:
            client.sendall(head % len(body))
            assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            client.sendall(body)
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        assert "expect" not in model.requests[0].headers


def test_what_is_no_question_to_a_model_passes_and_an_exhausted_tree_may_only_look(tmp_path: Path) -> None:
    with LoopbackModel(Say("x" * 1000)) as model, gateway(tmp_path, model.base_url, SMALL) as served:
        assert post(served.port, "/t/a/v1/models", b"", method="GET").json["object"] == "list"
        assert post(served.port, "/t/a/v1/messages/count_tokens", MESSAGES).status == 200
        assert post(served.port, "/t/a/v1/messages", MESSAGES).status == 200
        assert post(served.port, "/t/a/v1/embeddings", {}).status == 400
        assert post(served.port, "/t/a/v1/models", b"", method="GET").status == 200
        assert [request.path for request in model.requests] == ["/v1/messages/count_tokens", "/v1/messages"]


def test_many_requests_at_once_are_all_charged(tmp_path: Path) -> None:
    def answer(request: RecordedRequest) -> SendBytes:
        return SendBytes(b'{"usage":{"input_tokens":7,"output_tokens":3}}')

    with LoopbackModel(answer) as model, gateway(tmp_path, model.base_url, CONFIG) as served:

        def work(name: str) -> None:
            for _ in range(10):
                post(served.port, "/t/a/v1/messages", MESSAGES, {"x-stillroom-thread": name})

        threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert served.used("a") == {f"t{number}": 100.0 for number in range(6)}


def test_a_tree_that_is_removed_while_it_is_asked_is_told_and_the_answer_arrives(tmp_path: Path) -> None:
    event = b'data: {"type":"response.completed","response":{"usage":{"input_tokens":30,"output_tokens":4}}}\n\n'
    asked: list[int] = []

    def answer(peer: socket.socket) -> None:
        asked.append(1)
        if len(asked) == 2:
            with closing(sqlite3.connect(tmp_path / "state.sqlite3")) as db, db:
                db.execute("PRAGMA foreign_keys = ON")
                db.execute("DELETE FROM budget_trees")
        peer.sendall(chunked(event))

    with raw_upstream(answer) as url, gateway(tmp_path, url) as served:
        for _ in range(3):
            assert post(served.port, PATHS["responses"], RESPONSES).body == event
        assert served.used("nameless") == {"main": 34.0}, "the third begins the tree anew"
    (told,) = served.told
    assert "was removed" in told and told.endswith("nothing is charged")


def test_a_client_that_hangs_up_while_it_is_charged_is_charged(tmp_path: Path) -> None:
    config = RolloutBudgetConfig(limit_tokens=100, reminder_at_remaining_tokens=())
    ledgers = Ledgers(tmp_path / "state.sqlite3", config, limits=DatabaseLimits(), clock=SystemClock())
    gateway = Gateway(Upstream("http://127.0.0.1:9", GATEWAY), ledgers, default_tree="tree", numbers=GATEWAY)
    busy = threading.Event()

    async def hang_up() -> None:
        with ThreadPoolExecutor(1) as threads:
            asyncio.get_running_loop().set_default_executor(threads)
            threads.submit(busy.wait)  # the charge has to wait for its turn
            admission = ledgers.admit(Named("tree", "main", None, "1"))
            charge = asyncio.create_task(gateway.charge(admission, {"output_tokens": 7}, reminded=False))
            for _ in range(3):
                await asyncio.sleep(0)
            charge.cancel()
            await asyncio.sleep(0)
            busy.set()
            with pytest.raises(asyncio.CancelledError):
                await charge

    asyncio.run(hang_up())
    ledgers.close()
    assert shared_budgets(tmp_path / "state.sqlite3", limit=1)[0].used == 7
