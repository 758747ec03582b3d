"""Small sessions of many kinds and languages, each written before the rules had seen it, kept as a floor."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.quality.score import figures, report, score

SESSIONS = sorted((Path(__file__).parent / "sessions").glob("*.toml"))


@pytest.mark.slow
def test_every_session_keeps_what_it_taught_and_only_that() -> None:
    scored = score(SESSIONS)
    total = figures(scored)
    assert total.sessions == len(SESSIONS) > 30
    assert total.recall >= 0.97, report(scored, verbose=True)
    assert total.precision >= 0.97, report(scored, verbose=True)
    assert total.kept == 0, report(scored, verbose=True)
    assert total.empty_right == total.empty
