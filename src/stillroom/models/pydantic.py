"""Every name that Pydantic AI knows, as a `StructuredModel`; and OpenAI's protocols through the real SDK, for agents.

Imported only when such a model is opened: the import costs 1-2 s.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, Literal, assert_never, cast, get_args, get_type_hints

import httpx2
import msgspec
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ThinkingPart, ToolCallPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters, create_async_httpx2_client, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from stillroom.clock import Clock
from stillroom.config import Settings, StageOne
from stillroom.errors import (
    AccessRefused,
    ConfigError,
    ContextTooLong,
    InvalidReply,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
)
from stillroom.models.attempts import Answered, Attempt, Failed, Recorder, after_trying, call_with_retries
from stillroom.models.http1 import ReplyTooLarge
from stillroom.models.names import Endpoint, PydanticName
from stillroom.models.protocols import cut_off
from stillroom.models.provider_errors import ProviderError, from_status, refuses_form, wants_no_effort
from stillroom.models.rate_limits import RateLimitSink
from stillroom.models.structured import OutputForm, StructuredReply, StructuredRequest
from stillroom.spending import Usage
from stillroom.stopping import Stop, Stopped

#: What SDKs do with a reply of another shape than the one they know: they look into it all the same.
MALFORMED = (TypeError, AttributeError, LookupError, ValueError, RecursionError, AssertionError, ReplyTooLarge)
_Hook = Callable[[httpx2.Response], Awaitable[None]]
#: The providers' SDKs retry silently; here every attempt is counted.
NO_SDK_RETRIES = ModelSettings(max_retries=0)


async def _nothing_to_close() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Opened:
    """A model of Pydantic AI and what to let go of after it."""

    model: Model
    #: What an answer cost, in US dollars; None: not known.
    cost: Callable[[ModelResponse], float | None]
    close: Callable[[], Awaitable[None]] = _nothing_to_close
    #: Whether a request that ran out of time is sent again. A server on this machine would take as long again.
    again_after_timeout: bool = True


def open_pydantic(
    resolved: Endpoint | PydanticName, settings: Settings, *, rate_limits: RateLimitSink, clock: Clock
) -> Opened:
    """Open a model. Raises `ConfigError` for an unknown provider, a missing extra or a missing key."""
    match resolved:
        case Endpoint():
            return _open_endpoint(resolved, settings.stage_one, rate_limits=rate_limits, clock=clock)
        case PydanticName():
            client = create_async_httpx2_client()  # as the provider would make one itself
            client.event_hooks["response"] += _listening(settings.stage_one, rate_limits, clock)
            return Opened(check_pydantic(resolved, client), cost=cost_of, close=client.aclose)
        case _:
            assert_never(resolved)


def _listening(stage: StageOne, rate_limits: RateLimitSink, clock: Clock) -> list[_Hook]:
    """What every response goes through: its limits are noted, and it has an end."""

    async def observe(response: httpx2.Response) -> None:
        rate_limits.observe(response.headers, now=clock.now())

    return [observe, bounded(stage.max_reply_bytes)]


def check_pydantic(name: PydanticName, client: httpx2.AsyncClient | None = None) -> Model:
    """Build the model, send nothing. Raises `ConfigError` with what is missing.

    It speaks through `client` where its provider takes one (`takes_client`).
    """

    def provider_of(provider: str) -> Provider[Any]:
        if client is None or not takes_client(provider):
            return infer_provider(provider)
        return infer_provider_class(provider)(http_client=client)  # type: ignore[call-arg]  # the base class takes none

    try:
        infer_provider_class(name.provider)
    except ValueError as error:
        raise ConfigError(
            f"`{name.name}`: no provider is called `{name.provider}`",
            hint=f"`openai-responses`, `anthropic`, `google`, `ollama`, …; or add `[providers.{name.provider}]`",
        ) from error
    except ImportError as error:
        raise _missing_extra(name) from error
    try:
        return infer_model(name.name, provider_factory=provider_of)
    except ImportError as error:
        raise _missing_extra(name) from error
    except exceptions.UserError as error:
        raise ConfigError(f"`{name.name}` can't be used: {error}", hint="set what it names, or choose `offline`") from (
            error
        )


def takes_client(provider: str) -> bool:
    """Whether a provider speaks through an HTTP client of ours.

    Bedrock, xAI, Groq, Cohere and Hugging Face bring a client of another kind: then a reply is measured when all of
    it has come, and what the provider says of its rate limits is not seen.
    """
    if provider.startswith("gateway/"):  # no class of its own
        return False
    try:
        wanted = get_type_hints(infer_provider_class(provider).__init__).get("http_client")
    except NameError:  # annotated with a package that is not installed
        return False
    return httpx2.AsyncClient in get_args(wanted)


def _missing_extra(name: PydanticName) -> ConfigError:
    return ConfigError(
        f"`{name.name}` needs a package that is not installed",
        hint=f'pip install "pydantic-ai-slim[{name.provider.partition("-")[0]}]"',
    )


def _open_endpoint(endpoint: Endpoint, stage: StageOne, *, rate_limits: RateLimitSink, clock: Clock) -> Opened:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    client = httpx2.AsyncClient(
        trust_env=not endpoint.loopback,
        timeout=httpx2.Timeout(stage.request_timeout_seconds, connect=stage.connect_timeout_seconds),
        event_hooks={"response": _listening(stage, rate_limits, clock)},
    )
    provider = OpenAIProvider(base_url=endpoint.base_url, api_key=endpoint.api_key or "none", http_client=client)
    model: Model
    match endpoint.kind:
        case "openai-responses":
            model = OpenAIResponsesModel(endpoint.model, provider=provider)
        case "openai-chat":
            # OpenAI took the old name of the limit away; the servers that copied the protocol know it best.
            named = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=endpoint.official)
            model = OpenAIChatModel(endpoint.model, provider=provider, profile=named)
        case _:
            assert_never(endpoint.kind)
    # A server on this machine costs nothing; a proxy has prices of its own.
    cost = cost_of if endpoint.official else lambda response: 0.0 if endpoint.loopback else None
    return Opened(model, cost=cost, close=client.aclose, again_after_timeout=not endpoint.loopback)


def _causes(error: BaseException) -> Iterator[BaseException]:
    while (cause := error.__cause__ or error.__context__) is not None:
        yield cause
        error = cause


_Output = Literal["native", "tool", "text"]
"""The schema as the provider's own structured output, as the one tool that the model must call, or in words."""
_OUTPUTS: tuple[_Output, ...] = ("native", "tool", "text")


