from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_samples import NOW

from stillroom.clock import FixedClock
from stillroom.store import Store


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW * 1000)


@pytest.fixture
def store(tmp_path: Path, clock: FixedClock) -> Iterator[Store]:
    with Store.open(tmp_path / "state.sqlite3", clock=clock) as opened:
        yield opened
