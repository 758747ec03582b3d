"""`run --again`: sessions are extracted once more, after they gave nothing, or by another engine."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from stillroom.clock import FixedClock
from stillroom.config import OFFLINE, Memories, Provider, Settings, Source
from stillroom.pipeline import Options, PipelineReport, run_pipeline
from stillroom.store import Store
from stillroom.testing import SAMPLE_MEMORY, LoopbackModel, Say, Status
from stillroom.testing.loopback import Script

CODEX_HOME = Path(__file__).parents[2] / "examples" / "codex-home"
DAY_AFTER = 1_796_029_200_000  # 2026-11-30T09:00:00Z
EMPTY = Say({"raw_memory": "", "rollout_summary": "", "rollout_slug": ""})
ELSEWHERE = Provider(kind="openai-chat", base_url="http://model.invalid/v1")


class House:
    """A home whose sessions a model extracts and the offline engine consolidates."""

    def __init__(self, tmp_path: Path) -> None:
        shutil.copytree(CODEX_HOME, tmp_path / "codex")
        self.clock = FixedClock(DAY_AFTER)
        self.settings = Settings(
            home=tmp_path / "home",
            memories=Memories(extract_model="l:m"),
            sources=(Source(format="codex", root=str(tmp_path / "codex")),),
        )

    async def run(self, script: Script | Provider, *, engine: str = "l:m", **options: object) -> PipelineReport:
        memories = msgspec.structs.replace(self.settings.memories, extract_model=engine)
        settings = msgspec.structs.replace(self.settings, memories=memories)
        if isinstance(script, Provider):
            settings = msgspec.structs.replace(settings, providers={"l": script})
            return await run_pipeline(settings, options=Options(**options), clock=self.clock)
        with LoopbackModel(script) as server:
            settings = msgspec.structs.replace(settings, providers={"l": server.provider()})
            return await run_pipeline(settings, options=Options(**options), clock=self.clock)

    def engines(self) -> dict[str, str]:
        with Store.open(self.settings.database, clock=self.clock) as store:
            return {output.thread_id: output.engine for output in store.outputs.latest()}


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.mark.anyio
async def test_what_gave_nothing_is_extracted_again_and_what_is_as_it_should_be_is_not(house: House) -> None:
    answers = [EMPTY, EMPTY, Say(SAMPLE_MEMORY)]
    await house.run(answers, backfill=True)
    assert len(house.engines()) == 4
    assert (await house.run(Say(SAMPLE_MEMORY), backfill=True)).extract.claimed == 0
    again = await house.run(Say(SAMPLE_MEMORY), again=True)
    assert (again.reopened, again.extract.claimed, len(house.engines())) == (2, 2, 6)
    assert (await house.run(Say(SAMPLE_MEMORY), again=True)).reopened == 0


@pytest.mark.anyio
async def test_another_engine_takes_the_place_of_what_there_is_only_when_it_answers(house: House) -> None:
    await house.run(Say(SAMPLE_MEMORY), engine=OFFLINE, backfill=True)
    before = house.engines()
    assert before and set(before.values()) == {OFFLINE}
    failing = await house.run(Status(status=400, message="no such model"), again=True)
    assert failing.extract.failed == 6
    assert house.engines() == before
    house.clock.advance(seconds=2 * 3600)
    await house.run(Say(SAMPLE_MEMORY), again=True)
    assert set(house.engines().values()) == {"l:m"}
    back = await house.run(Say(SAMPLE_MEMORY), engine=OFFLINE, again=True)
    assert (back.reopened, back.extract.engine) == (6, OFFLINE)
    assert house.engines() == before


@pytest.mark.anyio
async def test_one_session_is_extracted_again_and_no_other(house: House) -> None:
    await house.run(Say(SAMPLE_MEMORY), engine=OFFLINE, backfill=True)
    chosen = min(house.engines())
    again = await house.run(Say(SAMPLE_MEMORY), again=True, sessions=(chosen,))
    assert [outcome.thread_id for outcome in again.extract.outcomes] == [chosen]
    engines = house.engines()
    assert engines.pop(chosen) == "l:m" and set(engines.values()) == {OFFLINE}


@pytest.mark.anyio
async def test_it_is_priced_first_and_asked_for_each_time(house: House) -> None:
    await house.run(EMPTY, backfill=True)
    memories = msgspec.structs.replace(house.settings.memories, ask_above_weighted_tokens=1000)
    house.settings = msgspec.structs.replace(house.settings, memories=memories)
    asked = await house.run(ELSEWHERE, again=True)
    assert (asked.skipped, asked.forecast.first, asked.forecast.threads) == ("not_agreed", False, 6)
    priced = await house.run(ELSEWHERE, again=True, dry_run=True)
    assert (priced.reopened, priced.forecast.threads) == (6, 6)
