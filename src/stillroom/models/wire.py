"""Phase 1's one request, posted directly: no SDK to import, connections kept alive."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from stillroom.clock import Clock
from stillroom.config import Effort, StageOne
from stillroom.errors import ModelUnavailable
from stillroom.models.attempts import Attempt, Booking, Failed, Recorder, call_booked
from stillroom.models.connections import ConnectionFailed, Connections, ReplyTooLarge, Response
from stillroom.models.names import Endpoint
from stillroom.models.protocols import path_of, read_reply, request_body
from stillroom.models.provider_errors import from_status, wants_no_effort
from stillroom.models.proxies import Proxy
from stillroom.models.rate_limits import RateLimitSink
from stillroom.models.structured import StructuredReply, StructuredRequest
from stillroom.spending import Usage

Price = Callable[[Usage], float | None]


class WireModel:
    """A `StructuredModel` over HTTP, for the servers that speak one of OpenAI's protocols."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        recorder: Recorder,
        clock: Clock,
        stage: StageOne,
        rate_limits: RateLimitSink,
        context_window: int | None,
        price: Price | None,
        concurrency: int,
        proxy: Proxy | None,
    ) -> None:
        self.name = endpoint.name
        self.context_window = context_window
        self._endpoint = endpoint
        self._recorder = recorder
        self._clock = clock
        self._stage = stage
        self._rate_limits = rate_limits
        self._price = price
        headers = {"content-type": "application/json", "accept": "application/json"}
        if endpoint.api_key:
            headers["authorization"] = f"Bearer {endpoint.api_key}"
        self._connections = Connections(
            endpoint.base_url + path_of(endpoint.kind),
            headers=headers,
            concurrency=concurrency,
            connect_timeout_seconds=stage.connect_timeout_seconds,
            max_reply_bytes=stage.max_reply_bytes,
            proxy=proxy,
        )
        #: Set when the model turned out not to know the parameter: then it is left out for good.
        self._without_effort = False

    async def complete(self, request: StructuredRequest) -> StructuredReply:
        send = partial(self._send, request)
        answered = await call_booked(send, recorder=self._recorder, stage=self._stage, thread_id=request.thread_id)
        return StructuredReply(text=answered.text, usage=answered.usage)

    async def aclose(self) -> None:
        await self._connections.aclose()

    async def _send(self, request: StructuredRequest, booking: Booking) -> Attempt:
        try:
            # One limit for the whole exchange: a server that drips bytes would outlive one between reads.
            async with asyncio.timeout(self._stage.request_timeout_seconds):
                return await self._post_with_effort(request, booking)
        except TimeoutError:
            limit = self._stage.request_timeout_seconds
            return Failed(error=ModelUnavailable(f"no complete reply within {limit:g} s"), retryable=True)
        except ConnectionFailed as error:
            return Failed(error=ModelUnavailable(str(error)), retryable=True)
        except ReplyTooLarge as error:
            return Failed(error=ModelUnavailable(str(error)))

    async def _post_with_effort(self, request: StructuredRequest, booking: Booking) -> Attempt:
        while True:
            effort = None if self._without_effort else request.effort
            if (attempt := await self._post(request, booking, effort=effort)) is not None:
                return attempt
            self._without_effort = True

    async def _post(self, request: StructuredRequest, booking: Booking, *, effort: Effort | None) -> Attempt | None:
        """None: the model does not know the parameter."""
        endpoint = self._endpoint

        def read(response: Response) -> Attempt | None:
            if effort is not None and wants_no_effort(response.status, response.body):
                return None
            attempt = self._read(response)
            booking.end(attempt)
            return attempt

        body = request_body(
            request, kind=endpoint.kind, model=endpoint.model, effort=effort, official=endpoint.official
        )
        return await self._connections.post(body, begin=booking.begin, read=read)

    def _read(self, response: Response) -> Attempt:
        now = self._clock.now()
        self._rate_limits.observe(response.headers, now=now)
        if response.status != HTTPStatus.OK:
            return from_status(response.status, response.body, headers=response.headers, now=now)
        attempt = read_reply(response.body, kind=self._endpoint.kind)
        return dataclasses.replace(attempt, cost_usd=self._price(attempt.usage)) if self._price else attempt
