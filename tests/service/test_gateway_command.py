"""What `stillroom budget serve` makes of settings and options."""

from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.budget import RolloutBudgetConfig
from stillroom.cli.budget_serve import _config
from stillroom.config import load_settings
from stillroom.errors import ConfigError


def config(
    tmp_path: Path, text: str = "", *, limit: int | None = None, remind_at: str | None = None
) -> RolloutBudgetConfig:
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    return _config(load_settings(home=tmp_path), limit=limit, remind_at=remind_at)


TABLE = "[features.rollout_budget]\nlimit_budget = 2.5\nreminder_interval_tokens = 1\nsampling_token_weight = 2.0\n"


def test_the_command_line_wins_and_the_weights_stay(tmp_path: Path) -> None:
    assert config(tmp_path, limit=1000).reminder_at_remaining_tokens == (500, 250, 100)
    assert config(tmp_path, limit=1).reminder_at_remaining_tokens == ()
    assert config(tmp_path, limit=1000, remind_at="500,1_0").reminder_at_remaining_tokens == (500, 10)
    both = config(tmp_path, TABLE, limit=1000, remind_at="5")
    assert (both.limit, both.reminder_at_remaining_tokens, both.sampling_token_weight) == (1000, (5,), 2.0)
    kept = config(tmp_path, TABLE)
    assert (kept.limit, kept.reminder_interval_tokens) == (2.5, 1)


@pytest.mark.parametrize(
    ("text", "remind_at", "told"),
    [
        ("", None, "how much may a tree of sessions use"),
        ("[features.rollout_budget]\nlimit_budget = inf\n", None, "must be finite"),
        ("[features.rollout_budget]\nlimit_tokens = 5\n", "many", "no list of numbers"),
        ("[features.rollout_budget]\nlimit_tokens = 5\n", "7", "below limit_tokens"),
    ],
)
def test_what_is_no_budget_is_refused_before_anything_listens(
    tmp_path: Path, text: str, remind_at: str | None, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        config(tmp_path, text, remind_at=remind_at)
