"""Providers whose SDK speaks through a client of ours, and what holds for the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from stillroom.config import Settings, StageOne
from stillroom.errors import ModelUnavailable
from stillroom.models import StructuredRequest, is_watched
from stillroom.models.agent import RecordingModel
from stillroom.models.attempts import Recorder
from stillroom.models.pydantic import Opened, PydanticModel, overlong, takes_client
from stillroom.stopping import Stop
from stillroom.testing import FixedClock, ListLedger

STAGE = StageOne(max_reply_bytes=100)


@pytest.mark.parametrize(
    ("provider", "takes"),
    [
        ("anthropic", True),
        ("deepseek", True),
        ("ollama", True),
        ("gateway/openai", False),
        ("github", False),  # a client of another package
        ("sentence-transformers", False),  # no client
    ],
)
def test_only_a_provider_that_takes_our_kind_of_client_is_given_it(provider: str, takes: bool) -> None:
    assert takes_client(provider) is takes


def test_what_is_spoken_to_without_an_sdk_is_watched() -> None:
    settings = Settings(home=Path("/"))
    assert is_watched("offline", settings, environ={})
    assert is_watched("openai:m", settings, environ={"OPENAI_API_KEY": "k"})
    assert not is_watched("gateway/openai:m", settings, environ={})


@pytest.mark.parametrize(
    "part",
    [
        TextPart("x" * 101),
        ThinkingPart("x" * 101),
        ToolCallPart("write", {"content": "x" * 90}),
        ToolCallPart("write", "x" * 101),
    ],
)
def test_a_reply_through_another_client_is_measured_when_it_is_there(part: ModelResponsePart) -> None:
    assert overlong(ModelResponse(parts=[TextPart("x" * 100)]), STAGE) is None
    failed = overlong(ModelResponse(parts=[part], usage=RequestUsage(output_tokens=7)), STAGE)
    assert failed is not None
    assert isinstance(failed.error, ModelUnavailable)
    assert str(failed.error) == "the reply is longer than 100 bytes"
    assert (failed.retryable, failed.usage.output_tokens) == (False, 7)


def talkative(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """A model behind a client that nobody limits."""
    return ModelResponse(parts=[TextPart("x" * 101)], usage=RequestUsage(output_tokens=7))


def opened() -> tuple[Opened, Recorder, ListLedger]:
    ledger = ListLedger()
    recorder = Recorder(ledger=ledger, clock=FixedClock(0), model="m", phase="extract", redact=str)
    return Opened(model=FunctionModel(talkative), cost=lambda response: None), recorder, ledger


def test_such_a_reply_fails_a_thread_and_is_counted() -> None:
    model, recorder, ledger = opened()
    asked = PydanticModel(model, name="m", recorder=recorder, stage=STAGE)
    request = StructuredRequest(
        system="s", user="u", schema={"type": "object"}, schema_name="n", effort="low", max_output_tokens=10
    )
    with pytest.raises(ModelUnavailable, match="longer than 100 bytes"):
        asked.complete(request, stop=Stop())
    asked.close()
    assert [(call.outcome, call.usage.output_tokens) for call in ledger.calls] == [("unavailable", 7)]


@pytest.mark.anyio
async def test_such_a_reply_ends_an_agent_and_is_counted() -> None:
    model, recorder, ledger = opened()
    with pytest.raises(ModelUnavailable, match="longer than 100 bytes"):
        await Agent(RecordingModel(model, recorder=recorder, stage=STAGE)).run("go")
    assert [(call.outcome, call.usage.output_tokens) for call in ledger.calls] == [("unavailable", 7)]
