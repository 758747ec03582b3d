"""A request in JSON and its response, whole or streamed: what the SDKs and LiteLLM give us to meter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from stillroom.budget.adapters.request import Request
from stillroom.budget.adapters.wires import Body, Wire
from stillroom.budget.reported import read_usage


@dataclass(slots=True, kw_only=True)
class Exchange:
    """A request that was let through, and what its response has told so far."""

    wire: Wire
    request: Request
    #: The caller gets the HTTP response, with the parsed one inside.
    raw: bool = False
    told: dict[str, Any] = field(default_factory=dict)
    #: The stream tells its usage only because we asked: the caller is not to see it.
    hides_usage: bool = False

    def prepared(self, body: Body) -> Body:
        """What is sent in place of the caller's request, which stays as it is."""
        body = self.reminded(body)
        if not body.get("stream"):
            return body
        streamed = self.wire.streamed(body)
        self.hides_usage = streamed is not body
        return streamed

    def reminded(self, body: Body) -> Body:
        """The request with a reminder that is due. Where it can't have one, the reminder stays due."""
        if self.request.reminder is None:
            return body
        reminded = self.wire.remind(body, self.request.reminder.text)
        if reminded is None:
            self.request.reminder = None
        return body if reminded is None else reminded

    def answered(self, result: Any, *, stream: type[MeteredStream | MeteredAsyncStream] | None) -> Any:
        """What the caller gets."""
        self.request.sent()
        parsed = result.parse() if self.raw else result
        if stream is None:
            self.tell(getattr(parsed, "usage", None))
            self.finish()
            return result
        metered = stream(parsed, self)
        if self.raw:
            vars(result)["parse"] = lambda **_: metered
            return result
        return metered

    def see(self, event: Any) -> bool:
        """Note what an event tells; False: it is not for the caller."""
        self.tell(self.wire.usage_in(event))
        return not (self.hides_usage and getattr(event, "choices", None) == [])

    def tell(self, usage: Any) -> None:
        if usage is not None:
            counts = usage if isinstance(usage, Mapping) else usage.model_dump(warnings=False)
            self.told.update((key, count) for key, count in counts.items() if count is not None)

    def finish(self) -> None:
        reported = read_usage(self.told)
        self.request.charge(reported and reported.usage, units=reported and reported.units)

    def stop(self) -> None:
        """Nobody reads on: what was told until now is charged."""
        try:
            reported = read_usage(self.told)
            if reported:
                self.request.charge_failed(reported.usage, units=reported.units)
        finally:
            self.request.end()


class MeteredStream:
    """A stream of the SDK whose end is charged: its last step raises `TurnAborted` when a limit is exceeded."""

    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange
        self._events = self._metered()

    def _metered(self) -> Iterator[Any]:
        try:
            for event in self._stream:
                if self._exchange.see(event):
                    yield event
            self._exchange.finish()
        finally:
            self._exchange.stop()

    def __iter__(self) -> Iterator[Any]:
        return self._events

    def __next__(self) -> Any:
        return next(self._events)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._exchange.stop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class MeteredAsyncStream:
    """The same for the asynchronous clients."""

    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange
        self._events = self._metered()

    async def _metered(self) -> AsyncIterator[Any]:
        try:
            async for event in self._stream:
                if self._exchange.see(event):
                    yield event
            self._exchange.finish()
        finally:
            self._exchange.stop()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._events

    async def __anext__(self) -> Any:
        return await anext(self._events)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        try:
            await self._stream.close()
        finally:
            self._exchange.stop()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
