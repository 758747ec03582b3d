"""A gateway between an agent and its model that charges what passes through, and ends it at the limit.

A stream goes through byte for byte. Only the piece that ends it waits, until what it reports is charged: the client's
next request must find it in the ledger.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec

from stillroom.budget import TurnAborted
from stillroom.config import Gateway as Numbers
from stillroom.errors import BudgetError, InvalidUsage, StoreError
from stillroom.service.dialects import Dialect, Prepared, dialect_of, error_body, error_event, exhausted_status, prepare
from stillroom.service.http import (
    CutShort,
    Head,
    Malformed,
    framing_of,
    read_head,
    read_pieces,
    write_head,
)
from stillroom.service.ledgers import Admission, Ledgers
from stillroom.service.metering import READABLE, UNREADABLE, Meter, UsageChunkFilter, expander
from stillroom.service.naming import OURS, named, split_target
from stillroom.service.upstream import Line, Silent, Unreachable, Upstream, is_loopback

Tell = Callable[[str], None]

_REASONS = {
    400: "Bad Request",
    402: "Payment Required",
    403: "Forbidden",
    413: "Content Too Large",
    501: "Not Implemented",
}
_REASONS |= {502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout"}
_NO_BODY = {"204", "304"}


class Refusal(Exception):
    """The request ends here, with an error that the client understands."""

    def __init__(self, status: int, kind: str, message: str, *, outcome: object = None) -> None:
        super().__init__(message)
        self.status, self.kind, self.outcome = status, kind, outcome


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the client, read whole."""

    method: str
    path: str
    tree: str | None
    head: Head
    dialect: Dialect | None
    body: bytes


class Gateway:
    """Serves any number of clients. `tell` is given lines for a person, without keys or words of a conversation."""

    def __init__(
        self, upstream: Upstream, ledgers: Ledgers, *, default_tree: str, numbers: Numbers, tell: Tell = print
    ) -> None:
        self._upstream, self._ledgers = upstream, ledgers
        self._default_tree, self._numbers, self._tell = default_tree, numbers, tell
        self._told: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def connect(self) -> asyncio.StreamReaderProtocol:
        """A protocol for a new client, for `loop.create_server`."""
        return _Client(asyncio.StreamReader(limit=self._numbers.max_head_bytes), self._serve, self._tasks)

    async def aclose(self) -> None:
        """End what is under way, charge what it reported, and close all connections."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._upstream.aclose()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection, request after request."""
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, CutShort):  # the client is gone
            pass
        finally:
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection may carry another."""
        dialect: Dialect | None = None
        try:
            head = await read_head(reader)
            if head is None:
                return False
            method, target, _ = head.words
            dialect = dialect_of(method, target)
            asked = await self._read(head, dialect, reader, writer)
        except Malformed as error:
            _refuse(writer, dialect, Refusal(400, "invalid_request", str(error)), close=True)
            return False
        except Refusal as refusal:
            _refuse(writer, dialect, refusal, close=True)
            return False
        try:
            await self._answer(asked, writer)
        except Refusal as refusal:
            _refuse(writer, dialect, refusal)
        await writer.drain()
        return "close" not in head.get("connection").lower() and not writer.is_closing()

    async def _read(
        self, head: Head, dialect: Dialect | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Asked:
        method, target, version = head.words
        if version != "HTTP/1.1":
            raise Malformed("speak HTTP/1.1")
        # A web page that a person opens must not spend their budget.
        if not _is_local(head.get("host")) or (head.get("origin") and not _is_local(head.get("origin"))):
            raise Refusal(403, "forbidden", "only programs of this machine are served")
        if head.get("upgrade"):
            raise Refusal(501, "not_supported", "no websockets here: use HTTP")
        parts = urlsplit(target)
        if parts.scheme or not target.startswith("/"):
            raise Malformed("the path must begin with `/`")
        tree, path = split_target(target)
        framing = framing_of(head, without=0)
        if head.get("expect").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = bytearray()
        silence = self._numbers.silence_timeout_seconds
        try:
            async for piece in read_pieces(
                reader, framing, read_bytes=self._numbers.read_bytes, timeout_seconds=silence
            ):
                body += piece
                if len(body) > self._numbers.max_request_bytes:
                    raise Refusal(413, "request_too_large", f"more than {self._numbers.max_request_bytes:,} bytes")
        except TimeoutError as error:
            raise Malformed("the body does not come") from error
        return Asked(method, path, tree, head, dialect, bytes(body))

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        admission = await self._admit(asked) if asked.method == "POST" else None
        asked, headers = _opened(asked)
        prepared = Prepared(asked.body)
        if asked.dialect and admission:
            reminder = admission.reminder.text if admission.reminder else None
            prepared = prepare(asked.body, asked.dialect, reminder)
        readable = [] if prepared.hides_usage else _readable(asked.head.get("accept-encoding"))
        headers.append(("accept-encoding", ", ".join(readable) or "identity"))
        if prepared.body or asked.method == "POST":
            headers.append(("content-length", str(len(prepared.body))))
        try:
            line, answer = await self._upstream.send(asked.method, asked.path, headers, prepared.body)
        except Unreachable as error:
            raise Refusal(502, "upstream_unreachable", f"`{self._upstream.url}`: {error}") from error
        except Silent as error:
            raise Refusal(504, "upstream_timeout", f"`{self._upstream.url}`: {error}") from error
        except Malformed as error:
            raise Refusal(502, "upstream_invalid", f"`{self._upstream.url}`: {error}") from error
        whole = False
        try:
            whole = await _Passage(self, asked, prepared, admission, line, answer, writer).run()
        finally:
            if whole:
                self._upstream.give_back(line, answer)
            else:
                line.close()

    async def _admit(self, asked: Asked) -> Admission:
        """Nothing is sent that the tree can't pay for, or that could not be charged."""
        try:
            who = named(asked.head, tree=asked.tree, default_tree=self._default_tree)
            if self._ledgers.knows(who):
                return self._ledgers.admit(who)
            return await asyncio.to_thread(self._ledgers.admit, who)
        except Malformed as error:
            raise Refusal(400, "invalid_request", str(error)) from error
        except TurnAborted as stop:
            status, outcome = exhausted_status(asked.dialect), msgspec.to_builtins(stop.outcome)
            raise Refusal(status, stop.reason, str(stop), outcome=outcome) from stop
        except (BudgetError, StoreError) as error:
            raise Refusal(503, "budget_unavailable", f"the budget can't be used: {error}") from error

    async def charge(self, admission: Admission, usage: object, *, reminded: bool) -> None:
        """Charge a response, and tell what did not go as it should."""
        work = asyncio.ensure_future(asyncio.to_thread(self._ledgers.charge, admission, usage, reminded=reminded))
        try:
            try:
                told = await asyncio.shield(work)
            except asyncio.CancelledError:
                await work  # whoever hangs up while it waits for a thread is charged all the same
                raise
        except (InvalidUsage, StoreError) as error:
            told = f"{type(error).__name__}: {error}; nothing is charged"
        if told:
            self.tell_once(f"{admission.named.tree}: {told}")

    def tell_once(self, line: str) -> None:
        """The same trouble at every request is one line."""
        if line not in self._told:
            self._told.add(line)
            self._tell(line)

    @property
    def numbers(self) -> Numbers:
        return self._numbers

    @property
    def upstream_url(self) -> str:
        return self._upstream.url


