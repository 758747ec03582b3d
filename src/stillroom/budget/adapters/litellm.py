"""LiteLLM: a callback for every chat completion of the process, also those that other frameworks make through it.

    budgeted = BudgetCallback()
    litellm.callbacks = [budgeted]
    with budget.session("root"):
        await litellm.acompletion(…)  # raises `TurnAborted` where the tree is exhausted
        budgeted.completion(…)        # in place of `litellm.completion`

LiteLLM drops what a callback raises, except before an asynchronous call. So an asynchronous call that reaches the limit
returns its answer all the same, and the next one is refused; one that is streamed is charged when LiteLLM reports its
end, a moment after it. A synchronous call can't be stopped by a callback at all, only be counted afterwards.
`completion` and `acompletion` of the callback are exact: use them where the calls are your own.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from stillroom.budget.adapters.exchange import Exchange, MeteredAsyncStream, MeteredStream
from stillroom.budget.adapters.request import Metering, Request
from stillroom.budget.adapters.wires import CHAT
from stillroom.budget.reported import read_usage
from stillroom.budget.session import Session, current_session
from stillroom.config import BUDGET

try:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger
except ImportError as error:
    raise ImportError("LiteLLM is missing: pip install 'stillroom[litellm]'") from error

#: Marks the calls that are metered by `completion` and `acompletion`: the hooks let them be.
_OURS = "stillroom-"


class BudgetCallback(CustomLogger):
    """Checks, reminds and charges chat completions. One object serves the process."""

    def __init__(
        self, *, session: Session | None = None, reserve_tokens: float | None = None, window_id: str = "0"
    ) -> None:
        super().__init__()
        self._metering = Metering(session=session, reserve_tokens=reserve_tokens, window_id=window_id)
        #: By LiteLLM's id of the call.
        self._requests: dict[str, Request] = {}

    def completion(self, **keys: Any) -> Any:
        """`litellm.completion`, metered, streamed or not. Raises `TurnAborted`."""
        exchange = self._begin()
        if exchange is None:
            return litellm.completion(**keys)
        try:
            body = exchange.prepared(keys)
            result = litellm.completion(**body, litellm_call_id=_OURS + str(uuid.uuid4()))
            return exchange.answered(result, stream=MeteredStream if body.get("stream") else None)
        except BaseException:
            exchange.request.end()
            raise

    async def acompletion(self, **keys: Any) -> Any:
        """`litellm.acompletion`, metered, streamed or not. Raises `TurnAborted`."""
        exchange = self._begin()
        if exchange is None:
            return await litellm.acompletion(**keys)
        try:
            body = exchange.prepared(keys)
            result = await litellm.acompletion(**body, litellm_call_id=_OURS + str(uuid.uuid4()))
            return exchange.answered(result, stream=MeteredAsyncStream if body.get("stream") else None)
        except BaseException:
            exchange.request.end()
            raise

    def _begin(self) -> Exchange | None:
        request = self._metering.admit()
        return Exchange(wire=CHAT, request=request) if request else None

    # Below: what LiteLLM calls.

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any] | None:
        """Before each try of `acompletion`. What it raises reaches the caller."""
        call_id = str(kwargs.get("litellm_call_id"))
        if getattr(call_type, "value", None) != "acompletion" or call_id.startswith(_OURS):
            return None
        request = self._metering.admit()
        if request is None:
            return None
        self._keep(call_id, request)
        return dict(Exchange(wire=CHAT, request=request).reminded(kwargs))

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: Any
    ) -> None:
        """After a call that was not streamed, before its caller goes on."""
        self._charge(str(request_data.get("litellm_call_id")), response)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """After a stream, and after an answer out of LiteLLM's own cache, which cost nothing."""
        self._charge(str(kwargs.get("litellm_call_id")), None if kwargs.get("cache_hit") else response_obj)

    async def async_log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        request = self._requests.pop(str(kwargs.get("litellm_call_id")), None)
        if request:
            request.end()

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """After a synchronous call, on a thread of LiteLLM's that has the caller's context where it is not streamed."""
        ours = str(kwargs.get("litellm_call_id")).startswith(_OURS)
        if ours or kwargs.get("cache_hit") or (kwargs.get("litellm_params") or {}).get("acompletion"):
            return
        session = current_session() or self._metering.session
        if session:
            _settle(Request(session=session, reminder=None, held=None), response_obj)

    def _keep(self, call_id: str, request: Request) -> None:
        self._requests[call_id] = request
        if len(self._requests) > BUDGET.max_open_calls:  # the oldest was cancelled: LiteLLM does not say so
            self._requests.pop(next(iter(self._requests))).end()

    def _charge(self, call_id: str, response: Any) -> None:
        request = self._requests.pop(call_id, None)
        if request:
            with request:
                if response is not None:
                    request.sent()
                    _settle(request, response)


def _settle(request: Request, response: Any) -> None:
    usage = getattr(response, "usage", None)
    reported = read_usage(usage if isinstance(usage, Mapping) or usage is None else usage.model_dump(warnings=False))
    if reported:
        request.charge_failed(reported.usage, units=reported.units)
