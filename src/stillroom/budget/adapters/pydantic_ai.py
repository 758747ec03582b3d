"""Pydantic AI: a model around a model.

    agent = Agent(BudgetModel("openai:gpt-6"))
    with budget.session("root"):
        await agent.run("…")  # raises TurnAborted

An agent that is run inside a tool shares the ledger; a `budget.session` around its run makes it a thread of its own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from stillroom.budget.adapters.request import Metering
from stillroom.budget.reminders import Reminder
from stillroom.budget.session import Session
from stillroom.spending import Usage

try:
    from pydantic_ai import RunContext
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart, UserPromptPart
    from pydantic_ai.models import (
        KnownModelName,
        Model,
        ModelRequestContext,
        ModelRequestParameters,
        StreamedResponse,
    )
    from pydantic_ai.models.wrapper import WrapperModel
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.usage import RequestUsage
except ImportError as error:
    raise ImportError("Pydantic AI is missing: pip install 'stillroom[pydantic-ai]'") from error


class BudgetModel(WrapperModel):
    """A model whose every request, streamed or not, is charged to the current session. Raises `TurnAborted`."""

    def __init__(
        self,
        wrapped: Model | KnownModelName | str,
        *,
        session: Session | None = None,
        reserve_tokens: float | None = None,
        window_id: str = "0",
    ) -> None:
        super().__init__(wrapped)
        self._metering = Metering(session=session, reserve_tokens=reserve_tokens, window_id=window_id)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        request = self._metering.admit()
        if request is None:
            return await super().request(messages, model_settings, model_request_parameters)
        with request:
            messages = self._reminded(messages, request.reminder)
            response = await super().request(messages, model_settings, model_request_parameters)
            request.sent()
            request.charge(usage_of(response.usage))
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        request = self._metering.admit()
        if request is None:
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as stream:
                yield stream
            return
        with request:
            messages = self._reminded(messages, request.reminder)
            async with super().request_stream(
                messages, model_settings, model_request_parameters, run_context
            ) as stream:
                request.sent()
                try:
                    yield stream
                except BaseException:
                    request.charge_failed(usage_of(stream.usage))
                    raise
            request.charge(usage_of(stream.usage))

    async def compact_messages(
        self, request_context: ModelRequestContext, *, instructions: str | None = None
    ) -> ModelResponse:
        """A request like any other; after it the history states again what is left."""
        request = self._metering.admit()
        if request is None:
            return await super().compact_messages(request_context, instructions=instructions)
        with request:
            response = await super().compact_messages(request_context, instructions=instructions)
            request.session.rearm_reminder()
            request.charge(usage_of(response.usage))
        return response

    def _reminded(self, messages: list[ModelMessage], reminder: Reminder | None) -> list[ModelMessage]:
        """The history that is sent, with the reminder as its last part; the agent's own history stays as it is."""
        if reminder is None or not messages or not isinstance(last := messages[-1], ModelRequest):
            return messages
        inline = self.profile.get("supports_inline_system_prompts", False)
        # Elsewhere a system prompt would be moved to the front of the history, and void the prompt cache.
        part = SystemPromptPart(reminder.text) if inline else UserPromptPart(reminder.text)
        return [*messages[:-1], replace(last, parts=[*last.parts, part])]


def usage_of(counted: RequestUsage) -> Usage:
    """What one request used, as Pydantic AI counted it."""
    return Usage(
        input_tokens=counted.input_tokens,
        cached_input_tokens=counted.cache_read_tokens,
        cache_write_tokens=counted.cache_write_tokens,
        output_tokens=counted.output_tokens,
        reasoning_tokens=counted.details.get("reasoning_tokens", 0),
    )
