"""What the gateway adds: the same client asks the same loopback model directly and through it, in turn.

Three processes on one machine: model, gateway, client. The figures are medians of pairs.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import multiprocessing
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

EVENTS = 2000
BODY = json.dumps({"model": "m", "stream": True, "input": [{"role": "user", "content": "x" * 40_000}]}).encode()
HEADERS = {"content-type": "application/json", "session-id": "bench", "thread-id": "bench"}
_EVENT = b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"a word"}\n\n'
_DONE = {"type": "response.completed", "response": {"usage": {"input_tokens": 10, "output_tokens": 5}}}
_LAST = b"event: response.completed\ndata: " + json.dumps(_DONE).encode() + b"\n\n"


class Timed(NamedTuple):
    """Milliseconds from the request to the first byte of the body, and to its end."""

    first: float
    whole: float


def _answer(connection: socket.socket) -> None:
    """Requests on one connection; the path says how many events and the pause between them in microseconds."""
    held = b""
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            while b"\r\n\r\n" not in held:
                data = connection.recv(65_536)
                if not data:
                    return
                held += data
            head, _, body = held.partition(b"\r\n\r\n")
            length = int(
                next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")).split(b":")[1]
            )
            while len(body) < length:
                body += connection.recv(65_536)
            held = body[length:]
            _, events, pause, _ = head.split(b" ")[1].rsplit(b"/", 3)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            )
            due = time.perf_counter()
            for _ in range(int(events)):
                connection.sendall(b"%x\r\n%b\r\n" % (len(_EVENT), _EVENT))
                if wait := int(pause) / 1e6:
                    due += wait
                    time.sleep(max(0.0, due - time.perf_counter()))
            connection.sendall(b"%x\r\n%b\r\n0\r\n\r\n" % (len(_LAST), _LAST))


def _model(ready: object) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    ready.send(server.getsockname()[1])  # type: ignore[attr-defined]
    while True:
        connection, _ = server.accept()
        threading.Thread(target=_answer, args=(connection,), daemon=True).start()


@contextlib.contextmanager
def _serving() -> Iterator[tuple[int, int]]:
    """The ports of the model and of a gateway before it."""
    ours, theirs = multiprocessing.Pipe()
    model = multiprocessing.get_context("spawn").Process(target=_model, args=(theirs,), daemon=True)
    model.start()
    port = ours.recv()
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "stillroom", "budget", "serve", "--port", "0", "--limit", str(10**12)]
        command += ["--upstream", f"http://127.0.0.1:{port}", "--home", home]
        environ = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src")}
        gateway = subprocess.Popen(command, stderr=subprocess.PIPE, env=environ, text=True)
        assert gateway.stderr is not None
        said = gateway.stderr.readline()
        try:
            yield port, int(said.split("127.0.0.1:")[1].split()[0])
        finally:
            gateway.terminate()
            gateway.wait(10)
            gateway.stderr.close()
            model.terminate()


def ask(client: http.client.HTTPConnection, events: int, pause_us: int) -> Timed:
    """One request, its stream read event by event, as a client of an agent does."""
    started = time.perf_counter()
    client.request("POST", f"/{events}/{pause_us}/responses", BODY, HEADERS)
    answer = client.getresponse()
    first, seen = 0.0, 0
    while line := answer.readline():
        first = first or time.perf_counter()
        if line.startswith(b"data:"):
            json.loads(line[5:])
            seen += 1
    assert seen == events + 1, seen
    return Timed((first - started) * 1e3, (time.perf_counter() - started) * 1e3)


def paired(events: int, pause_us: int, *, rounds: int) -> tuple[list[Timed], list[Timed]]:
    """Direct and through, one after the other."""
    with _serving() as (model, gateway):
        clients = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for port in (model, gateway)]
        timed: tuple[list[Timed], list[Timed]] = ([], [])
        for round_no in range(rounds + 2):
            order = (0, 1) if round_no % 2 else (1, 0)
            for which in order:
                got = ask(clients[which], events, pause_us)
                if round_no >= 2:  # the first ones open connections and files
                    timed[which].append(got)
        for client in clients:
            client.close()
    return timed


def _median(timed: list[Timed], field: str) -> float:
    return statistics.median(getattr(one, field) for one in timed)


def main() -> None:
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    direct, through = paired(1, 20_000, rounds=60)
    added = statistics.median(b.first - a.first for a, b in zip(direct, through, strict=True))
    first = f"{_median(direct, 'first'):.2f} ms direct, {_median(through, 'first'):.2f} through"
    print(f"first byte: {first}; adds {added:.2f} ms")
    for pause_us, rounds, name in (
        (1000, 4, "1,000 events/s"),
        (200, 6, "5,000 events/s"),
        (0, 12, "as fast as they can be sent"),
    ):
        direct, through = paired(EVENTS, pause_us, rounds=rounds)
        share = statistics.median(b.whole / a.whole for a, b in zip(direct, through, strict=True)) - 1
        whole = f"{_median(direct, 'whole'):.0f} ms direct, {_median(through, 'whole'):.0f} through"
        print(f"{EVENTS:,} events, {name}: {whole} ({share:+.1%})")


if __name__ == "__main__":
    main()
