"""The ledger in real LiteLLM calls, with its own mock responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stillroom.budget import BudgetExceeded, RolloutBudget, RolloutBudgetConfig, TurnAborted

pytest.importorskip("litellm", reason="the extra `litellm` is not installed: `make adapters` runs this")

import litellm

from stillroom.budget.adapters.litellm import BudgetCallback
from stillroom.testing import LoopbackModel, Say, Status

pytestmark = pytest.mark.filterwarnings("ignore")  # LiteLLM has many of its own

SAID = [{"role": "user", "content": "go"}]
ANSWER = "word " * 40
#: What the loopback model reports for the answer.
OUTPUT = 53
REMINDER = (
    "<rollout_budget>\nYou have {} weighted tokens left in the shared session token budget.\n</rollout_budget>".format
)


def a_budget(limit_tokens: int = 1000, **keys: Any) -> RolloutBudget:
    keys.setdefault("reminder_at_remaining_tokens", ())
    keys.setdefault("prefill_token_weight", 0)
    return RolloutBudget(RolloutBudgetConfig(limit_tokens=limit_tokens, **keys), tree_id="tree")


@pytest.fixture
def callback() -> Iterator[BudgetCallback]:
    callback = BudgetCallback()
    litellm.callbacks = [callback]
    yield callback
    litellm.callbacks = []
    litellm.success_callback, litellm._async_success_callback = [], []
    litellm.failure_callback, litellm._async_failure_callback = [], []
    litellm.input_callback = []


@pytest.fixture
def server() -> Iterator[LoopbackModel]:
    with LoopbackModel(Say(ANSWER)) as server:
        yield server


def at(server: LoopbackModel, **keys: Any) -> dict[str, Any]:
    return {"model": "openai/m", "messages": SAID, "api_base": server.base_url, "api_key": "none", **keys}


def last_messages(server: LoopbackModel) -> list[tuple[str, str]]:
    return [
        (message["role"], message["content"])
        for message in (request.json["messages"][-1] for request in server.requests)
    ]


async def until(condition: Callable[[], bool]) -> None:
    """LiteLLM reports the end of a stream from a task of its own."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.anyio
async def test_calls_that_others_make_are_reminded_charged_and_refused(
    callback: BudgetCallback, server: LoopbackModel
) -> None:
    budget = a_budget(2 * OUTPUT - 1, reminder_at_remaining_tokens=(60,))
    with budget.session("root"):
        await litellm.acompletion(**at(server))
        with budget.session("child"):
            await litellm.acompletion(**at(server))
        with pytest.raises(TurnAborted) as stopped:
            await litellm.acompletion(**at(server))
    assert len(server.requests) == 2
    assert last_messages(server) == [("system", REMINDER(105)), ("system", REMINDER(52))]
    assert SAID == [{"role": "user", "content": "go"}]
    outcome = BudgetExceeded.from_json(stopped.value.outcome.to_json())
    assert outcome.threads == {"root": OUTPUT, "child": OUTPUT}


@pytest.mark.anyio
async def test_a_stream_that_others_read_is_charged_once_at_its_end(
    callback: BudgetCallback, server: LoopbackModel
) -> None:
    budget = a_budget()
    with budget.session("root"):
        stream = await litellm.acompletion(**at(server, stream=True))
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == ANSWER
        await until(lambda: budget.status().used > 0)
    assert budget.status().used == OUTPUT


@pytest.mark.anyio
async def test_a_failed_call_leaves_its_reminder_due_and_gives_its_hold_back(callback: BudgetCallback) -> None:
    budget = a_budget()
    with (
        LoopbackModel([Status(status=400), Say(ANSWER)]) as server,
        budget.session("root") as session,
    ):
        litellm.callbacks = [BudgetCallback(session=session, reserve_tokens=400)]
        with pytest.raises(litellm.BadRequestError):
            await litellm.acompletion(**at(server, max_retries=0))
        assert session.pending_reminder("0")
        await until(lambda: budget.status().reserved == 0)
        await litellm.acompletion(**at(server))
        assert session.pending_reminder("0") is None
    assert (budget.status().used, budget.status().reserved) == (OUTPUT, 0)


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["completion", "acompletion"])
async def test_own_calls_stop_at_the_limit_itself_and_are_charged_once(
    callback: BudgetCallback, server: LoopbackModel, how: str
) -> None:
    budget = a_budget(3 * OUTPUT - 1)

    async def ask(**keys: Any) -> Any:
        if how == "completion":
            result = callback.completion(**at(server), **keys)
            return list(result) if keys else result
        result = await callback.acompletion(**at(server), **keys)
        return [chunk async for chunk in result] if keys else result

    with budget.session("root"):
        assert (await ask()).choices[0].message.content == ANSWER
        chunks = await ask(stream=True)
        assert all(chunk.choices for chunk in chunks)
        assert budget.status().used == 2 * OUTPUT
        with budget.session("child"), pytest.raises(TurnAborted):
            await ask()
        with pytest.raises(TurnAborted):
            await ask()
    await asyncio.sleep(0.1)  # what LiteLLM's own threads report later adds nothing
    assert budget.status().used == 3 * OUTPUT
    assert len(server.requests) == 3
    assert last_messages(server)[:2] == [("system", REMINDER(158)), ("user", "go")]


@pytest.mark.anyio
async def test_a_synchronous_call_of_others_is_counted_afterwards(
    callback: BudgetCallback, server: LoopbackModel
) -> None:
    budget = a_budget()
    with budget.session("root"):
        litellm.completion(**at(server))
        await until(lambda: budget.status().used > 0)
    assert budget.status().used == OUTPUT


@pytest.mark.anyio
async def test_a_router_that_hands_on_to_another_model_shares_the_ledger(
    callback: BudgetCallback, server: LoopbackModel
) -> None:
    router = litellm.Router(
        model_list=[
            {"model_name": "first", "litellm_params": {"model": "openai/m", "mock_response": Exception("down")}},
            {"model_name": "second", "litellm_params": at(server, messages=None) | {"model": "openai/m"}},
        ],
        fallbacks=[{"first": ["second"]}],
        num_retries=0,
    )
    budget = a_budget()
    with budget.session("root"):
        answer = await router.acompletion(model="first", messages=SAID)
    assert answer.choices[0].message.content == ANSWER
    assert budget.status().used == OUTPUT


@pytest.mark.anyio
async def test_outside_of_a_session_nothing_is_metered(callback: BudgetCallback, server: LoopbackModel) -> None:
    await litellm.acompletion(**at(server))
    callback.completion(**at(server))
    assert last_messages(server) == [("user", "go")] * 2
