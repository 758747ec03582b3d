"""A memory folder that another program filled: neither a pass nor a consolidation by itself replaces it unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Settings, Source
from stillroom.consolidate.outcome import Consolidated, Failed
from stillroom.consolidate.run import run_phase2
from stillroom.pipeline import Options, run_pipeline
from stillroom.store import Store

CODEX_HOME = Path(__file__).parents[2] / "examples" / "codex-home"
DAY_AFTER = 1_796_029_200_000  # 2026-11-30T09:00:00Z
THEIRS = "rollout_summaries/theirs.md"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = Settings(home=tmp_path / "home", sources=(Source(format="codex", root=str(CODEX_HOME)),))
    (settings.root / "rollout_summaries").mkdir(parents=True)
    (settings.root / THEIRS).write_text("theirs\n", encoding="utf-8")
    (settings.root / "MEMORY.md").write_text("# Task Group: theirs\n", encoding="utf-8")
    return settings


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.anyio
async def test_a_pass_stops_before_it_changes_or_sends_anything(settings: Settings) -> None:
    before = names(settings.root)
    report = await run_pipeline(settings, options=Options(backfill=True), clock=FixedClock(DAY_AFTER))
    assert report.failed and report.stopped is not None
    assert str(settings.root) in report.stopped.reason and THEIRS in report.stopped.reason
    assert (report.folder, report.extract, report.consolidate) == (None, None, None)
    assert names(settings.root) == before
    adopted = await run_pipeline(settings, options=Options(backfill=True, adopt=True), clock=FixedClock(DAY_AFTER))
    assert isinstance(adopted.consolidate, Consolidated)
    assert any("taken over" in warning for warning in adopted.consolidate.warnings)
    assert not (settings.root / THEIRS).exists()


@pytest.mark.anyio
async def test_a_consolidation_fails_as_it_prepares_and_a_consent_need_not_wait(settings: Settings) -> None:
    before = names(settings.root)
    clock = FixedClock(DAY_AFTER)
    with Store.open(settings.database, clock=clock) as store:
        refused = await run_phase2(settings, store, clock, worker_id="test")
        assert isinstance(refused, Failed)
        assert refused.status == "failed_prepare_workspace"
        assert THEIRS in refused.reason and "--adopt" in refused.reason
        assert names(settings.root) == before and not settings.history.exists()
        assert isinstance(await run_phase2(settings, store, clock, worker_id="test", adopt=True), Consolidated)


@pytest.mark.anyio
async def test_a_handbook_alone_needs_no_consent(settings: Settings) -> None:
    (settings.root / THEIRS).unlink()
    report = await run_pipeline(settings, options=Options(backfill=True), clock=FixedClock(DAY_AFTER))
    assert isinstance(report.consolidate, Consolidated)
