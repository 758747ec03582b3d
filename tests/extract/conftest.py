from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from extract_home import Home


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home(tmp_path)
    yield made
    made.store.close()
