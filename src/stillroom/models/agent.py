"""The model of an agent: Pydantic AI's own, with each request counted and retried here rather than inside the SDK."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from pydantic_ai import RunContext, exceptions
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from stillroom.config import StageOne
from stillroom.errors import ModelUnavailable
from stillroom.models.attempts import Answered, Attempt, Failed, Recorder, await_with_retries
from stillroom.models.pydantic import (
    MALFORMED,
    NO_SDK_RETRIES,
    Opened,
    failure_of,
    malformed,
    overlong,
    refuses_effort,
    takes_effort,
    unstored,
    usage_of,
    with_effort,
)


class RecordingModel(WrapperModel):
    """Every request of the agent is a row of the spending table, failed ones too.

    A request that fails for good raises a `ModelError` out of `agent.run`. Use it as a context manager, so that its
    connections are closed.
    """

    def __init__(self, opened: Opened, *, recorder: Recorder, stage: StageOne) -> None:
        super().__init__(opened.model)
        self._opened = opened
        self._recorder = recorder
        self._stage = stage
        self._entries = 0
        #: Set when the provider turned out not to know the parameter: then it is left out for good.
        self._without_effort = False
        #: What a person should know of how the model was asked.
        self.notes: tuple[str, ...] = ()

    async def __aenter__(self) -> Self:
        self._entries += 1
        return await super().__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        self._entries -= 1
        result = await super().__aexit__(kind, error, traceback)
        if self._entries == 0:
            await self._opened.close()
        return result

    def _asking(self, asked: ModelSettings | None) -> ModelSettings:
        settings = unstored(self._opened.model, ModelSettings(**{**(asked or {}), **NO_SDK_RETRIES}))
        if isinstance(effort := settings.get("thinking"), str):
            settings = with_effort(self._opened.model, settings, None if self._without_effort else effort)
            if "thinking" in settings and not takes_effort(self._opened.model):
                self._note(f"`{self._recorder.model}` takes no effort, as far as is known: it was asked without")
        return settings

    def _note(self, what: str) -> None:
        if what not in self.notes:
            self.notes += (what,)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        responses: list[ModelResponse] = []

        async def send() -> Attempt:
            limit = self._stage.request_timeout_seconds
            try:
                async with asyncio.timeout(limit):  # of the whole reply; the SDK's is of each read
                    response = await super(RecordingModel, self).request(
                        messages, self._asking(model_settings), model_request_parameters
                    )
            except TimeoutError:
                error = ModelUnavailable(f"no complete reply within {limit:g} s")
                return Failed(error=error, retryable=self._opened.again_after_timeout)
            except MALFORMED as stumbled:
                return malformed(stumbled)
            except exceptions.AgentRunError as failed:
                if not self._without_effort and refuses_effort(failed):
                    self._without_effort = True
                    self._note(f"`{self._recorder.model}` refused the effort: it is asked without ({failed})")
                    return await send()
                return failure_of(failed, now=self._recorder.clock.now())
            if too_long := overlong(response, self._stage):
                return too_long
            responses.append(response)
            return self._answered(response)

        await await_with_retries(send, recorder=self._recorder, stage=self._stage)
        return responses[-1]

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """One attempt: what was already shown can't be taken back."""
        await asyncio.to_thread(self._recorder.check)
        started = time.perf_counter()
        settings = self._asking(model_settings)
        try:
            async with super().request_stream(messages, settings, model_request_parameters, run_context) as stream:
                yield stream
        except asyncio.CancelledError:
            self._recorder.record(None, started=started)
            raise
        except exceptions.AgentRunError as error:
            failed = failure_of(error, now=self._recorder.clock.now())
            await asyncio.to_thread(self._recorder.record, failed, started=started)
            raise failed.error from error
        await asyncio.to_thread(self._recorder.record, self._answered(stream.get()), started=started)

    def _answered(self, response: ModelResponse) -> Answered:
        return Answered(
            text=response.text or "",
            usage=usage_of(response),
            cost_usd=self._opened.cost(response),
        )
