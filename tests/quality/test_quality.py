"""The offline engine on the labelled sessions: floors under what it reaches."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.quality import consolidated
from tests.quality.score import Scored, figures, report, score

from stillroom.evaluate.shipped import SETS as SHIPPED

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
SETS = sorted((HERE / "sets").glob("*.toml"))
#: Sets that nothing was trained on and nobody looks into: floors a few points under what was measured.
KEPT = [HERE / "kept", *SHIPPED.values()]
MIN_TOLD, MIN_FOUND, MIN_PRECISION, MAX_TRAPS_TOLD = 0.74, 0.94, 0.91, 0.055


@pytest.fixture(scope="module")
def kept() -> list[Scored]:
    return score([path for folder in KEPT for path in sorted(folder.glob("*.toml"))])


def test_what_a_session_taught_is_told_or_found_as_evidence(kept: list[Scored]) -> None:
    total = figures(kept)
    assert total.sessions == 90
    assert total.told_recall >= MIN_TOLD, report(kept)
    assert total.recall >= MIN_FOUND, report(kept)


def test_told_lines_are_right_and_traps_are_rare(kept: list[Scored]) -> None:
    total = figures(kept)
    assert total.precision >= MIN_PRECISION, report(kept)
    assert total.kept_told_share <= MAX_TRAPS_TOLD, report(kept)


def test_no_secret_is_ever_kept(kept: list[Scored]) -> None:
    found = [(s.scenario.name, label.text) for s in kept for label in s.verdict.kept if label.kind == "secret"]
    assert found == []


def test_sessions_without_anything_durable_yield_nothing(kept: list[Scored]) -> None:
    assert [s.scenario.name for s in kept if s.empty_right is False] == []


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_consolidation_meets_every_expectation(path: Path, tmp_path: Path) -> None:
    assert consolidated.run(path, tmp_path).failures == ()