class _Passage:
    """One answer on its way from the upstream to the client."""

    def __init__(
        self,
        gateway: Gateway,
        asked: Asked,
        prepared: Prepared,
        admission: Admission | None,
        line: Line,
        answer: Head,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._gateway, self._asked, self._prepared, self._admission = gateway, asked, prepared, admission
        self._line, self._answer, self._writer = line, answer, writer
        self._encoding = answer.get("content-encoding")
        kind = answer.get("content-type").partition(";")[0].strip().lower()
        self._streamed = kind == "text/event-stream"
        self._ok = answer.words[1].startswith("2")
        self._is_json = kind.endswith("json")
        self._meter: Meter | None = None
        if asked.dialect and admission and self._ok:
            self._meter = Meter(
                asked.dialect,
                streamed=self._streamed,
                encoding=self._encoding,
                max_bytes=gateway.numbers.max_answer_bytes,
            )

    async def run(self) -> bool:
        """Pass the answer on. True when all of it was read. Raises `Refusal` as long as nothing was passed on."""
        none = self._answer.words[1] in _NO_BODY or self._asked.method == "HEAD"
        try:
            framing = 0 if none else framing_of(self._answer, without="close")
        except Malformed as error:
            raise Refusal(502, "upstream_invalid", f"`{self._gateway.upstream_url}`: {error}") from error
        numbers = self._gateway.numbers
        pieces = read_pieces(
            self._line.reader,
            framing,
            read_bytes=numbers.read_bytes,
            timeout_seconds=numbers.silence_timeout_seconds,
        )
        if self._asked.dialect and not none and not (self._streamed or self._is_json):
            raise self._no_answer()
        # A length holds only for what goes through as it is.
        chunked = not none and not isinstance(framing, int)
        hides = UsageChunkFilter() if self._prepared.hides_usage and self._streamed and not self._encoding else None
        if hides is not None:
            chunked = True
        headers = self._answer.passed_on(*(("content-length",) if chunked else ()))
        headers += [("transfer-encoding", "chunked")] if chunked else []
        self._writer.write(write_head(" ".join(("HTTP/1.1", *self._answer.words[1:])), headers))
        last = b""
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    if self._meter is not None:
                        self._meter.feed(piece)
                        if self._meter.ended:
                            await self._settle()
                    if hides is not None:
                        piece = hides.feed(piece)
                    elif not self._streamed:
                        last, piece = piece, last  # what completes an answer waits until it is charged
                    self._write(piece, chunked=chunked)
                    await self._writer.drain()
            await self._finish(chunked=chunked, last=last if hides is None else hides.finish())
        except (CutShort, Malformed, TimeoutError, ConnectionError) as error:
            await self._break_off(error, chunked=chunked)
            return False
        finally:
            # The client may have hung up, or the gateway is told to end: what was reported until then counts.
            await self._settle()
        return framing != "close"

    def _no_answer(self) -> Refusal:
        """A proxy's page, a login form: no client can read that."""
        status = int(self._answer.words[1])
        kind = self._answer.get("content-type") or "nothing known"
        message = f"`{self._gateway.upstream_url}` answered {status} with {kind}, which no model does"
        return Refusal(502 if self._ok or status < 400 else status, "upstream_invalid", message)

    async def _finish(self, *, chunked: bool, last: bytes) -> None:
        if self._meter is not None:
            self._meter.finish()
        await self._settle()
        self._write(last, chunked=chunked)
        if chunked:
            self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def _break_off(self, error: Exception, *, chunked: bool) -> None:
        """The upstream did not come to its end. A stream gets an error as its last event, where one can be read."""
        between_events = self._meter is not None and self._meter.between_events
        await self._settle()
        why = "said nothing more" if isinstance(error, TimeoutError) else "broke off"
        message = f"`{self._gateway.upstream_url}` {why} in the middle of its answer"
        if self._writer.is_closing():
            return
        dialect = self._asked.dialect
        readable = self._streamed and chunked and not self._encoding
        if dialect and readable and between_events:
            self._write(error_event(dialect, kind="upstream_broke_off", message=message), chunked=chunked)
            self._writer.write(b"0\r\n\r\n")
            with suppress(ConnectionError):
                await self._writer.drain()
            self._writer.close()
        else:
            # An end that looks like one would make half an answer a whole one.
            self._writer.transport.abort()
        self._gateway.tell_once(message)

    def _write(self, data: bytes, *, chunked: bool) -> None:
        if data:
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)

    async def _settle(self) -> None:
        """Charge, once."""
        meter, self._meter = self._meter, None
        if meter is not None and self._admission is not None:
            await self._gateway.charge(self._admission, meter.usage or None, reminded=self._prepared.reminded)


