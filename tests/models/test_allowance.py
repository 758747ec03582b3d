"""What the pipeline may spend: caps of a pass and of a day, at both doors to the models."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from pydantic_ai import Agent

from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, StageOne
from stillroom.errors import ContextTooLong, InvalidReply, SpendingCapped
from stillroom.models import Allowance, StructuredRequest, open_agent_model, open_structured
from stillroom.models.attempts import Answered, Failed, Recorder, call_with_retries
from stillroom.spending import ModelCall, Usage
from stillroom.stopping import Stop
from stillroom.store import Store
from stillroom.testing import CallTool, ListLedger, LoopbackModel, Say

NOON = 1_780_401_600 - 1_780_401_600 % 86_400 + 43_200
ASK = StructuredRequest(system="s", user="u", schema={}, schema_name="m", effort="low", max_output_tokens=9)


def capped_at(run: int, *, day: int = 10**9, store: Store | None = None) -> Allowance:
    memories = Memories(max_weighted_tokens_per_run=run, max_weighted_tokens_per_day=day)
    spent_since = store.ledger.spent_since if store else lambda since: Usage()
    return Allowance(memories, spent_since=spent_since, clock=FixedClock(NOON * 1000))


def call(usage: Usage, *, at: int = NOON) -> ModelCall:
    return ModelCall(at=at, phase="extract", model="l:m", outcome="ok", usage=usage)


def test_a_loop_is_stopped_at_the_door_of_agents() -> None:
    allowance = capped_at(100)
    with LoopbackModel(CallTool("again")) as server:
        settings = Settings(home=Path("/"), providers={"l": server.provider()})

        async def run() -> None:
            model = open_agent_model(
                "l:m", settings, ledger=ListLedger(), clock=FixedClock(0), redact=str, allowance=allowance
            )
            agent = Agent(model)
            agent.tool_plain(again)
            async with model:
                await agent.run("go")

        with pytest.raises(SpendingCapped, match=r"`memories\.max_weighted_tokens_per_run` is 100"):
            asyncio.run(run())
    report = allowance.report()
    assert report.reached == "run"
    assert report.phases == {"consolidate": report.run_tokens}
    one_request = report.run_tokens // len(server.requests)
    assert report.run_tokens < 100 + one_request + 1


def again() -> str:
    """Once more."""
    return "more"


def test_the_wire_door_sends_nothing_beyond_a_cap() -> None:
    allowance = capped_at(0)
    with LoopbackModel(Say("hello")) as server:
        settings = Settings(home=Path("/"), providers={"l": server.provider()})

        model = open_structured(
            "l:m", settings, ledger=ListLedger(), clock=FixedClock(0), redact=str, allowance=allowance
        )
        with pytest.raises(SpendingCapped):
            model.complete(ASK, stop=Stop())
        model.close()
        assert server.requests == []


def test_a_failed_call_is_charged_and_stops_the_next_try() -> None:
    allowance, ledger = capped_at(10), ListLedger()
    clock = FixedClock(0)
    recorder = Recorder(ledger=ledger, clock=clock, model="m", phase="extract", redact=str, allowance=allowance)
    failed = Failed(error=InvalidReply(), usage=Usage(input_tokens=12), retryable=True)

    stage = StageOne(retry_pause_seconds=0.001)
    with pytest.raises(SpendingCapped):
        call_with_retries(lambda: failed, recorder=recorder, stage=stage, thread_id="a", stop=Stop())
    assert len(ledger.calls) == 1
    assert allowance.report().phases == {"extract": 12}


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input_tokens=-50, output_tokens=-1),
        Usage(input_tokens=10**30, output_tokens=10**30),
        Usage(input_tokens=5, cached_input_tokens=10**12),
    ],
)
def test_counts_that_mean_nothing_hide_no_other_call(tmp_path: Path, usage: Usage) -> None:
    with Store.open(tmp_path / "state.sqlite3", clock=FixedClock(NOON * 1000)) as store:
        store.ledger.record_call(call(Usage(input_tokens=100)))
        allowance = capped_at(10**9, day=100, store=store)
        clock = FixedClock(NOON * 1000)
        recorder = Recorder(
            ledger=store.ledger, clock=clock, model="l:m", phase="extract", redact=str, allowance=allowance
        )
        attempt = Failed(error=ContextTooLong(), usage=usage)
        recorder.record(attempt, started=0)
        with pytest.raises(SpendingCapped, match="per_day"):
            capped_at(10**9, day=100, store=store).check()


def test_the_day_is_everybodys_and_ends_at_midnight(tmp_path: Path) -> None:
    database, clock = tmp_path / "state.sqlite3", FixedClock(NOON * 1000)
    with Store.open(database, clock=clock) as store, Store.open(database, clock=clock) as other:
        other.ledger.record_call(call(Usage(input_tokens=60, cached_input_tokens=20, output_tokens=60)))
        other.ledger.record_call(call(Usage(input_tokens=500), at=NOON - 43_201))
        memories = Memories(max_weighted_tokens_per_day=100)
        allowance = Allowance(memories, spent_since=store.ledger.spent_since, clock=clock)
        with pytest.raises(SpendingCapped, match=r"today's passes have used 100 .* is 100"):
            allowance.check()
        assert allowance.report().reached == "day"
        clock.advance(seconds=43_200)
        allowance.check()


def test_an_answer_that_crosses_a_cap_is_paid_for_and_used() -> None:
    recorder = Recorder(
        ledger=ListLedger(), clock=FixedClock(0), model="m", phase="extract", redact=str, allowance=capped_at(10)
    )

    said = Answered(text="said", usage=Usage(output_tokens=50))
    answered = call_with_retries(lambda: said, recorder=recorder, stage=StageOne(), thread_id=None, stop=Stop())
    assert answered.text == "said"
