"""Whole passes that reach a cap: what is left is as it was."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from stillroom.clock import FixedClock
from stillroom.config import OFFLINE, Memories, Settings, Source
from stillroom.consolidate.outcome import Consolidated
from stillroom.extract.outcome import Capped, WithOutput
from stillroom.pausing import pause
from stillroom.pipeline import Options, PipelineReport, run_pipeline
from stillroom.store import Store
from stillroom.testing import SAMPLE_MEMORY, CallTool, LoopbackModel, RecordedRequest, Reply, Say

CODEX_HOME = Path(__file__).parents[2] / "examples" / "codex-home"
DAY_AFTER = 1_796_029_200_000  # 2026-11-30T09:00:00Z


def settings_for(tmp_path: Path, server: LoopbackModel, **memories: object) -> Settings:
    shutil.copytree(CODEX_HOME, tmp_path / "codex")
    chosen = {"extract_model": OFFLINE, "consolidation_model": OFFLINE, **memories}
    return Settings(
        home=tmp_path / "home",
        memories=Memories(jail="files", **chosen),  # type: ignore[arg-type]
        providers={"loopback": server.provider()},
        sources=(Source(format="codex", root=str(tmp_path / "codex")),),
    )


async def run(settings: Settings, clock: FixedClock) -> PipelineReport:
    return await run_pipeline(settings, options=Options(backfill=True), clock=clock)


@pytest.mark.anyio
async def test_an_agent_that_loops_for_ever_is_stopped_by_the_cap(tmp_path: Path) -> None:
    clock = FixedClock(DAY_AFTER)

    def look_again(request: RecordedRequest) -> Reply:
        return CallTool("list", {"path": ".", "cursor": str(request.number)})

    with LoopbackModel(look_again) as server:
        settings = settings_for(tmp_path, server, consolidation_model="loopback:m", max_weighted_tokens_per_run=20_000)
        settings.root.mkdir(parents=True)
        (settings.root / "MEMORY.md").write_text("# Mine\n", encoding="utf-8")
        report = await run(settings, clock)
    assert isinstance(report.consolidate, Consolidated)
    assert report.consolidate.fallback_reason is not None
    assert "failed_agent" in report.consolidate.fallback_reason
    assert "`memories.max_weighted_tokens_per_run` is 20,000" in report.consolidate.fallback_reason
    assert report.spending is not None
    assert report.spending.reached == "run"
    assert 20_000 <= report.spending.run_tokens < 40_000
    assert "# Mine\n" in (settings.root / "MEMORY.md").read_text(encoding="utf-8")


@pytest.mark.anyio
async def test_a_pass_that_is_paused_while_it_runs_sends_nothing_more(tmp_path: Path) -> None:
    def respond(request: RecordedRequest) -> Reply:
        pause(str(tmp_path / "home"), "just now")
        return Say(SAMPLE_MEMORY)

    with LoopbackModel(respond) as server:
        settings = settings_for(tmp_path, server, extract_model="loopback:m", extract_concurrency=1)
        report = await run(settings, FixedClock(DAY_AFTER))
        assert len(server.requests) == 1
    assert report.extract is not None and report.stopped is not None
    assert (report.extract.with_output, report.extract.capped, report.consolidate) == (1, 5, None)
    assert report.stopped.reason == "passes are paused since just now"


@pytest.mark.anyio
async def test_threads_beyond_a_cap_stay_claimable_with_all_their_retries(tmp_path: Path) -> None:
    clock = FixedClock(DAY_AFTER)
    with LoopbackModel(Say(SAMPLE_MEMORY)) as server:
        settings = settings_for(
            tmp_path, server, extract_model="loopback:m", extract_concurrency=1, max_weighted_tokens_per_day=1
        )
        report = await run(settings, clock)
        assert report.extract is not None
        assert [type(outcome) for outcome in report.extract.outcomes] == [WithOutput, *[Capped] * 5]
        assert report.extract.capped == report.extract.left.waiting == 5
        assert report.spending is not None
        assert report.spending.reached == "day"
        assert not report.failed  # what was extracted is consolidated by the offline engine
        with Store.open(settings.database, clock=clock) as store:
            jobs = [store.extraction.job(thread_id) for thread_id in capped(report)]
        assert [job.retry_remaining if job else settings.stage_one.retries for job in jobs] == [3] * 5
        requests_before = len(server.requests)
        assert (await run(settings, clock)).extract is not None
        assert len(server.requests) == requests_before
        memories = msgspec.structs.replace(settings.memories, max_weighted_tokens_per_day=10**9)
        raised = await run(msgspec.structs.replace(settings, memories=memories), clock)
        assert raised.extract is not None
        assert raised.extract.with_output == 5


def capped(report: PipelineReport) -> list[str]:
    assert report.extract is not None
    return [outcome.thread_id for outcome in report.extract.outcomes if isinstance(outcome, Capped)]