class _FormRefused(ModelRefused):
    """The provider does not take the way in which the shape was asked for."""


class _Bounded(httpx2.AsyncByteStream):
    """The body of a response, up to a limit."""

    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._stream, self._max_bytes = stream, max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._max_bytes:
                raise ReplyTooLarge(f"the reply is longer than {self._max_bytes:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def bounded(max_bytes: int) -> _Hook:
    """A hook of the HTTP client that ends a reply which never ends."""

    async def bind(response: httpx2.Response) -> None:
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream, max_bytes)

    return bind


class PydanticModel:
    """A `StructuredModel` on any model of Pydantic AI."""

    def __init__(self, opened: Opened, *, name: str, recorder: Recorder, stage: StageOne) -> None:
        self.name = name
        self.context_window = opened.model.context_window
        self._opened = opened
        self._recorder = recorder
        self._stage = stage
        #: The strictest that the provider was not seen to refuse.
        self._output: _Output = "native" if opened.model.profile.get("supports_json_schema_output") else "tool"
        #: The SDKs are asynchronous: they run on a loop in a thread of its own, which is here as soon as it runs.
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._closing = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="model", daemon=True)
        self._thread.start()

    def complete(self, request: StructuredRequest, *, stop: Stop) -> StructuredReply:
        answered = call_with_retries(
            lambda: self._wait(self._send(request), stop),
            recorder=self._recorder,
            stage=self._stage,
            thread_id=request.thread_id,
            stop=stop,
        )
        form: OutputForm = "plain" if self._output == "text" else "json_schema"
        return StructuredReply(text=answered.text, usage=answered.usage, form=form)

    def close(self) -> None:
        self._loop.result().call_soon_threadsafe(self._closing.set)
        self._thread.join()

    async def _serve(self) -> None:
        try:
            async with self._opened.model:
                self._loop.set_result(asyncio.get_running_loop())
                await self._closing.wait()
        finally:
            self._loop.cancel()  # where it never came to run
            await self._opened.close()

    def _wait(self, sending: Coroutine[None, None, Attempt], stop: Stop) -> Attempt:
        sent = asyncio.run_coroutine_threadsafe(sending, self._loop.result())
        try:
            with stop.waking(sent.cancel):
                return sent.result()
        except (Stopped, CancelledError):
            sent.cancel()
            raise Stopped from None

    async def _send(self, request: StructuredRequest) -> Attempt:
        outputs = _OUTPUTS[_OUTPUTS.index(self._output) :]
        tried: list[str] = []
        for output in outputs:
            tried.append(output)
            attempt = await self._send_as(request, output)
            if not (isinstance(attempt, Failed) and isinstance(attempt.error, _FormRefused)):
                self._output = output
                break
        return after_trying(attempt, tried) if len(tried) > 1 and isinstance(attempt, Failed) else attempt

    async def _send_as(self, request: StructuredRequest, output: _Output) -> Attempt:
        model = self._opened.model
        instructions = request.instructions("plain" if output == "text" else "json_schema")
        settings = ModelSettings(
            max_tokens=request.max_output_tokens,
            thinking=request.effort,
            timeout=self._stage.request_timeout_seconds,
            **NO_SDK_RETRIES,
        )
        settings = unstored(model, settings)
        try:
            async with asyncio.timeout(self._stage.request_timeout_seconds):
                response = await model_request(
                    model,
                    [ModelRequest(parts=[UserPromptPart(request.user)], instructions=instructions)],
                    model_settings=settings,
                    model_request_parameters=_shape(request, output),
                )
        except TimeoutError:
            limit = self._stage.request_timeout_seconds
            error = ModelUnavailable(f"no complete reply within {limit:g} s")
            return Failed(error=error, retryable=self._opened.again_after_timeout)
        except exceptions.AgentRunError as error:
            if isinstance(error, exceptions.ModelHTTPError) and refuses_form(error.status_code, str(error).encode()):
                return Failed(error=_FormRefused(str(error)))
            return failure_of(error, now=self._recorder.clock.now())
        except exceptions.UserError as error:
            return Failed(error=ModelRefused(str(error)))
        except MALFORMED as error:
            return malformed(error)
        if too_long := overlong(response, self._stage):
            return too_long
        return _read(response, cost=self._opened.cost(response))


