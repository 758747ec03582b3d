"""Settings that can't be used are refused with Codex's messages, in Codex's order (spec §8.1)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from stillroom.budget import RolloutBudgetConfig, load_budget_config
from stillroom.config import load_settings
from stillroom.errors import ConfigError


def load(tmp_path: Path, text: str) -> RolloutBudgetConfig | None:
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    return load_budget_config(load_settings(home=tmp_path))


def test_codexs_table_is_taken_as_it_is(tmp_path: Path) -> None:
    text = "[features.rollout_budget]\nenabled = true\nlimit_tokens = 1000000\n"
    text += "reminder_at_remaining_tokens = [500000, 65536]\nsampling_token_weight = 2\n"
    assert load(tmp_path, text) == RolloutBudgetConfig(
        limit_tokens=1_000_000, reminder_at_remaining_tokens=(500_000, 65_536), sampling_token_weight=2.0
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[features]\nrollout_budget = false\n",
        "[features.rollout_budget]\nlimit_tokens = -5\n",
        "[features.rollout_budget]\nenabled = false\nlimit_tokens = 0\n",
    ],
)
def test_switched_off_the_table_is_ignored(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text) is None


@pytest.mark.parametrize("text", ["[features]\nrollout_budget = true\n", "[features.rollout_budget]\nenabled = true\n"])
def test_a_switch_alone_lacks_its_limit(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert str(caught.value) == "features.rollout_budget.limit_tokens is required when rollout_budget is enabled"


def test_an_unknown_key_is_named_with_the_keys_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="limit_token`") as caught:
        load(tmp_path, "[features.rollout_budget]\nenabled = true\nlimit_token = 5\n")
    assert "limit_tokens" in str(caught.value.hint)


@pytest.mark.parametrize("text", ['rollout_budget = "yes"', 'rollout_budget = {limit_tokens = "5"}'])
def test_a_value_of_the_wrong_kind_is_named_with_the_keys_of_its_table(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"got `str` - at `\$\.features\.rollout_budget") as caught:
        load(tmp_path, f"[features]\n{text}\n")
    assert "reminder_at_remaining_tokens" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"limit_tokens": None}, "limit_tokens is required when rollout_budget is enabled"),
        ({"limit_tokens": 0}, "limit_tokens must be positive"),
        ({"limit_tokens": -1}, "limit_tokens must be positive"),
        ({"limit_tokens": 10**13}, "limit_tokens must be at most 4000000000000"),
        ({"limit_budget": 5.0}, "limit_tokens and limit_budget cannot both be set"),
        ({"limit_tokens": None, "limit_budget": math.nan}, "limit_budget must be finite and positive"),
        (
            {"reminder_at_remaining_tokens": None},
            "reminder_at_remaining_tokens is required when rollout_budget is enabled",
        ),
        (
            {"reminder_interval_tokens": 10},
            "reminder_at_remaining_tokens and reminder_interval_tokens cannot both be set",
        ),
        (
            {"reminder_at_remaining_tokens": None, "reminder_interval_tokens": 0},
            "reminder_interval_tokens must be positive",
        ),
        *(
            (
                {"reminder_at_remaining_tokens": (50, threshold)},
                "reminder_at_remaining_tokens must contain only positive values below limit_tokens",
            )
            for threshold in (0, -1, 100, 101)
        ),
        *(
            ({field: weight}, f"{field} must be finite and non-negative")
            for field in ("sampling_token_weight", "prefill_token_weight", "cached_token_weight")
            for weight in (-0.1, math.nan, math.inf, 10**400)
        ),
        ({"grace_tokens": -1}, "grace_tokens must be between 0 and 4000000000000"),
        ({"limit_tokens": 0, "sampling_token_weight": -1}, "limit_tokens must be positive"),
    ],
)
def test_what_cannot_be_used_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RolloutBudgetConfig(**{"limit_tokens": 100, "reminder_at_remaining_tokens": (), **keys})
    assert str(caught.value) == f"features.rollout_budget.{message}"


def test_a_limit_need_not_be_whole() -> None:
    assert RolloutBudgetConfig(limit_budget=2.5, reminder_at_remaining_tokens=(1, 2)).limit == 2.5


def test_thresholds_need_neither_order_nor_be_unique() -> None:
    RolloutBudgetConfig(limit_tokens=100, reminder_at_remaining_tokens=(25, 75, 25))
