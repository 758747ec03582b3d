from __future__ import annotations

import msgspec
import pytest

from stillroom.models import RateLimitSink

PRIMARY = {"used_percent": 91.5, "window_minutes": 300, "resets_at": 5000}


def snapshot(headers: dict[str, str]) -> object:
    sink = RateLimitSink()
    sink.observe(headers, now=1000)
    found = sink.snapshot_json()
    return None if found is None else msgspec.json.decode(found)


def test_codex_headers_are_taken_as_they_are():
    headers = {
        "x-codex-primary-used-percent": "91.5",
        "x-codex-primary-window-minutes": "300",
        "x-codex-primary-reset-at": "5000",
    }
    assert snapshot(headers) == {
        "limit_id": "codex",
        "primary": PRIMARY,
        "secondary": None,
        "rate_limit_reached_type": None,
    }


def test_openai_headers_become_the_same_shape():
    headers = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "125",
        "x-ratelimit-reset-requests": "1m30s",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "1000",
        "x-ratelimit-reset-tokens": "20ms",
    }
    assert snapshot(headers) == {
        "limit_id": "codex",
        "primary": {"used_percent": 75.0, "window_minutes": 1, "resets_at": 1090},
        "secondary": {"used_percent": 0.0, "window_minutes": 1, "resets_at": 1000},
        "rate_limit_reached_type": None,
    }


def test_anthropic_headers_become_the_same_shape():
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "5",
        "anthropic-ratelimit-requests-reset": "1970-01-01T00:20:00Z",
        "anthropic-ratelimit-tokens-limit": "80000",
        "anthropic-ratelimit-tokens-remaining": "60000",
        "anthropic-ratelimit-tokens-reset": "soon",
    }
    assert snapshot(headers) == {
        "limit_id": "codex",
        "primary": {"used_percent": 90.0, "window_minutes": 1, "resets_at": 1200},
        "secondary": {"used_percent": 25.0, "window_minutes": 1, "resets_at": 1060},
        "rate_limit_reached_type": None,
    }


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "application/json"},
        {"x-ratelimit-limit-requests": "many", "x-ratelimit-remaining-requests": "few"},
        {"x-ratelimit-limit-requests": "0", "x-ratelimit-remaining-requests": "0"},
        {"x-codex-primary-used-percent": "nan"},
        {"anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-reset": "9999-99-99"},
        {"x-codex-primary-used-percent": "9" * 1000},
    ],
)
def test_nothing_usable_is_no_snapshot(headers):
    assert snapshot(headers) is None


def test_a_response_without_limits_does_not_wipe_what_is_known():
    sink = RateLimitSink()
    sink.observe({"x-codex-primary-used-percent": "10"}, now=1)
    sink.observe({"content-type": "text/html"}, now=2)
    assert sink.snapshot_json() is not None
