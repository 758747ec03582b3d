"""What a tree of sessions may spend, and when its agents are told: checked once, frozen."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from stillroom.config import RolloutBudgetKeys, RolloutBudgetTable, Settings
from stillroom.errors import ConfigError

#: Weighted tokens of one ledger at most: a thousand times what the largest reported session tree used. In millionths
#: it and one charge more still fit the 64 bits of a database column.
MAX_LIMIT_TOKENS = 4 * 10**12

_TABLE = "features.rollout_budget"


class RolloutBudgetConfig(RolloutBudgetKeys, frozen=True, kw_only=True):
    """The allowance of a tree of sessions. Keys and defaults are Codex's; those after `enforce_limit` are ours.

    Raises `ConfigError` for what can't be used. Without one of ours set, every charge is what Codex would charge.
    """

    def __post_init__(self) -> None:
        _check_limit(self)
        _check_reminders(self)
        for name in (
            "sampling_token_weight",
            "prefill_token_weight",
            "cached_token_weight",
            "cache_write_token_weight",
            "reasoning_token_weight",
        ):
            weight = getattr(self, name)
            if weight is not None and not (_is_finite(weight) and weight >= 0):
                raise ConfigError(f"{_TABLE}.{name} must be finite and non-negative")
        if not (_is_finite(self.grace_tokens) and 0 <= self.grace_tokens <= MAX_LIMIT_TOKENS):
            raise ConfigError(f"{_TABLE}.grace_tokens must be between 0 and {MAX_LIMIT_TOKENS}")

    @property
    def limit(self) -> float:
        """The limit, whichever key gave it."""
        limit = self.limit_tokens if self.limit_budget is None else self.limit_budget
        assert limit is not None  # checked when this was made
        return limit


def load_budget_config(settings: Settings) -> RolloutBudgetConfig | None:
    """The `[features.rollout_budget]` table of the settings; None when the feature is off. Raises `ConfigError`."""
    chosen = settings.features.rollout_budget
    enabled = chosen if isinstance(chosen, bool) else chosen.enabled
    return RolloutBudgetConfig(**given_keys(settings)) if enabled else None


def given_keys(settings: Settings) -> dict[str, Any]:
    """What the table gives a budget, defaults included, whether the feature is on or off."""
    chosen = settings.features.rollout_budget
    table = msgspec.structs.asdict(RolloutBudgetTable() if isinstance(chosen, bool) else chosen)
    return {name: table[name] for name in RolloutBudgetConfig.__struct_fields__}


def _check_limit(config: RolloutBudgetConfig) -> None:
    if config.limit_tokens is not None and config.limit_budget is not None:
        raise ConfigError(f"{_TABLE}.limit_tokens and limit_budget cannot both be set")
    name = "limit_tokens" if config.limit_budget is None else "limit_budget"
    limit = getattr(config, name)
    if limit is None:
        raise ConfigError(
            f"{_TABLE}.limit_tokens is required when rollout_budget is enabled",
            hint="set `limit_tokens`, e.g. `limit_tokens = 1000000`",
        )
    if name == "limit_budget" and not _is_finite(limit):
        raise ConfigError(f"{_TABLE}.limit_budget must be finite and positive")
    if not (_is_finite(limit) and limit > 0):
        raise ConfigError(f"{_TABLE}.{name} must be positive")
    if limit > MAX_LIMIT_TOKENS:
        raise ConfigError(f"{_TABLE}.{name} must be at most {MAX_LIMIT_TOKENS}")


def _check_reminders(config: RolloutBudgetConfig) -> None:
    thresholds, interval = config.reminder_at_remaining_tokens, config.reminder_interval_tokens
    if thresholds is not None and interval is not None:
        raise ConfigError(f"{_TABLE}.reminder_at_remaining_tokens and reminder_interval_tokens cannot both be set")
    if interval is not None:
        if not (_is_finite(interval) and interval > 0):
            raise ConfigError(f"{_TABLE}.reminder_interval_tokens must be positive")
    elif thresholds is None:
        raise ConfigError(
            f"{_TABLE}.reminder_at_remaining_tokens is required when rollout_budget is enabled",
            hint="an empty list is allowed: `reminder_at_remaining_tokens = []`",
        )
    elif not all(_is_finite(threshold) and 0 < threshold < config.limit for threshold in thresholds):
        raise ConfigError(f"{_TABLE}.reminder_at_remaining_tokens must contain only positive values below limit_tokens")


def _is_finite(number: object) -> bool:
    """A number that can be reckoned with: `True` is none, nor is an integer beyond what a float can hold."""
    if not isinstance(number, int | float) or isinstance(number, bool):
        return False
    try:
        return math.isfinite(number)
    except OverflowError:
        return False
