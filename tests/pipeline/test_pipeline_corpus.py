"""Every sample of every agent through whole passes: what was read once is not new the second time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.sessions.agents.corpus import CORPUS

from stillroom.clock import FixedClock
from stillroom.config import Settings, Source
from stillroom.consolidate.outcome import Consolidated, NoChanges
from stillroom.pipeline import Options, PipelineReport, run_pipeline
from stillroom.store import Store

EVENING = 1_795_978_800  # 2026-11-29T19:00:00Z: what has no time of its own has that of its file
DAY_AFTER_MS = 1_796_029_200_000  # 2026-11-30T09:00:00Z


@pytest.mark.anyio
async def test_every_sample_is_taken_in_once(tmp_path: Path) -> None:
    roots = [(sample.agent, sample.put(tmp_path / str(sample))) for sample in CORPUS]
    for path in tmp_path.rglob("*"):
        os.utime(path, (EVENING, EVENING))
    settings = Settings(
        home=tmp_path / "home", sources=tuple(Source(format=agent, root=str(root)) for agent, root in roots)
    )
    clock = FixedClock(DAY_AFTER_MS)

    async def taken_in() -> PipelineReport:
        report = await run_pipeline(settings, options=Options(backfill=True), clock=clock)
        assert not report.failed
        assert report.threads is not None and not report.threads.broken
        return report

    first = await taken_in()
    assert first.threads is not None and first.extract is not None
    assert isinstance(first.consolidate, Consolidated)
    with Store.open(settings.database, clock=clock) as store:
        threads = store.threads.newest(limit=1000)
    assert {thread.agent for thread in threads} == {agent for agent, _ in roots}
    assert len(threads) == first.threads.found

    again = await taken_in()
    assert again.threads is not None and again.extract is not None
    assert (again.threads.found, again.threads.unchanged) == (0, first.threads.found)
    assert again.extract.claimed == 0
    assert isinstance(again.consolidate, NoChanges)
