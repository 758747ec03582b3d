"""The way of one answer from the upstream to the client.

A stream goes through byte for byte. Only the piece that ends it waits, until what it reports is charged: the client's
next request must find it in the ledger.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import Protocol

from stillroom.config import Gateway as Numbers
from stillroom.service.asked import Asked, Refusal
from stillroom.service.dialects import Prepared, error_event
from stillroom.service.http import CutShort, Head, Malformed, framing_of, read_pieces, write_head
from stillroom.service.ledgers import Admission
from stillroom.service.metering import Meter, UsageChunkFilter
from stillroom.service.upstream import Line

_NO_BODY = {"204", "304"}


class Cashier(Protocol):
    """Whoever charges what answers report."""

    numbers: Numbers
    upstream_url: str

    async def charge(self, admission: Admission, usage: object, *, reminded: bool) -> None:
        """Charge a response, and tell what did not go as it should."""

    def tell_once(self, line: str) -> None:
        """The same trouble at every request is one line."""


class Passage:
    """One answer on its way from the upstream to the client."""

    def __init__(
        self,
        cashier: Cashier,
        asked: Asked,
        prepared: Prepared,
        admission: Admission | None,
        line: Line,
        answer: Head,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._cashier, self._asked, self._prepared, self._admission = cashier, asked, prepared, admission
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
                max_bytes=cashier.numbers.max_answer_bytes,
            )

    async def run(self) -> bool:
        """Pass the answer on. True when all of it was read. Raises `Refusal` as long as nothing was passed on."""
        none = self._answer.words[1] in _NO_BODY or self._asked.method == "HEAD"
        try:
            framing = 0 if none else framing_of(self._answer, without="close")
        except Malformed as error:
            raise Refusal(502, "upstream_invalid", f"`{self._cashier.upstream_url}`: {error}") from error
        numbers = self._cashier.numbers
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
        message = f"`{self._cashier.upstream_url}` answered {status} with {kind}, which no model does"
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
        message = f"`{self._cashier.upstream_url}` {why} in the middle of its answer"
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
        self._cashier.tell_once(message)

    def _write(self, data: bytes, *, chunked: bool) -> None:
        if data:
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data) if chunked else data)

    async def _settle(self) -> None:
        """Charge, once."""
        meter, self._meter = self._meter, None
        if meter is not None and self._admission is not None:
            await self._cashier.charge(self._admission, meter.usage or None, reminded=self._prepared.reminded)
