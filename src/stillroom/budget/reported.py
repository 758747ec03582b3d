"""What providers report of a response: one `usage` object, in the words of whichever protocol.

OpenAI Responses     input_tokens, input_tokens_details.cached_tokens, output_tokens, output_tokens_details.…
Chat Completions     prompt_tokens, prompt_tokens_details.cached_tokens, completion_tokens, completion_tokens_details.…
Anthropic Messages   input_tokens without the cache, cache_read_input_tokens, cache_creation_input_tokens, output_tokens
Codex's rollouts     input_tokens, cached_input_tokens, output_tokens, reasoning_output_tokens
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stillroom.budget.charges import count_of, provider_units
from stillroom.errors import InvalidUsage
from stillroom.spending import Usage

_COUNTS = {"input_tokens", "prompt_tokens", "output_tokens", "completion_tokens"}
_UNITS = "codex_rollout_budget_units"


class ReportedUsage(NamedTuple):
    """Tokens, and the charge if the provider sets it itself."""

    usage: Usage
    units: float | None = None


def read_usage(reported: object) -> ReportedUsage | None:
    """Read a `usage` object as it stands in a response's JSON; None when it tells nothing.

    Raises `InvalidUsage` for a count that is no number, and for units that are not finite and non-negative.
    """
    if reported is None:
        return None
    if not isinstance(reported, Mapping):
        raise InvalidUsage(f"`usage` must be an object, not `{reported!r:.40}`")
    units = reported.get(_UNITS)
    if units is not None:
        provider_units(units)
    elif not any(reported.get(key) is not None for key in _COUNTS):
        return None
    return ReportedUsage(_usage(reported), units)


def _usage(reported: Mapping[object, object]) -> Usage:
    given = _first(reported, "input_tokens", "prompt_tokens")
    inputs = _details(reported, "input_tokens_details", "prompt_tokens_details")
    outputs = _details(reported, "output_tokens_details", "completion_tokens_details")
    read, written = _first(reported, "cache_read_input_tokens"), _first(reported, "cache_creation_input_tokens")
    if reported.get("input_tokens") is not None and (read or written):
        given += max(read, 0) + max(written, 0)  # Anthropic counts what is beside the cache
    return Usage(
        input_tokens=given,
        cached_input_tokens=read
        or _first(inputs, "cached_tokens")
        or _first(reported, "cached_input_tokens", "prompt_cache_hit_tokens"),
        cache_write_tokens=written or _first(inputs, "cache_write_tokens"),
        output_tokens=_first(reported, "output_tokens", "completion_tokens"),
        reasoning_tokens=_first(outputs, "reasoning_tokens") or _first(reported, "reasoning_output_tokens"),
    )


def _first(reported: Mapping[object, object], *keys: str) -> int:
    return next((count_of(reported[key]) for key in keys if reported.get(key) is not None), 0)


def _details(reported: Mapping[object, object], *keys: str) -> Mapping[object, object]:
    return next((found for key in keys if isinstance(found := reported.get(key), Mapping)), {})
