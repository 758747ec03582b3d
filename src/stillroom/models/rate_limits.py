"""What the provider last said about its rate limits, kept for the guard of the next pass.

The snapshot has the shape that Codex writes into its rollouts (`token_count`), so that one comparison serves both:
`x-codex-*` headers are taken as they are; of `x-ratelimit-*` (OpenAI and those like it) and `anthropic-ratelimit-*` the
requests are the primary window, tokens the secondary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

_MINUTE_SECONDS = 60
_RESET = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?$")
_MAX_HEADER_CHARS = 200
_TELLING = ("x-ratelimit-", "x-codex-", "anthropic-ratelimit-")


class RateLimitSink:
    """Keeps the limits of the last response that told any."""

    def __init__(self) -> None:
        self._headers: dict[str, str] = {}
        self._at = 0

    def observe(self, headers: Mapping[str, str], *, now: int) -> None:
        """Take what a response's headers say. Names are lower case, as HTTP clients give them."""
        told = {
            name: value
            for name, value in headers.items()
            if name.startswith(_TELLING) and len(value) <= _MAX_HEADER_CHARS
        }
        if told:
            self._headers, self._at = told, now

    def snapshot_json(self) -> bytes | None:
        """The limits as Codex's `rate_limits` object; None if no response told any."""
        headers, at = self._headers, self._at
        windows = {
            "primary": _codex_window(headers, "primary")
            or _openai_window(headers, "requests", at)
            or _anthropic_window(headers, "requests", at),
            "secondary": _codex_window(headers, "secondary")
            or _openai_window(headers, "tokens", at)
            or _anthropic_window(headers, "tokens", at),
        }
        if not any(windows.values()):
            return None
        reached = headers.get("x-codex-rate-limit-reached-type") or None
        return msgspec.json.encode({"limit_id": "codex", **windows, "rate_limit_reached_type": reached})


def _codex_window(headers: Mapping[str, str], which: str) -> dict[str, Any] | None:
    used = _number(headers.get(f"x-codex-{which}-used-percent"))
    if used is None:
        return None
    return {
        "used_percent": used,
        "window_minutes": _whole(headers.get(f"x-codex-{which}-window-minutes")),
        "resets_at": _whole(headers.get(f"x-codex-{which}-reset-at")),
    }


def _openai_window(headers: Mapping[str, str], what: str, at: int) -> dict[str, Any] | None:
    resets_in = _duration_seconds(headers.get(f"x-ratelimit-reset-{what}"))
    return _window(
        limit=_number(headers.get(f"x-ratelimit-limit-{what}")),
        remaining=_number(headers.get(f"x-ratelimit-remaining-{what}")),
        resets_at=None if resets_in is None else at + round(resets_in),
        at=at,
    )


def _anthropic_window(headers: Mapping[str, str], what: str, at: int) -> dict[str, Any] | None:
    """`…-tokens-…` tells of the token limit that is nearest to its end, of whatever kind."""
    return _window(
        limit=_number(headers.get(f"anthropic-ratelimit-{what}-limit")),
        remaining=_number(headers.get(f"anthropic-ratelimit-{what}-remaining")),
        resets_at=_moment_seconds(headers.get(f"anthropic-ratelimit-{what}-reset")),
        at=at,
    )


def _window(*, limit: float | None, remaining: float | None, resets_at: int | None, at: int) -> dict[str, Any] | None:
    if limit is None or remaining is None or limit <= 0:
        return None
    # Without a time of reset the window would count as open for ever; a minute is the unit of these limits.
    return {
        "used_percent": min(max(100.0 * (1 - remaining / limit), 0.0), 100.0),
        "window_minutes": 1,
        "resets_at": at + _MINUTE_SECONDS if resets_at is None else resets_at,
    }


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and value == value and abs(value) != float("inf") else None


def _whole(text: str | None) -> int | None:
    value = _number(text)
    return None if value is None else int(value)


def _moment_seconds(text: str | None) -> int | None:
    """`2026-11-30T09:01:00Z`, of which one without an offset tells no moment."""
    try:
        moment = datetime.fromisoformat(text) if text else None
        return None if moment is None or moment.tzinfo is None else int(moment.timestamp())
    except (ValueError, OverflowError):
        return None


def _duration_seconds(text: str | None) -> float | None:
    """`6m0s`, `1.5s`, `20ms`, as Go prints durations."""
    found = _RESET.match(text) if text else None
    if found is None:
        return None
    days, hours, minutes, seconds, millis = (float(group) if group else 0.0 for group in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds + millis / 1000
