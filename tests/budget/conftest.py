from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stillroom.budget import Budget, RolloutBudget, RolloutBudgetConfig
from stillroom.clock import FixedClock

NewBudget = Callable[..., Budget]


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(1_800_000_000_000)


@pytest.fixture(params=["memory"])
def new_budget(request: pytest.FixtureRequest, clock: FixedClock) -> NewBudget:
    """Makes an empty ledger: `new_budget(limit_tokens=100, ...)`. Every test that takes it runs on each of them."""

    def make(**keys: Any) -> Budget:
        keys.setdefault("reminder_at_remaining_tokens", ())
        if "reminder_interval_tokens" in keys:
            del keys["reminder_at_remaining_tokens"]
        return RolloutBudget(RolloutBudgetConfig(**keys), tree_id="tree", clock=clock)

    return make
