"""What one response costs.

Charges are whole millionths of a weighted token: whole numbers add up to the same sum in any order, floats don't.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from stillroom.budget.config import MAX_LIMIT_TOKENS, RolloutBudgetConfig
from stillroom.errors import InvalidUsage
from stillroom.spending import Usage

#: Millionths of a weighted token in one.
PER_TOKEN = 1_000_000
#: One charge at most, and what a ledger's sum in a database saturates at: just above every limit.
MAX_UNITS = MAX_LIMIT_TOKENS * PER_TOKEN + 1

Weigh = Callable[[Usage], int]


def units_of(tokens: float) -> int:
    """Weighted tokens as millionths. The number must be finite."""
    return min(round(tokens * PER_TOKEN), MAX_UNITS)


def weigher(config: RolloutBudgetConfig) -> Weigh:
    """How this configuration weighs a usage. What it returns raises `InvalidUsage` for what is no count."""
    return _weigh_as_codex(config) if _is_codex(config) else _weigh_by_kind(config)


def provider_units(units: object) -> int:
    """A charge that the provider set itself. Raises `InvalidUsage` unless it is finite and not negative."""
    if isinstance(units, bool) or not isinstance(units, int | float) or not 0 <= units < math.inf:
        raise InvalidUsage("response.completed usage.codex_rollout_budget_units must be finite and non-negative")
    return units_of(units) if units <= MAX_LIMIT_TOKENS else MAX_UNITS


def count_of(tokens: object) -> int:
    """A count as some providers give it: `None` is nothing, `12.0` is twelve. Raises `InvalidUsage` for the rest."""
    if tokens is None:
        return 0
    if isinstance(tokens, int) and not isinstance(tokens, bool):
        return tokens
    if isinstance(tokens, float) and math.isfinite(tokens):
        return int(tokens)
    raise InvalidUsage(f"a count of tokens must be a whole number, not `{tokens!r:.40}`")


def _is_codex(config: RolloutBudgetConfig) -> bool:
    return (
        not config.cached_token_weight
        and config.cache_write_token_weight is None
        and config.reasoning_token_weight is None
    )


def _weigh_as_codex(config: RolloutBudgetConfig) -> Weigh:
    """Output and input that was not cached."""
    sampling, prefill = _scaled(config.sampling_token_weight), _scaled(config.prefill_token_weight)

    def weigh(usage: Usage) -> int:
        try:
            fresh, cached, sampled = usage.input_tokens, usage.cached_input_tokens, usage.output_tokens
            if not (fresh.__class__ is cached.__class__ is sampled.__class__ is int):
                fresh, cached, sampled = count_of(fresh), count_of(cached), count_of(sampled)
            if cached > 0:
                fresh -= cached
            charge = sampled * sampling if sampled > 0 else 0
            if fresh > 0:
                charge += fresh * prefill
        except (AttributeError, OverflowError) as error:
            return _too_large_or_no_usage(usage, error)
        return charge if isinstance(charge, int) and charge < MAX_UNITS else _whole(charge)

    return weigh


def _weigh_by_kind(config: RolloutBudgetConfig) -> Weigh:
    """Every kind of token by its own weight. Parts that claim to be more than their whole are cut to it."""
    sampling, prefill, cache = (
        _scaled(weight)
        for weight in (config.sampling_token_weight, config.prefill_token_weight, config.cached_token_weight)
    )
    write = _scaled(_else(config.cache_write_token_weight, config.prefill_token_weight))
    think = _scaled(_else(config.reasoning_token_weight, config.sampling_token_weight))

    def weigh(usage: Usage) -> int:
        try:
            cached = max(count_of(usage.cached_input_tokens), 0)
            fresh = max(count_of(usage.input_tokens) - cached, 0)
            written = min(max(count_of(usage.cache_write_tokens), 0), fresh)
            sampled = max(count_of(usage.output_tokens), 0)
            thought = min(max(count_of(usage.reasoning_tokens), 0), sampled)
            charge = (
                (sampled - thought) * sampling
                + thought * think
                + (fresh - written) * prefill
                + written * write
                + cached * cache
            )
        except (AttributeError, OverflowError) as error:
            return _too_large_or_no_usage(usage, error)
        return _whole(charge)

    return weigh


def _scaled(weight: float) -> float:
    """Millionths for one token; whole where that is exact, which is exact for any count and faster."""
    scaled = min(float(weight) * PER_TOKEN, float(MAX_UNITS))
    return int(scaled) if scaled.is_integer() else scaled


def _whole(charge: float) -> int:
    return round(charge) if charge < MAX_UNITS else MAX_UNITS


def _too_large_or_no_usage(usage: object, error: Exception) -> int:
    if isinstance(error, OverflowError):
        return MAX_UNITS
    raise InvalidUsage(f"`{type(usage).__name__}` tells no tokens; pass a `stillroom.Usage`") from error


def _else(weight: float | None, other: float) -> float:
    return other if weight is None else weight
