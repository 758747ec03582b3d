"""Providers whose SDK speaks through a client of ours, and what holds for the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai.messages import ModelResponse, ModelResponsePart, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.usage import RequestUsage

from stillroom.config import Settings, StageOne
from stillroom.errors import ModelUnavailable
from stillroom.models import is_watched
from stillroom.models.pydantic import overlong, takes_client


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
    stage = StageOne(max_reply_bytes=100)
    assert overlong(ModelResponse(parts=[TextPart("x" * 100)]), stage) is None
    failed = overlong(ModelResponse(parts=[part], usage=RequestUsage(output_tokens=7)), stage)
    assert failed is not None
    assert isinstance(failed.error, ModelUnavailable)
    assert str(failed.error) == "the reply is longer than 100 bytes"
    assert (failed.retryable, failed.usage.output_tokens) == (False, 7)
