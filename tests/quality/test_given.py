"""Of the facts that `MEMORY.md` holds of a project, how many a session there is given: floors."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.quality.given import Session, distilled, measured
from tests.quality.score import scenario_paths


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> list[Session]:
    return distilled(scenario_paths("dev")[::6], tmp_path_factory.mktemp("codex"))


#: Eight sessions of one project are more than the budget holds: there the least needed references stay out.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("projects", "each", "floor"), [(1, 1, 0.95), (1, 8, 0.9), (50, 4, 0.95), (200, 1, 0.95), (250, 2, 0.85)]
)
def test_what_memory_holds_of_a_project_is_given(
    sessions: list[Session], tmp_path: Path, projects: int, each: int, floor: float
) -> None:
    found = measured(sessions, projects, each, tmp_path)
    assert found.held > 100
    assert found.share >= floor, found.missed