def _shape(request: StructuredRequest, output: _Output) -> ModelRequestParameters:
    match output:
        case "native":
            return ModelRequestParameters(
                output_mode="native",
                output_object=OutputObjectDefinition(
                    json_schema=dict(request.schema), name=request.schema_name, strict=True
                ),
            )
        case "tool":
            tool = ToolDefinition(
                name=request.schema_name, parameters_json_schema=dict(request.schema), strict=True, kind="output"
            )
            return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
        case "text":
            return ModelRequestParameters(output_mode="text", allow_text_output=True)
        case _:
            assert_never(output)


def _read(response: ModelResponse, *, cost: float | None) -> Attempt:
    usage = usage_of(response)
    calls = [part.args_as_json_str() for part in response.parts if isinstance(part, ToolCallPart)]
    text = calls[0] if calls else response.text or ""
    if response.finish_reason == "content_filter":
        return Failed(
            error=ModelRefused("the model refused, or a content filter stopped it"), usage=usage, cost_usd=cost
        )
    if response.finish_reason == "length":
        return Failed(error=InvalidReply(cut_off("length", usage)), usage=usage, cost_usd=cost)
    if not text:
        return Failed(error=InvalidReply("the reply holds no text"), usage=usage, cost_usd=cost)
    return Answered(text=text, usage=usage, cost_usd=cost)


def overlong(response: ModelResponse, stage: StageOne) -> Failed | None:
    """A reply that is longer than any may be, through a client that has no limit. Its tokens count."""
    texts = (
        part.args_as_json_str() if isinstance(part, ToolCallPart) else part.content
        for part in response.parts
        if isinstance(part, ToolCallPart | TextPart | ThinkingPart)
    )
    if sum(map(len, texts)) <= stage.max_reply_bytes:
        return None
    error = ModelUnavailable(f"the reply is longer than {stage.max_reply_bytes:,} bytes")
    return Failed(error=error, usage=usage_of(response))


