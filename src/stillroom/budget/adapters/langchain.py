"""LangChain and LangGraph: a middleware for `create_agent`, a callback for models in any other graph or chain.

    agent = create_agent(model, tools=tools, middleware=[BudgetMiddleware()])
    with budget.session("root"):
        agent.invoke(…)  # raises `TurnAborted`

    graph.invoke(…, config={"callbacks": [BudgetCallback()]})

Use one of the two for a model, not both: each charges.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from stillroom.budget.adapters.request import Metering, Request
from stillroom.budget.session import Session
from stillroom.spending import Usage

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
    from langchain_core.outputs import ChatGeneration, LLMResult
except ImportError as error:
    raise ImportError("LangChain is missing: pip install 'stillroom[langchain]'") from error

#: Models of these refuse a system message that is not the first, or move it to the front and void the prompt cache.
_SYSTEM_FIRST = ("anthropic", "google", "vertexai", "bedrock")


class BudgetMiddleware(AgentMiddleware[Any, Any, Any]):
    """Checks, reminds and charges each request of an agent to the current session. Raises `TurnAborted`.

    Put it last among the middlewares, next to the model, so that each try of a retry counts.
    """

    def __init__(
        self, *, session: Session | None = None, reserve_tokens: float | None = None, window_id: str = "0"
    ) -> None:
        super().__init__()
        self._metering = Metering(session=session, reserve_tokens=reserve_tokens, window_id=window_id)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        admitted = self._metering.admit()
        if admitted is None:
            return handler(request)
        with admitted:
            response = handler(_reminded(request, admitted))
            _charge(admitted, response.result)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        admitted = self._metering.admit()
        if admitted is None:
            return await handler(request)
        with admitted:
            response = await handler(_reminded(request, admitted))
            _charge(admitted, response.result)
        return response


class BudgetCallback(BaseCallbackHandler):
    """Checks before and charges after each request of a model. Raises `TurnAborted`.

    A callback can't change what is sent: it gives no reminders.
    """

    #: Or LangChain logs what is raised here and goes on, and runs it beside the request.
    raise_error = True
    run_inline = True

    def __init__(self, *, session: Session | None = None, reserve_tokens: float | None = None) -> None:
        self._metering = Metering(session=session, reserve_tokens=reserve_tokens)
        self._requests: dict[UUID, Request] = {}

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], *, run_id: UUID, **_: Any
    ) -> None:
        self._admit(run_id)

    def on_llm_start(self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **_: Any) -> None:
        self._admit(run_id)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        request = self._requests.pop(run_id, None)
        if request:
            with request:
                answers = [answer for given in response.generations for answer in given]
                _charge(request, [answer.message for answer in answers if isinstance(answer, ChatGeneration)])

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        request = self._requests.pop(run_id, None)
        if request:
            request.end()

    def _admit(self, run_id: UUID) -> None:
        request = self._metering.admit()
        if request:
            request.reminder = None
            self._requests[run_id] = request


def _reminded(request: ModelRequest[Any], admitted: Request) -> ModelRequest[Any]:
    if admitted.reminder is None:
        return request
    first_only = any(name in request.model._llm_type for name in _SYSTEM_FIRST)
    message = (HumanMessage if first_only else SystemMessage)(admitted.reminder.text)
    return request.override(messages=[*request.messages, message])


def _charge(request: Request, messages: Sequence[BaseMessage]) -> None:
    request.sent()
    counted = [message.usage_metadata for message in messages if isinstance(message, AIMessage)]
    request.charge(_sum([_usage(usage) for usage in counted if usage]))


def _usage(counted: Any) -> Usage:
    read, written = counted.get("input_token_details") or {}, counted.get("output_token_details") or {}
    return Usage(
        input_tokens=counted["input_tokens"],
        cached_input_tokens=read.get("cache_read") or 0,
        cache_write_tokens=read.get("cache_creation") or 0,
        output_tokens=counted["output_tokens"],
        reasoning_tokens=written.get("reasoning") or 0,
    )


def _sum(usages: Sequence[Usage]) -> Usage | None:
    """All answers to one request; one, unless more were asked for."""
    return sum(usages, Usage()) if usages else None
