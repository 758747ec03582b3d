"""An agent of Pydantic AI on the recording model: tools, streams and failures, over the real SDK."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from pydantic_ai import Agent

from stillroom.config import Settings, StageOne
from stillroom.errors import ModelRefused, ModelUnavailable
from stillroom.models import RateLimitSink, open_agent_model
from stillroom.testing import CallTool, FixedClock, ListLedger, LoopbackModel, Say, Status
from stillroom.testing.loopback import Script
from stillroom.testing.script import Hang

STAGE = StageOne(retry_pause_seconds=0.001, max_retry_pause_seconds=0.01, request_attempts=2)


@pytest.fixture(params=["openai-responses", "openai-chat"])
def kind(request):
    return request.param


def run_agent(
    script: Script, kind: str, *, stream: bool = False
) -> tuple[str, ListLedger, LoopbackModel, RateLimitSink]:
    ledger, limits = ListLedger(), RateLimitSink()
    with LoopbackModel(script, headers={"x-codex-primary-used-percent": "50"}) as server:
        settings = Settings(home=Path("/"), providers={"l": server.provider(kind)}, stage_one=STAGE)

        async def run() -> str:
            model = open_agent_model(
                "l:gpt-5.6-terra", settings, ledger=ledger, clock=FixedClock(0), redact=str, rate_limits=limits
            )
            agent = Agent(model, instructions="Work.")
            agent.tool_plain(double)
            async with model:
                if not stream:
                    return (await agent.run("go")).output
                async with agent.run_stream("go") as streamed:
                    return await streamed.get_output()

        output = asyncio.run(run())
    return output, ledger, server, limits


def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_each_request_of_the_loop_is_a_row(kind, stream):
    output, ledger, server, limits = run_agent([CallTool("double", {"number": 21}), Say("42")], kind, stream=stream)
    assert output == "42"
    assert [(call.phase, call.outcome) for call in ledger.calls] == [("consolidate", "ok")] * 2
    assert all(call.usage.input_tokens and call.usage.output_tokens for call in ledger.calls)
    assert all(call.cost_usd == 0 for call in ledger.calls)
    assert len(server.requests) == 2
    assert b"42" in server.requests[1].body
    stored = [request.json.get("store") for request in server.requests]
    assert stored == ([False, False] if kind == "openai-responses" else [None, None])
    assert limits.snapshot_json() is not None


def test_a_busy_provider_is_asked_again_and_both_are_rows(kind):
    output, ledger, _, _ = run_agent([Status(status=503), Say("done")], kind)
    assert output == "done"
    assert [call.outcome for call in ledger.calls] == ["unavailable", "ok"]


@pytest.mark.parametrize(("status", "error", "rows"), [(500, ModelUnavailable, 2), (401, ModelRefused, 1)])
def test_a_failure_leaves_the_run_as_one_of_our_errors(kind, status, error, rows):
    ledger = ListLedger()
    with LoopbackModel(Status(status=status)) as server:
        settings = Settings(home=Path("/"), providers={"l": server.provider(kind)}, stage_one=STAGE)

        async def run() -> None:
            model = open_agent_model("l:gpt-5.6-terra", settings, ledger=ledger, clock=FixedClock(0), redact=str)
            async with model:
                await Agent(model).run("go")

        with pytest.raises(error):
            asyncio.run(run())
    assert len(ledger.calls) == rows


def test_a_slow_server_on_this_machine_is_not_asked_again(kind):
    ledger, stage = ListLedger(), msgspec.structs.replace(STAGE, local_timeout_seconds=0.05)
    with LoopbackModel(Hang()) as server:
        settings = Settings(home=Path("/"), providers={"l": server.provider(kind)}, stage_one=stage)

        async def run() -> None:
            async with open_agent_model("l:m", settings, ledger=ledger, clock=FixedClock(0), redact=str) as model:
                await Agent(model).run("go")

        with pytest.raises(ModelUnavailable, match=r"no complete reply within 0\.05 s"):
            asyncio.run(run())
    assert [call.outcome for call in ledger.calls] == ["unavailable"]