def usage_of(response: ModelResponse) -> Usage:
    """The tokens of a response."""
    counted = response.usage
    return Usage(
        input_tokens=counted.input_tokens,
        cached_input_tokens=counted.cache_read_tokens,
        cache_write_tokens=counted.cache_write_tokens,
        output_tokens=counted.output_tokens,
        reasoning_tokens=counted.details.get("reasoning_tokens", 0),
    )


def cost_of(response: ModelResponse) -> float | None:
    """US dollars; None when the price list doesn't know the model."""
    if not response.model_name:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None


def malformed(error: Exception) -> Failed:
    """A reply that made the SDK stumble, or was too long for it."""
    if isinstance(error, ReplyTooLarge):
        return Failed(error=ModelUnavailable(str(error)))
    return Failed(error=InvalidReply(f"the reply is none of the protocol: {type(error).__name__}: {error}"))


def failure_of(error: exceptions.AgentRunError, *, now: int) -> Failed:
    """What an error of Pydantic AI means for us."""
    causes = tuple(_causes(error))
    # "Connection error." alone helps nobody; what is beneath it names the host, the certificate, the limit.
    message = f"{error} ({causes[-1]})" if isinstance(error, exceptions.ModelConnectionError) and causes else str(error)
    match error:
        case exceptions.ModelContextWindowExceededError():
            return Failed(error=ContextTooLong(message))
        case exceptions.ModelHTTPError():
            body = msgspec.json.encode(error.body, enc_hook=str)
            failed = from_status(error.status_code, body, headers=error.headers or {}, now=now)
            if failed.retryable and failed.retry_after is None:
                return msgspec.structs.replace(failed, retry_after=error.retry_after)
            return failed
        case exceptions.ModelQuotaExceededError():
            return Failed(error=QuotaExhausted(message))
        case exceptions.ModelAuthenticationError() | exceptions.ModelNotFoundError():
            return Failed(error=AccessRefused(message))
        case exceptions.ModelRateLimitError():
            return Failed(error=RateLimited(message), retryable=True, retry_after=error.retry_after)
        case (
            exceptions.ModelUnavailableError()
            | exceptions.ModelServerError()
            | exceptions.ModelConnectionError()
            | exceptions.ModelRequestTimeout()
        ):
            if ProviderError(message=message).means_too_long:
                return Failed(error=ContextTooLong(message))
            return Failed(error=ModelUnavailable(message), retryable=True, retry_after=error.retry_after)
        case exceptions.ContentFilterError() | exceptions.ModelRequestRejectedError():
            return Failed(error=ModelRefused(message))
        case exceptions.ModelAPIError() if not isinstance(error.__cause__, ValueError):
            return Failed(error=ModelUnavailable(message), retryable=True, retry_after=error.retry_after)
        case _:
            return Failed(error=InvalidReply(message))


def unstored(model: Model, settings: ModelSettings) -> ModelSettings:
    """`settings`, so that OpenAI does not keep what it is sent, as its Responses API does unless it is told not to."""
    if model.system == "openai":
        from pydantic_ai.models.openai import OpenAIResponsesModel

        if isinstance(model, OpenAIResponsesModel):
            settings["openai_store"] = False  # type: ignore[typeddict-unknown-key]  # a provider's own setting
    return settings


def with_effort(model: Model, settings: ModelSettings, effort: str | None) -> ModelSettings:
    """`settings` with the effort as the provider calls it: of OpenAI's protocols whatever the model's name, since a
    table of names knows no server of the user's. None: without."""
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel

    if not isinstance(model, OpenAIChatModel | OpenAIResponsesModel):
        return settings
    told: dict[str, Any] = {name: value for name, value in settings.items() if name != "thinking"}
    if effort:
        told["openai_reasoning_effort"] = effort
    return cast("ModelSettings", told)


def takes_effort(model: Model) -> bool:
    """Whether Pydantic AI would send an effort to a model."""
    return bool(model.profile.get("supports_thinking") or model.profile.get("thinking_always_enabled"))


def refuses_effort(error: exceptions.AgentRunError) -> bool:
    """Whether a request failed only because the model can't be told how hard to think."""
    return isinstance(error, exceptions.ModelHTTPError) and wants_no_effort(
        error.status_code, msgspec.json.encode(error.body, enc_hook=str)
    )
