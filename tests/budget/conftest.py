from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from stillroom.budget import Budget, RolloutBudget, RolloutBudgetConfig
from stillroom.clock import FixedClock
from stillroom.store.budgets import SharedBudget


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(1_800_000_000_000)


@pytest.fixture(params=["memory", "sqlite"])
def new_budget(request: pytest.FixtureRequest, clock: FixedClock, tmp_path: Path) -> Iterator[Callable[..., Budget]]:
    """Makes an empty ledger: `new_budget(limit_tokens=100, ...)`. Every test that takes it runs on each of them."""
    numbers = itertools.count()
    with ExitStack() as open_budgets:

        def make(**keys: Any) -> Budget:
            if "reminder_interval_tokens" not in keys:
                keys.setdefault("reminder_at_remaining_tokens", ())
            config = RolloutBudgetConfig(**keys)
            if request.param == "memory":
                return RolloutBudget(config, tree_id="tree", clock=clock)
            path = tmp_path / f"{next(numbers)}.sqlite3"
            return open_budgets.enter_context(SharedBudget.open(path, config, tree_id="tree", clock=clock))

        yield make
