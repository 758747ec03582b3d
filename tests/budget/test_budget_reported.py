"""A provider's `usage` object, as it stands in a response."""

from __future__ import annotations

import math
from typing import Any

import pytest

from stillroom.budget import ReportedUsage, read_usage
from stillroom.errors import InvalidUsage
from stillroom.spending import Usage

WHOLE = Usage(input_tokens=100, cached_input_tokens=40, output_tokens=30, reasoning_tokens=10)


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 40},
                "output_tokens": 30,
                "output_tokens_details": {"reasoning_tokens": 10},
                "total_tokens": 130,
            },
            WHOLE,
        ),
        (
            {
                "prompt_tokens": 100,
                "prompt_tokens_details": {"cached_tokens": 40, "audio_tokens": 0},
                "completion_tokens": 30,
                "completion_tokens_details": {"reasoning_tokens": 10},
            },
            WHOLE,
        ),
        (
            {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 30, "reasoning_output_tokens": 10},
            WHOLE,
        ),
        (
            {"input_tokens": 40, "cache_read_input_tokens": -40, "cache_creation_input_tokens": -9},
            Usage(input_tokens=40, cached_input_tokens=-40, cache_write_tokens=-9),
        ),
        (
            {
                "input_tokens": 40,
                "cache_read_input_tokens": 40,
                "cache_creation_input_tokens": 20,
                "output_tokens": 30,
                "service_tier": "standard",
            },
            Usage(input_tokens=100, cached_input_tokens=40, cache_write_tokens=20, output_tokens=30),
        ),
        (
            # LiteLLM reports Anthropic's counts beside OpenAI's, which have them in.
            {"prompt_tokens": 100, "completion_tokens": 30, "cache_read_input_tokens": 40},
            Usage(input_tokens=100, cached_input_tokens=40, output_tokens=30),
        ),
        ({"input_tokens": 5, "input_tokens_details": None, "output_tokens": None}, Usage(input_tokens=5)),
        ({"output_tokens": 3.0}, Usage(output_tokens=3)),
        (
            {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 4}},
            Usage(input_tokens=9, cached_input_tokens=2, cache_write_tokens=4),
        ),
    ],
)
def test_every_protocols_words_are_understood(reported: dict[str, Any], usage: Usage) -> None:
    assert read_usage(reported) == ReportedUsage(usage)


def test_units_of_the_provider_come_with_it() -> None:
    assert read_usage({"codex_rollout_budget_units": 40.5}) == ReportedUsage(Usage(), 40.5)
    assert read_usage({"output_tokens": 3, "codex_rollout_budget_units": None}) == ReportedUsage(Usage(output_tokens=3))


@pytest.mark.parametrize("reported", [None, {}, {"total_tokens": 5}, {"input_tokens": None}])
def test_what_tells_nothing_is_none(reported: Any) -> None:
    assert read_usage(reported) is None


@pytest.mark.parametrize(
    "reported",
    [
        "5",
        [5],
        5,
        {"input_tokens": "5"},
        {"output_tokens": math.nan},
        {"output_tokens": {"tokens": 5}},
        {"input_tokens": 5, "input_tokens_details": {"cached_tokens": "many"}},
        {"output_tokens": 5, "codex_rollout_budget_units": -1},
        {"codex_rollout_budget_units": "40"},
    ],
)
def test_what_is_malformed_is_refused(reported: Any) -> None:
    with pytest.raises(InvalidUsage):
        read_usage(reported)
