"""The ledger in real runs of OpenAI's Agents SDK, with its own scripted model."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from stillroom.budget import BudgetExceeded, RolloutBudget, RolloutBudgetConfig, Session, TurnAborted

agents = pytest.importorskip(
    "agents.testing", reason="the extra `openai-agents` is not installed: `make adapters` runs this"
)

from agents import (  # noqa: E402
    Agent,
    ModelResponse,
    ModelSettings,
    RunConfig,
    RunContextWrapper,
    Runner,
    Usage,
    function_tool,
)
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call  # noqa: E402
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails  # noqa: E402

from stillroom.budget.adapters.openai_agents import BudgetHooks  # noqa: E402

pytestmark = pytest.mark.anyio

CONFIG = RunConfig(tracing_disabled=True)
REMINDER = (
    "<rollout_budget>\nYou have {} weighted tokens left in the shared session token budget.\n</rollout_budget>".format
)


def a_budget(limit_tokens: int = 1000, **keys: Any) -> RolloutBudget:
    keys.setdefault("reminder_at_remaining_tokens", ())
    return RolloutBudget(RolloutBudgetConfig(limit_tokens=limit_tokens, **keys), tree_id="tree")


def used(tokens: int) -> Usage:
    return Usage(requests=1, output_tokens=tokens)


def says(text: str, *, tokens: int = 100) -> ModelStep:
    return ModelStep(output=[assistant_message(text)], usage=used(tokens))


_calls = iter(range(10_000))


def calls(tool: str, *, tokens: int = 100, arguments: str = "{}") -> ModelStep:
    call = function_call(tool, arguments, call_id=f"call_{next(_calls)}")
    return ModelStep(output=[call], usage=used(tokens))


@function_tool
def look() -> str:
    """Look."""
    return "nothing"


def reminders(model: ScriptedModel) -> list[list[tuple[int, str]]]:
    """For each request: which items from its end are developer messages, and what they say."""
    found = []
    for call in model.calls:
        items = call.input if isinstance(call.input, list) else []
        found.append(
            [
                (number - len(items), item["content"])
                for number, item in enumerate(items)
                if item.get("role") == "developer"
            ]
        )
    return found


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_run_is_charged_reminded_and_stopped_at_the_limit(streamed: bool) -> None:
    model = ScriptedModel([calls("look") for _ in range(5)])
    agent = Agent(name="worker", model=model, tools=[look])
    hooks = BudgetHooks()

    async def run() -> None:
        if not streamed:
            await Runner.run(agent, "go", hooks=hooks, run_config=CONFIG)
            return
        result = Runner.run_streamed(agent, "go", hooks=hooks, run_config=CONFIG)
        async for _ in result.stream_events():
            pass

    with a_budget(250, reminder_at_remaining_tokens=(150,)).session("root"):
        with pytest.raises(TurnAborted) as stopped:
            await run()
        assert len(model.calls) == 3
        with pytest.raises(TurnAborted):
            await run()
    assert len(model.calls) == 3, "an exhausted tree sends nothing more"
    assert reminders(model) == [[(-1, REMINDER(250))], [(-1, REMINDER(150))], []]
    outcome = BudgetExceeded.from_json(stopped.value.outcome.to_json())
    assert (outcome.used, outcome.threads) == (300, {"root": 300})


async def test_what_is_sent_before_a_reminder_never_changes() -> None:
    model = ScriptedModel([calls("look"), calls("look"), says("done")])
    agent = Agent(name="worker", model=model, tools=[look], instructions="be brief")
    with a_budget(1000, reminder_at_remaining_tokens=(850,)).session("root"):
        result = await Runner.run(agent, "go", hooks=BudgetHooks(), run_config=CONFIG)
    sent = [[item for item in call.input if item.get("role") != "developer"] for call in model.calls]
    for earlier, later in itertools.pairwise(sent):
        assert later[: len(earlier)] == earlier
    assert {call.system_instructions for call in model.calls} == {"be brief"}
    assert not [item for item in result.to_input_list() if item.get("role") == "developer"]


async def test_a_hand_off_and_an_agent_as_a_tool_share_the_ledger() -> None:
    hooks = BudgetHooks()
    budget = a_budget()
    reader = Agent(name="reader", model=ScriptedModel([says("read", tokens=70)]))
    writer = Agent(name="writer", model=ScriptedModel([says("written", tokens=30)]))
    planner = Agent(
        name="planner",
        model=ScriptedModel([calls("read", arguments='{"input": "it"}'), calls("transfer_to_writer")]),
        tools=[reader.as_tool("read", "Reads.", hooks=hooks)],
        handoffs=[writer],
    )
    with budget.session("planner"):
        result = await Runner.run(planner, "go", hooks=hooks, run_config=CONFIG)
    assert result.final_output == "written"
    assert budget.status().used == 300


async def test_a_sub_agent_is_a_thread_of_its_own_where_it_is_run_in_a_session() -> None:
    hooks = BudgetHooks()
    budget = a_budget()
    child = Agent(name="child", model=ScriptedModel([says("long", tokens=200)]))

    @function_tool
    async def ask() -> str:
        """Ask."""
        try:
            with budget.session("child", limit_tokens=150):
                return str((await Runner.run(child, "go", hooks=hooks, run_config=CONFIG)).final_output)
        except TurnAborted as stopped:
            return stopped.outcome.to_json()

    model = ScriptedModel([calls("ask"), says("done without")])
    parent = Agent(name="parent", model=model, tools=[ask])
    with budget.session("parent"):
        assert (await Runner.run(parent, "go", hooks=hooks, run_config=CONFIG)).final_output == "done without"
    told = model.calls[-1].input[-1]
    assert BudgetExceeded.from_json(told["output"]).scope == "child"
    assert [(thread.thread_id, thread.parent_thread_id, thread.used) for thread in budget.status().threads] == [
        ("parent", None, 200),
        ("child", "parent", 200),
    ]


async def test_a_tree_that_a_tools_agent_exhausts_stops_its_parent_too() -> None:
    """The SDK tells the model of a tool's error: what stops the parent is its own next request."""
    hooks = BudgetHooks()
    child = Agent(name="child", model=ScriptedModel([says("long", tokens=500)]))
    model = ScriptedModel([calls("child", arguments='{"input": "it"}'), says("never sent")])
    parent = Agent(name="parent", model=model, tools=[child.as_tool("child", "Asks.", hooks=hooks)])
    with a_budget(300).session("root"), pytest.raises(TurnAborted):
        await Runner.run(parent, "go", hooks=hooks, run_config=CONFIG)
    assert len(model.calls) == 1


