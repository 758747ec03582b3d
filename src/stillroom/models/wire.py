"""Phase 1's one request, posted directly: no SDK to import, connections kept alive."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

import msgspec

from stillroom.clock import Clock
from stillroom.config import Effort, StageOne
from stillroom.errors import ModelUnavailable
from stillroom.models.attempts import Attempt, Failed, Recorder, after_trying, call_with_retries
from stillroom.models.connections import ConnectionFailed, Connections, ReplyTooLarge, Response, TimedOut
from stillroom.models.names import Endpoint
from stillroom.models.protocols import path_of, read_reply, request_body
from stillroom.models.provider_errors import from_status, refuses_form, wants_no_effort
from stillroom.models.proxies import Proxy
from stillroom.models.rate_limits import RateLimitSink
from stillroom.models.structured import OUTPUT_FORMS, OutputForm, StructuredReply, StructuredRequest
from stillroom.spending import Usage
from stillroom.stopping import Stop

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
            connect_timeout_seconds=stage.connect_timeout_seconds,
            max_reply_bytes=stage.max_reply_bytes,
            proxy=proxy,
        )
        #: Set when the model turned out not to know the parameter: then it is left out for good.
        self._without_effort = False
        #: The strictest that the server was not seen to refuse.
        self._form: OutputForm = OUTPUT_FORMS[0]

    def complete(self, request: StructuredRequest, *, stop: Stop) -> StructuredReply:
        answered = call_with_retries(
            lambda: self._send(request, stop),
            recorder=self._recorder,
            stage=self._stage,
            thread_id=request.thread_id,
            stop=stop,
        )
        return StructuredReply(text=answered.text, usage=answered.usage, form=self._form)

    def close(self) -> None:
        self._connections.close()

    def _send(self, request: StructuredRequest, stop: Stop) -> Attempt:
        try:
            response, tried = self._ask(request, stop)
        except TimedOut as error:
            # On this machine it works on, and would take as long again.
            return Failed(error=ModelUnavailable(str(error)), retryable=not self._endpoint.loopback)
        except ConnectionFailed as error:
            return Failed(error=ModelUnavailable(str(error)), retryable=True)
        except ReplyTooLarge as error:
            return Failed(error=ModelUnavailable(str(error)))
        attempt = self._read(response)
        if len(tried) > 1 and isinstance(attempt, Failed):
            return after_trying(attempt, tried)
        return attempt

    def _ask(self, request: StructuredRequest, stop: Stop) -> tuple[Response, tuple[OutputForm, ...]]:
        """The first response that is no refusal of how the shape was asked for, and what was tried. It is remembered
        what the server takes, if it takes something."""
        forms = OUTPUT_FORMS[OUTPUT_FORMS.index(self._form) :]
        for count, form in enumerate(forms, 1):
            response = self._post_with_effort(request, form, stop)
            if not refuses_form(response.status, response.body):
                self._form = form
                return response, forms[:count]
        return response, forms

    def _post_with_effort(self, request: StructuredRequest, form: OutputForm, stop: Stop) -> Response:
        effort = None if self._without_effort else request.effort
        response = self._post(request, effort, form, stop)
        if effort is not None and wants_no_effort(response.status, response.body):
            self._without_effort = True
            response = self._post(request, None, form, stop)
        return response

    def _post(self, request: StructuredRequest, effort: Effort | None, form: OutputForm, stop: Stop) -> Response:
        endpoint = self._endpoint
        body = request_body(
            request, kind=endpoint.kind, model=endpoint.model, effort=effort, official=endpoint.official, form=form
        )
        return self._connections.post(body, seconds=self._stage.request_timeout_seconds, stop=stop)

    def _read(self, response: Response) -> Attempt:
        now = self._clock.now()
        self._rate_limits.observe(response.headers, now=now)
        if response.status != HTTPStatus.OK:
            return from_status(response.status, response.body, headers=response.headers, now=now)
        attempt = read_reply(response.body, kind=self._endpoint.kind)
        return msgspec.structs.replace(attempt, cost_usd=self._price(attempt.usage)) if self._price else attempt
