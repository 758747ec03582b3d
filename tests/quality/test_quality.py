"""The offline engine on the labelled sessions: floors under what it reaches."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.quality import consolidated
from tests.quality.score import Scored, figures, report, scenario_paths, score

pytestmark = pytest.mark.slow

SETS = sorted((Path(__file__).parent / "sets").glob("*.toml"))
#: What the engine reaches on `dev`, less a point: a change that costs more has to say why.
MIN_RECALL = 0.96
MIN_PRECISION = 0.97
MAX_KEPT_SHARE = 0.02
#: Sessions that must be empty and are not.
MAX_NOT_EMPTY = 0


@pytest.fixture(scope="module")
def dev() -> list[Scored]:
    return score(scenario_paths("dev"))


def test_recall_stays_above_its_floor(dev: list[Scored]) -> None:
    assert figures(dev).recall >= MIN_RECALL, report(dev, verbose=True)


def test_precision_stays_above_its_floor(dev: list[Scored]) -> None:
    assert figures(dev).precision >= MIN_PRECISION, report(dev, verbose=True)


def test_forbidden_things_stay_out(dev: list[Scored]) -> None:
    assert figures(dev).kept_share <= MAX_KEPT_SHARE, report(dev, verbose=True)


def test_no_secret_is_ever_kept(dev: list[Scored]) -> None:
    kept = [(s.scenario.name, label.text) for s in dev for label in s.verdict.kept if label.kind == "secret"]
    assert kept == []


def test_sessions_without_anything_durable_yield_nothing(dev: list[Scored]) -> None:
    not_empty = [s.scenario.name for s in dev if s.empty_right is False]
    assert len(not_empty) <= MAX_NOT_EMPTY, not_empty


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_consolidation_meets_every_expectation(path: Path, tmp_path: Path) -> None:
    assert consolidated.run(path, tmp_path).failures == ()