async def test_what_a_failed_run_left_is_not_charged_by_a_run_outside_of_every_session() -> None:
    """A run that is gone and one that is new may have the same number."""
    hooks, context, agent = BudgetHooks(), RunContextWrapper(None), Agent(name="worker")
    budget = a_budget()
    with budget.session("root"):
        await hooks.on_llm_start(context, agent, None, [])
    await hooks.on_llm_start(context, agent, None, [])
    await hooks.on_llm_end(context, agent, ModelResponse(output=[], usage=used(100), response_id=None))
    assert budget.status().used == 0


async def test_a_reminder_whose_request_failed_stays_due_and_its_hold_is_given_back() -> None:
    model = ScriptedModel([ModelStep.raise_error(ConnectionError()), says("done"), says("done")])
    agent = Agent(name="worker", model=model)
    budget = a_budget()
    with budget.session("root") as session:
        hooks = BudgetHooks(session=session, reserve_tokens=400)
        with pytest.raises(ConnectionError):
            await Runner.run(agent, "go", hooks=hooks, run_config=CONFIG)
        for _ in range(2):
            await Runner.run(agent, "go", hooks=hooks, run_config=CONFIG)
    assert [bool(found) for found in reminders(model)] == [True, True, False]
    assert budget.status().used == 200


async def test_every_kind_of_token_and_the_providers_units_are_charged() -> None:
    counted = Usage(
        requests=1,
        input_tokens=1000,
        input_tokens_details=InputTokensDetails(cached_tokens=600, cache_write_tokens=100),
        output_tokens=50,
        output_tokens_details=OutputTokensDetails(reasoning_tokens=20),
    )
    priced = ModelStep(
        output=[assistant_message("done")],
        usage=counted,
        raw_usage={"input_tokens": 1, "output_tokens": 1, "codex_rollout_budget_units": 7.5},
    )
    model = ScriptedModel([ModelStep(output=[assistant_message("done")], usage=counted), priced])
    agent = Agent(name="worker", model=model, model_settings=ModelSettings(preserve_raw_usage=True))
    budget = a_budget(10_000, cached_token_weight=0.1, cache_write_token_weight=2, reasoning_token_weight=3)
    with budget.session("root"):
        await Runner.run(agent, "go", hooks=BudgetHooks(), run_config=CONFIG)
        assert budget.status().used == 600 * 0.1 + 100 * 2 + 300 + 20 * 3 + 30
        before = budget.status().used
        await Runner.run(agent, "go", hooks=BudgetHooks(), run_config=CONFIG)
    assert budget.status().used == before + 7.5


async def test_outside_of_a_session_nothing_is_metered_unless_one_was_given() -> None:
    model = ScriptedModel([says("one"), says("two")])
    agent = Agent(name="worker", model=model)
    budget = a_budget()
    await Runner.run(agent, "go", hooks=BudgetHooks(), run_config=CONFIG)
    await Runner.run(agent, "go", hooks=BudgetHooks(session=Session(budget, "given")), run_config=CONFIG)
    assert budget.status().used == 100
    assert [len(found) for found in reminders(model)] == [0, 1]


async def test_agents_as_tools_that_run_at_once_are_told_apart() -> None:
    hooks = BudgetHooks(reserve_tokens=10)
    budget = a_budget()
    both = asyncio.Barrier(2)

    async def answer(_: Any) -> ModelStep:
        await both.wait()  # both are sent before one is answered
        return says("read", tokens=70)

    children = [Agent(name=name, model=ScriptedModel([ModelStep.respond(answer)])) for name in ("reader", "listener")]
    model = ScriptedModel(
        [
            ModelStep(
                output=[
                    function_call(child.name, '{"input": "it"}', call_id=f"call_{child.name}") for child in children
                ],
                usage=used(100),
            ),
            says("done"),
        ]
    )
    tools = [child.as_tool(child.name, "Helps.", hooks=hooks) for child in children]
    async with asyncio.timeout(20):
        with budget.session("root"):
            await Runner.run(
                Agent(name="planner", model=model, tools=list(tools)), "go", hooks=hooks, run_config=CONFIG
            )
    assert (budget.status().used, budget.status().reserved) == (340, 0)


async def test_a_conversation_that_the_server_keeps_is_reminded_too() -> None:
    model = ScriptedModel([calls("look"), calls("look"), says("done")])
    agent = Agent(name="worker", model=model, tools=[look])
    with a_budget(1000, reminder_at_remaining_tokens=(850,)).session("root"):
        await Runner.run(agent, "go", conversation_id="conv_1", hooks=BudgetHooks(), run_config=CONFIG)
    assert reminders(model) == [[(-1, REMINDER(1000))], [], [(-1, REMINDER(800))]]
    assert [len(call.input) for call in model.calls] == [2, 1, 2], "only what is new is sent"
