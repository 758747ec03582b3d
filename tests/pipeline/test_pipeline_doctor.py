"""`stillroom doctor` after passes with a model that did not do what it should."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, Source
from stillroom.insight.doctor.phases import check_phases
from stillroom.insight.status import read_status
from stillroom.pipeline import Options, run_pipeline
from stillroom.store import Store
from stillroom.testing import SAMPLE_MEMORY, LoopbackModel, RecordedRequest, Reply, Say, Status

CODEX_HOME = Path(__file__).parents[2] / "examples" / "codex-home"
DAY_AFTER = 1_796_029_200_000  # 2026-11-30T09:00:00Z
EMPTY = Say({"raw_memory": "", "rollout_summary": "", "rollout_slug": ""})


async def after(tmp_path: Path, script: Reply, *, agent: Reply | None = None) -> tuple[Settings, list[str]]:
    """What the doctor finds wrong after a pass in which each model answers so."""
    shutil.copytree(CODEX_HOME, tmp_path / "codex")
    clock = FixedClock(DAY_AFTER)

    def respond(request: RecordedRequest) -> Reply:
        return agent if agent is not None and request.json.get("tools") else script

    with LoopbackModel(respond) as server:
        settings = Settings(
            home=tmp_path / "home",
            memories=Memories(extract_model="l:m", consolidation_model="l:m" if agent else "offline", jail="files"),
            providers={"l": server.provider()},
            sources=(Source(format="codex", root=str(tmp_path / "codex")),),
        )
        await run_pipeline(settings, options=Options(backfill=True), clock=clock)
    found = [each.finding for each in check_phases(settings, clock)]
    assert all(each.remedy for each in found if each.is_wrong)
    return settings, [f"{each.what} -> {each.remedy}" for each in found if each.is_wrong]


@pytest.mark.anyio
async def test_nothing_is_wrong_where_nothing_is(tmp_path: Path) -> None:
    assert (await after(tmp_path, Say(SAMPLE_MEMORY)))[1] == []


@pytest.mark.anyio
async def test_sessions_that_failed_are_told_with_the_reason(tmp_path: Path) -> None:
    settings, wrong = await after(tmp_path, Status(status=400, message="no such model"))
    assert len(wrong) == 1 and "6 of 6 sessions failed" in wrong[0] and "no such model" in wrong[0]
    assert "have the offline engine's memory meanwhile" in wrong[0] and "--retry" in wrong[0]
    with Store.open(settings.database, clock=FixedClock(DAY_AFTER)) as store:
        (line,) = read_status(settings, store, FixedClock(DAY_AFTER)).passes
    assert line.fallbacks > 0


@pytest.mark.anyio
async def test_empty_answers_are_told_where_the_offline_engine_finds_much(tmp_path: Path) -> None:
    _, wrong = await after(tmp_path, EMPTY)
    assert len(wrong) == 1 and "found nothing in 6 sessions" in wrong[0] and "run --again --session" in wrong[0]


@pytest.mark.anyio
async def test_a_model_that_calls_no_tool_is_told(tmp_path: Path) -> None:
    settings, wrong = await after(tmp_path, Say(SAMPLE_MEMORY), agent=Say("All done!"))
    assert len(wrong) == 1 and "called none of its tools" in wrong[0] and "a model that calls tools" in wrong[0]
    with Store.open(settings.database, clock=FixedClock(DAY_AFTER)) as store:
        (line,) = read_status(settings, store, FixedClock(DAY_AFTER)).passes
    assert line.is_fallback and "by the offline engine" in (line.reason or "")


@pytest.mark.anyio
async def test_before_the_first_pass_there_is_nothing_to_tell(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, memories=msgspec.structs.replace(Memories(), extract_model="l:m"))
    assert list(check_phases(settings, FixedClock(DAY_AFTER))) == []
