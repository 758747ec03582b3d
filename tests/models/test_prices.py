"""List prices of what the settings name, without a call."""

from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.config import OFFLINE, Provider, Settings
from stillroom.models.prices import context_window_of, price_of
from stillroom.spending import Usage

ENVIRON = {"OPENAI_API_KEY": "k"}
USAGE = Usage(input_tokens=1_000_000, output_tokens=10_000)
SETTINGS = Settings(
    home=Path("/nowhere"),
    providers={
        "here": Provider(kind="openai-chat", base_url="http://127.0.0.1:8080/v1", context_window=8192),
        "proxy": Provider(kind="openai-chat", base_url="https://proxy.example/v1"),
    },
)


def price(name: str, usage: Usage = USAGE) -> float | None:
    return price_of(name, SETTINGS, environ=ENVIRON)(usage)


def test_rules_and_servers_on_this_machine_cost_nothing() -> None:
    assert price(OFFLINE) == price("here:m") == 0.0


@pytest.mark.parametrize(
    "name", ["openai-responses:gpt-5-mini", "anthropic:claude-sonnet-4-5", "google-gla:gemini-2.5-pro"]
)
def test_providers_have_a_list(name: str) -> None:
    cached = Usage(input_tokens=1_000_000, cached_input_tokens=900_000, output_tokens=10_000)
    full, less = price(name), price(name, cached)
    assert full is not None
    assert less is not None
    assert 0 < less < full
    window = context_window_of(name, SETTINGS, environ=ENVIRON)
    assert window is None or window >= 100_000  # the table does not have all of them


def test_the_price_of_a_proxy_or_an_unheard_model_is_not_known() -> None:
    assert price("proxy:gpt-5-mini") is None
    assert price("openai:no-such-model") is price("nobody:m") is None


def test_a_window_is_known_where_it_is_configured() -> None:
    assert context_window_of("here:m", SETTINGS, environ=ENVIRON) == 8192
    assert context_window_of(OFFLINE, SETTINGS) is None
