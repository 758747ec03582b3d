"""A language model that listens on 127.0.0.1: real HTTP, scripted answers, every request kept.

    with LoopbackModel([Say(memory), Status(status=429, headers={"retry-after": "0"}), Say(memory)]) as server:
        settings = Settings(home=home, providers={"loopback": server.provider()})
        ...
        assert len(server.requests) == 3

It speaks the Responses API, Chat Completions, Anthropic's Messages and Gemini's `generateContent`, whole or streamed,
refuses a schema that a strict API would refuse, and says how many requests it held at once. `python -m
stillroom.testing` runs it in its own process.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Self, assert_never

import msgspec

from stillroom.config import Provider, ProviderKind
from stillroom.testing.bodies import error_body, render, render_events
from stillroom.testing.script import (
    CallTool,
    CallTools,
    CutOff,
    Hang,
    NeverEnd,
    RecordedRequest,
    Refuse,
    Reply,
    Say,
    SendBytes,
    Slowly,
    Status,
    StopShort,
)
from stillroom.testing.strict import schema_fault, sent_schema

SAMPLE_MEMORY: Mapping[str, str] = {
    "raw_memory": "---\ndescription: a scripted memory\ntask: scripted\ntask_group: loopback\ntask_outcome: success\n"
    "cwd: unknown\nkeywords: scripted\n---\n\n### Task 1: scripted\n\ntask: scripted\ntask_group: loopback\n"
    "task_outcome: success\n\nReusable knowledge:\n- the loopback model answered\n",
    "rollout_summary": "# A scripted summary\n\nRollout context: a test\n\n## Task 1: scripted\n\nOutcome: success\n",
    "rollout_slug": "scripted_summary",
}
"""What it says when it is told nothing else."""

Script = Reply | Sequence[Reply] | Callable[[RecordedRequest], Reply]

_ENDLESS_CHUNK = b" " * 65536
_CLOSE_SECONDS = 10


class LoopbackModel:
    """The server, running while the context is open, in a thread of its own. Raises `OSError` for a port that is taken.

    Args:
        script: one reply for every request; or a list of replies in order, the last one repeated; or a function.
        headers: sent with every response, e.g. rate limits.
        context_window: requests above so many tokens (4 bytes each) get the provider's "too long".
        port: 0 takes a free one.
    """

    def __init__(
        self,
        script: Script = Say(SAMPLE_MEMORY),  # noqa: B008  # frozen
        *,
        headers: Mapping[str, str] | None = None,
        context_window: int | None = None,
        port: int = 0,
        keep_requests: bool = True,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self.in_flight = 0
        self.max_in_flight = 0
        self.count = 0
        self.connections = 0
        self._choose = _chooser(script)
        self._headers = dict(headers or {})
        self._context_window = context_window
        self._port = port
        self._keep_requests = keep_requests
        self._started = threading.Event()
        self._failure: OSError | None = None
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="loopback-model", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait(_CLOSE_SECONDS)
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_CLOSE_SECONDS)

    @property
    def port(self) -> int:
        return self._port

    @property
    def base_url(self) -> str:
        """With `/v1`, as OpenAI's clients want it. Anthropic's want it without."""
        return f"http://127.0.0.1:{self._port}/v1"

    def provider(self, kind: ProviderKind = "openai-responses", *, context_window: int | None = None) -> Provider:
        """An entry for `Settings.providers`."""
        return Provider(kind=kind, base_url=self.base_url, context_window=context_window)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except OSError as error:  # of the port: whoever waits is told
            self._failure = error
            self._started.set()
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            self.connections += 1
            try:
                await self._talk(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                connections.discard(task)
                writer.close()

        server = await asyncio.start_server(connected, "127.0.0.1", self._port, limit=2**20)
        self._port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        server.close()
        for task in tuple(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (head := await _read_head(reader)) is not None:
            method, path, headers = head
            body = await _read_body(reader, headers)
            if method != "POST":
                _send(writer, 200, b'{"object":"list","data":[],"models":[]}')
                await writer.drain()
                continue
            self.count += 1
            request = RecordedRequest(number=self.count, path=path, headers=headers, body=body)
            if self._keep_requests:
                self.requests.append(request)
            self.in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self.in_flight)
            try:
                if not await self._answer(writer, request):
                    return
            finally:
                self.in_flight -= 1

    async def _answer(self, writer: asyncio.StreamWriter, request: RecordedRequest) -> bool:
        """Answer one request; False when the connection is over."""
        reply = self._refusal(request) or self._choose(request)
        while isinstance(reply, Slowly):
            await asyncio.sleep(reply.seconds)
            reply = reply.reply
        match reply:
            case Say() | CallTool() | CallTools() | Refuse() | StopShort():
                if request.wants_events:
                    _send(writer, 200, render_events(request, reply), self._headers, kind="text/event-stream")
                else:
                    _send(writer, 200, render(request, reply), self._headers)
            case Status():
                body = error_body(request, message=reply.message, code=reply.code, kind=reply.type, param=reply.param)
                _send(writer, reply.status, body, {**self._headers, **reply.headers})
            case SendBytes():
                _send(writer, 200, reply.body, self._headers, kind=reply.content_type)
            case CutOff():
                body = render(request, reply.reply)
                _send(writer, 200, body[: len(body) // 2], self._headers, length=len(body))
                await writer.drain()
                return False
            case Hang():
                await self._stop.wait()
                return False
            case NeverEnd():
                _send(writer, 200, b'{"object":', self._headers, length=2**40)
                while not self._stop.is_set():
                    writer.write(_ENDLESS_CHUNK)
                    await writer.drain()
                return False
            case _:
                assert_never(reply)
        await writer.drain()
        return True

    def _refusal(self, request: RecordedRequest) -> Status | None:
        if self._context_window is not None and len(request.body) > 4 * self._context_window:
            message = f"This model's maximum context length is {self._context_window} tokens."
            return Status(status=400, message=message, code="context_length_exceeded", type="invalid_request_error")
        try:
            asked = request.outline
        except msgspec.DecodeError as error:
            return Status(status=400, message=str(error), type="invalid_request_error")
        schema = sent_schema(asked.text, asked.response_format)
        fault = schema_fault(schema) if schema is not None else None
        if fault is None:
            return None
        return Status(status=400, message=f"Invalid schema: {fault}", code="invalid_json_schema", param="text.format")


def _chooser(script: Script) -> Callable[[RecordedRequest], Reply]:
    if callable(script):
        return script
    if not isinstance(script, Sequence):
        only = script
        return lambda request: only
    replies: Iterator[Reply] = chain(script, repeat(script[-1]))
    return lambda request: next(replies)


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, str, dict[str, str]] | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines)
    return method, path, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", "0")))
    chunks = []
    while size := int((await reader.readline()).split(b";")[0], 16):
        chunks.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(chunks)


def _send(
    writer: asyncio.StreamWriter,
    status: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    *,
    kind: str = "application/json",
    length: int | None = None,
) -> None:
    """One write for head and body: in two, the second would wait for an acknowledgement (Nagle)."""
    lines = [f"HTTP/1.1 {status} Scripted", f"content-type: {kind}", f"content-length: {length or len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
