"""What the clients of OpenAI and Anthropic have in common: one method that every request goes through.

Whatever a caller uses of a client (`create`, `parse`, `stream`, `with_raw_response`, a tool runner) ends there, with
the request's JSON; so metering it there misses none of them.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, TypeVar

from stillroom.budget.adapters.exchange import Exchange, MeteredAsyncStream, MeteredStream
from stillroom.budget.adapters.request import Metering
from stillroom.budget.adapters.wires import Wire
from stillroom.errors import BudgetError


class Client(Protocol):
    """A client of either SDK, synchronous or not."""

    def copy(self) -> Self: ...


_Client = TypeVar("_Client", bound=Client)


def metered_client(client: _Client, metering: Metering, wires: Mapping[str, Wire]) -> _Client:
    """A copy of the client, over the same connections, whose requests to these paths are metered.

    Of a client that is metered it makes one that is metered this way, not twice.
    """
    return _install(type(client).copy(client), metering, wires)


def _install(client: _Client, metering: Metering, wires: Mapping[str, Wire]) -> _Client:
    send, copied = _method(client, "request"), _method(client, "copy")

    def begin(options: Any) -> Exchange | None:
        wire = wires.get(str(options.url).partition("?")[0]) if options.method.lower() == "post" else None
        if wire is None:
            return None
        request = metering.admit()
        if request is None:
            return None
        raw = _header(options.headers, "x-stainless-raw-response")
        if raw == "stream":
            request.end()
            raise BudgetError(
                "`with_streaming_response` hides what was used: take `with_raw_response` or `stream=True`"
            )
        return Exchange(wire=wire, request=request, raw=bool(raw))

    def request(cast_to: Any, options: Any, *, stream: bool = False, **keys: Any) -> Any:
        exchange = begin(options)
        if exchange is None:
            return send(cast_to, options, stream=stream, **keys)
        try:
            result = send(cast_to, _prepared(options, exchange), stream=stream, **keys)
            return exchange.answered(result, stream=MeteredStream if stream else None)
        except BaseException:
            exchange.request.end()
            raise

    async def request_async(cast_to: Any, options: Any, *, stream: bool = False, **keys: Any) -> Any:
        exchange = begin(options)
        if exchange is None:
            return await send(cast_to, options, stream=stream, **keys)
        try:
            result = await send(cast_to, _prepared(options, exchange), stream=stream, **keys)
            return exchange.answered(result, stream=MeteredAsyncStream if stream else None)
        except BaseException:
            exchange.request.end()
            raise

    def metered_copy(*args: Any, **keys: Any) -> _Client:
        other: _Client = copied(*args, **keys)
        return _install(other, metering, wires)

    vars(client).update(
        request=request_async if inspect.iscoroutinefunction(send) else request,
        copy=metered_copy,
        with_options=metered_copy,
    )
    return client


def _prepared(options: Any, exchange: Exchange) -> Any:
    """The request that is sent in place of the caller's, which stays as it is."""
    if not isinstance(options.json_data, Mapping):
        return options
    prepared = copy.copy(options)
    prepared.json_data = exchange.prepared(options.json_data)
    return prepared


def _method(client: object, name: str) -> Callable[..., Any]:
    method: Callable[..., Any] = getattr(client, name)
    return method


def _header(headers: object, name: str) -> object:
    """A header of a request's options; the SDKs have a marker of their own for "none were given"."""
    found = headers.items() if isinstance(headers, Mapping) else ()
    return next((value for key, value in found if key.lower() == name), None)
