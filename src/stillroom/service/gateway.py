"""A gateway between an agent and its model that charges what passes through, and ends it at the limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from stillroom.addresses import is_loopback
from stillroom.budget import TurnAborted
from stillroom.config import Gateway as Numbers
from stillroom.errors import BudgetError, StoreError
from stillroom.service.asked import Asked, Refusal, opened, readable_encodings, refuse
from stillroom.service.connection import Client
from stillroom.service.dialects import Dialect, Prepared, dialect_of, exhausted_status, prepare
from stillroom.service.http import CutShort, Head, Malformed, framing_of, read_head, read_pieces
from stillroom.service.ledgers import Admission, Ledgers
from stillroom.service.naming import named, split_target
from stillroom.service.passage import Passage
from stillroom.service.upstream import Silent, Unreachable, Upstream

Tell = Callable[[str], None]


class Gateway:
    """Serves any number of clients. `tell` is given lines for a person, without keys or words of a conversation."""

    def __init__(
        self, upstream: Upstream, ledgers: Ledgers, *, default_tree: str, numbers: Numbers, tell: Tell = print
    ) -> None:
        self._upstream, self._ledgers = upstream, ledgers
        self._default_tree, self._tell = default_tree, tell
        self.numbers, self.upstream_url = numbers, upstream.url
        self._told: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def connect(self) -> asyncio.StreamReaderProtocol:
        """A protocol for a new client, for `loop.create_server`."""
        return Client(asyncio.StreamReader(limit=self.numbers.max_head_bytes), self._serve, self._tasks)

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
            refuse(writer, dialect, Refusal(400, "invalid_request", str(error)), close=True)
            return False
        except Refusal as refusal:
            refuse(writer, dialect, refusal, close=True)
            return False
        try:
            await self._answer(asked, writer)
        except Refusal as refusal:
            refuse(writer, dialect, refusal)
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
        silence = self.numbers.silence_timeout_seconds
        try:
            async for piece in read_pieces(
                reader, framing, read_bytes=self.numbers.read_bytes, timeout_seconds=silence
            ):
                body += piece
                if len(body) > self.numbers.max_request_bytes:
                    raise Refusal(413, "request_too_large", f"more than {self.numbers.max_request_bytes:,} bytes")
        except TimeoutError as error:
            raise Malformed("the body does not come") from error
        return Asked(method, path, tree, head, dialect, bytes(body))

    async def _answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        admission = await self._admit(asked) if asked.method == "POST" else None
        asked, headers = opened(asked, max_bytes=self.numbers.max_request_bytes)
        prepared = Prepared(asked.body)
        if asked.dialect and admission:
            reminder = admission.reminder.text if admission.reminder else None
            prepared = prepare(asked.body, asked.dialect, reminder)
        readable = [] if prepared.hides_usage else readable_encodings(asked.head.get("accept-encoding"))
        headers.append(("accept-encoding", ", ".join(readable) or "identity"))
        if prepared.body or asked.method == "POST":
            headers.append(("content-length", str(len(prepared.body))))
        try:
            line, answer = await self._upstream.send(asked.method, asked.path, headers, prepared.body)
        except Unreachable as error:
            raise Refusal(502, "upstream_unreachable", f"`{self.upstream_url}`: {error}") from error
        except Silent as error:
            raise Refusal(504, "upstream_timeout", f"`{self.upstream_url}`: {error}") from error
        except Malformed as error:
            raise Refusal(502, "upstream_invalid", f"`{self.upstream_url}`: {error}") from error
        whole = False
        try:
            whole = await Passage(self, asked, prepared, admission, line, answer, writer).run()
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
        except (BudgetError, StoreError) as error:
            told = f"{type(error).__name__}: {error}; nothing is charged"
        if told:
            self.tell_once(f"{admission.named.tree}: {told}")

    def tell_once(self, line: str) -> None:
        """The same trouble at every request is one line."""
        if line not in self._told:
            self._told.add(line)
            self._tell(line)


def _is_local(place: str) -> bool:
    """A `Host` or an `Origin` of this machine."""
    try:
        host = urlsplit(place if "//" in place else f"//{place}").hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)
