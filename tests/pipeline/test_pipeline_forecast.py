"""What a pass would cost is told before anything is sent, and the first calls of a model are asked for."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from stillroom.clock import FixedClock
from stillroom.config import OFFLINE, Memories, Provider, Settings, Source
from stillroom.extract.outcome import Capped
from stillroom.forecast import Forecast, may_need_consent, needs_consent
from stillroom.pipeline import Options, PipelineReport, run_pipeline
from stillroom.store import Store
from stillroom.testing import SAMPLE_MEMORY, LoopbackModel, Say

CODEX_HOME = Path(__file__).parents[2] / "examples" / "codex-home"
DAY_AFTER = 1_796_029_200_000  # 2026-11-30T09:00:00Z
#: Nobody answers there, so a test that sends something fails.
ELSEWHERE = Provider(kind="openai-chat", base_url="http://model.invalid/v1")


def settings_for(tmp_path: Path, provider: Provider, **memories: object) -> Settings:
    shutil.copytree(CODEX_HOME, tmp_path / "codex")
    chosen = {"extract_model": "p:m", "consolidation_model": OFFLINE, **memories}
    return Settings(
        home=tmp_path / "home",
        memories=Memories(jail="files", **chosen),  # type: ignore[arg-type]
        providers={"p": provider},
        sources=(Source(format="codex", root=str(tmp_path / "codex")),),
    )


async def run(settings: Settings, **options: bool) -> PipelineReport:
    return await run_pipeline(
        settings,
        options=Options(backfill=True, **options),
        clock=FixedClock(DAY_AFTER),  # type: ignore[arg-type]
    )


def forecast_of(report: PipelineReport) -> Forecast:
    assert report.forecast is not None
    return report.forecast


@pytest.mark.anyio
async def test_a_dry_run_says_what_a_pass_then_sends_and_leaves_no_trace(tmp_path: Path) -> None:
    with LoopbackModel(Say(SAMPLE_MEMORY)) as server:
        settings = settings_for(tmp_path, server.provider())
        report = await run(settings, dry_run=True)
        assert not server.requests
        assert not settings.home.exists()
        assert report.extract is report.consolidate is None
        done = await run(settings)
        sent = sum(len(request.body) for request in server.requests)
        with Store.open(settings.database, clock=FixedClock(DAY_AFTER)) as store:
            assert {call.cost_usd for call in store.ledger.calls()} == {0.0}  # as was said
    expected = forecast_of(report)
    assert (expected.threads, expected.unreadable, expected.cost_usd) == (6, 0, 0.0)  # a server on this machine
    assert expected.consolidate is not None
    assert (expected.consolidate.model, expected.consolidate.usage.weighted_tokens) == (OFFLINE, 0)
    assert done.extract is not None
    assert done.extract.claimed == 6
    # The request's JSON has the schema beside the prompts, and escapes.
    assert 0.5 < expected.extract.usage.input_tokens * 4 / sent < 1


@pytest.mark.anyio
async def test_the_first_calls_of_a_model_of_unknown_price_are_asked_for(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, ELSEWHERE, ask_above_weighted_tokens=1000)
    report = await run(settings)
    assert (report.skipped, report.extract, report.failed) == ("not_agreed", None, True)
    assert forecast_of(report).cost_usd is None
    assert forecast_of(report).first
    assert not settings.root.exists()


@pytest.mark.parametrize(("base_url", "asks"), [("http://127.0.0.1:9/v1", False), ("http://model.invalid/v1", True)])
def test_no_session_is_read_for_the_price_of_a_model_on_this_machine(tmp_path: Path, base_url: str, asks: bool) -> None:
    settings = settings_for(tmp_path, Provider(kind="openai-chat", base_url=base_url))
    with Store.open(settings.database, clock=FixedClock(DAY_AFTER)) as store:
        assert may_need_consent(settings, store) is asks


@pytest.mark.anyio
async def test_an_upgrade_that_nobody_agrees_to_extracts_nothing_again(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, ELSEWHERE, extract_model=OFFLINE)
    await run(settings)
    paid = msgspec.structs.replace(settings.memories, extract_model="p:m", ask_above_weighted_tokens=1000)
    settings = msgspec.structs.replace(settings, memories=paid)
    asked = await run(settings, upgrade=True)
    expected = forecast_of(asked)
    assert (asked.skipped, asked.reopened, expected.threads) == ("not_agreed", 0, 6)
    # What there is already is extracted again, and not counted beside it.
    assert expected.consolidate is not None and expected.consolidate.inputs == 6
    assert forecast_of(await run(settings, dry_run=True)).threads == 0


@pytest.mark.anyio
async def test_who_agrees_is_not_stopped_and_is_not_asked_again(tmp_path: Path) -> None:
    elsewhere = settings_for(
        tmp_path, ELSEWHERE, ask_above_weighted_tokens=1, max_weighted_tokens_per_run=1, extract_concurrency=1
    )
    assert (await run(elsewhere)).skipped == "not_agreed"
    with LoopbackModel(Say(SAMPLE_MEMORY)) as server:
        here = msgspec.structs.replace(elsewhere, providers={"p": server.provider()})
        agreed = await run(here, agreed=True)
    assert agreed.extract is not None
    assert agreed.extract.with_output >= 1
    assert any(isinstance(outcome, Capped) for outcome in agreed.extract.outcomes)
    again = forecast_of(await run(elsewhere, dry_run=True))
    assert (again.threads > 0, needs_consent(again, elsewhere)) == (True, False)


@pytest.mark.anyio
async def test_after_a_pass_there_is_nothing_left_to_pay_for(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, ELSEWHERE, extract_model=OFFLINE)
    await run(settings)
    paid = msgspec.structs.replace(settings.memories, extract_model="p:m", consolidation_model="p:m")
    report = await run(msgspec.structs.replace(settings, memories=paid), dry_run=True)
    assert (forecast_of(report).threads, forecast_of(report).weighted_tokens) == (0, 0)
    assert not forecast_of(report).first