class _Client(asyncio.StreamReaderProtocol):
    """A client's connection whose work ends when it hangs up: nobody should pay for what nobody reads."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
        tasks: set[asyncio.Task[None]],
    ) -> None:
        super().__init__(reader)
        self._reader, self._serve, self._tasks = reader, serve, tasks
        self._work: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        # asyncio only does this for sockets that name their protocol; without it a head waits 40 ms for its body.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        loop = asyncio.get_running_loop()
        writer = asyncio.StreamWriter(transport, self, self._reader, loop)
        self._work = loop.create_task(self._serve(self._reader, writer))
        self._tasks.add(self._work)
        self._work.add_done_callback(self._tasks.discard)

    def eof_received(self) -> bool:
        super().eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._work is not None:
            self._work.cancel()


def _refuse(writer: asyncio.StreamWriter, dialect: Dialect | None, refusal: Refusal, *, close: bool = False) -> None:
    body = error_body(dialect, kind=refusal.kind, message=str(refusal), outcome=refusal.outcome)
    headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
    if refusal.kind.startswith("budget_"):
        headers.append(("x-should-retry", "false"))  # the word of OpenAI's and Anthropic's clients
    if close:
        headers.append(("connection", "close"))
    reason = _REASONS.get(refusal.status, "Error")
    writer.write(write_head(f"HTTP/1.1 {refusal.status} {reason}", headers) + body)


def _opened(asked: Asked) -> tuple[Asked, list[tuple[str, str]]]:
    """The request with a body that can be read, and the headers that go on with it."""
    dropped = ("host", "content-length", "accept-encoding", "expect", *OURS)
    encoding = asked.head.get("content-encoding")
    if not (asked.dialect and encoding):
        return asked, asked.head.passed_on(*dropped)
    expand = expander(encoding)
    if expand is None:
        raise Refusal(400, "invalid_request", f"a body in `{encoding}` can't be read")
    try:
        body = expand(asked.body)
    except UNREADABLE as error:
        raise Refusal(400, "invalid_request", "the body can't be unpacked") from error
    opened = Asked(asked.method, asked.path, asked.tree, asked.head, asked.dialect, body)
    return opened, asked.head.passed_on(*dropped, "content-encoding")


def _readable(accepted: str) -> list[str]:
    """What the client can unpack and we can too."""
    wanted = {part.partition(";")[0].strip().lower() for part in accepted.split(",")}
    return [encoding for encoding in READABLE if encoding in wanted]


def _is_local(place: str) -> bool:
    """A `Host` or an `Origin` of this machine."""
    try:
        host = urlsplit(place if "//" in place else f"//{place}").hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)
