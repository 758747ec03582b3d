"""The ledger in real Pydantic AI agents, with its own test models."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest
from pydantic_ai import Agent, ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.usage import RequestUsage

from stillroom.budget import BudgetExceeded, RolloutBudget, RolloutBudgetConfig, Session, TurnAborted
from stillroom.budget.adapters.pydantic_ai import BudgetModel

pytestmark = pytest.mark.anyio

Answer = ModelResponse | Exception


def a_budget(limit_tokens: int = 1000, **keys: Any) -> RolloutBudget:
    keys.setdefault("reminder_at_remaining_tokens", ())
    return RolloutBudget(RolloutBudgetConfig(limit_tokens=limit_tokens, **keys), tree_id="tree")


def says(text: str, *, tokens: int = 100) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)], usage=RequestUsage(output_tokens=tokens))


def calls(tool: str, *, tokens: int = 100) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart(tool, {})], usage=RequestUsage(output_tokens=tokens))


class Script:
    """Answers in turn, and what the model was sent."""

    def __init__(self, *answers: Answer, inline_system: bool = True) -> None:
        self.sent: list[list[ModelMessage]] = []
        self._answers = list(answers)
        self._profile = ModelProfile(supports_inline_system_prompts=inline_system)

    def model(self, **keys: Any) -> BudgetModel:
        return BudgetModel(FunctionModel(self._answer, profile=self._profile), **keys)

    def _answer(self, messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        self.sent.append(messages)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def last_parts(messages: Sequence[ModelMessage]) -> list[tuple[type, object]]:
    request = messages[-1]
    assert isinstance(request, ModelRequest)
    return [(type(part), part.content) for part in request.parts if hasattr(part, "content")]


async def test_a_run_is_charged_and_stopped_at_the_limit_with_an_outcome_that_goes_through_json() -> None:
    script = Script(*[calls("look")] * 5)
    agent = Agent(script.model())
    agent.tool_plain(name="look")(lambda: "nothing")
    budget = a_budget(250)
    with budget.session("root"):
        with pytest.raises(TurnAborted) as stopped:
            await agent.run("go")
        assert len(script.sent) == 3
        with pytest.raises(TurnAborted):
            await agent.run("again")
    assert len(script.sent) == 3, "an exhausted tree sends nothing more"
    outcome = BudgetExceeded.from_json(stopped.value.outcome.to_json())
    assert outcome == BudgetExceeded(
        reason="budget_exceeded", tree_id="tree", thread_id="root", limit=250, used=300, crossed_by="root",
        threads={"root": 300},
    )  # fmt: skip


async def test_every_kind_of_token_is_charged_by_its_weight() -> None:
    usage = RequestUsage(
        input_tokens=1000,
        cache_read_tokens=600,
        cache_write_tokens=100,
        output_tokens=50,
        details={"reasoning_tokens": 20},
    )
    script = Script(ModelResponse(parts=[TextPart("done")], usage=usage))
    budget = a_budget(10_000, cached_token_weight=0.1, cache_write_token_weight=2, reasoning_token_weight=3)
    with budget.session("root"):
        await Agent(script.model()).run("go")
    assert budget.status().used == 600 * 0.1 + 100 * 2 + 300 + 20 * 3 + 30


async def test_a_sub_agent_and_a_hand_off_share_the_ledger() -> None:
    budget = a_budget()
    reader = Agent(Script(says("read", tokens=70)).model())
    writer = Agent(Script(says("written", tokens=30)).model())
    planner = Agent(Script(calls("read"), says("planned")).model())

    @planner.tool_plain
    async def read() -> str:
        with budget.session("reader"):
            return (await reader.run("read")).output

    with budget.session("planner"):
        planned = await planner.run("go")
        await writer.run("write it down", message_history=planned.all_messages())
    threads = {
        thread.thread_id: (thread.parent_thread_id, thread.used_with_children) for thread in budget.status().threads
    }
    assert threads == {"planner": (None, 300), "reader": ("planner", 70)}


async def test_a_childs_own_limit_stops_the_child_and_leaves_the_parent_at_work() -> None:
    budget = a_budget()
    child = Agent(Script(says("long", tokens=200)).model())
    parent_script = Script(calls("ask"), says("done without"))
    parent = Agent(parent_script.model())

    @parent.tool_plain
    async def ask() -> str:
        try:
            with budget.session("child", limit_tokens=150):
                return (await child.run("go")).output
        except TurnAborted as stopped:
            return stopped.outcome.to_json()

    with budget.session("parent"):
        assert (await parent.run("go")).output == "done without"
    told = parent_script.sent[-1][-1].parts[0]
    assert isinstance(told, ToolReturnPart) and BudgetExceeded.from_json(str(told.content)).scope == "child"


async def test_children_at_once_cannot_all_count_on_the_same_rest() -> None:
    budget = a_budget(250)
    gate = asyncio.Event()
    sent: list[str] = []

    async def answer(_: list[ModelMessage], __: AgentInfo) -> ModelResponse:
        sent.append("one")
        await gate.wait()
        return says("done")

    async def child(number: int) -> str:
        with budget.session(f"child {number}"):
            try:
                return (await Agent(BudgetModel(FunctionModel(answer), reserve_tokens=100)).run("go")).output
            except TurnAborted as stopped:
                gate.set()
                return stopped.reason

    with budget.session("root"):
        answers = await asyncio.gather(*(child(number) for number in range(3)))
    assert sorted(answers) == ["budget_reserved", "done", "done"]
    assert len(sent) == 2
    assert (budget.status().used, budget.status().reserved) == (200, 0)


REMINDER = (
    "<rollout_budget>\nYou have {} weighted tokens left in the shared session token budget.\n</rollout_budget>".format
)


@pytest.mark.parametrize(("inline_system", "kind"), [(True, SystemPromptPart), (False, UserPromptPart)])
async def test_a_reminder_is_the_last_part_and_what_is_before_it_never_changes(inline_system: bool, kind: type) -> None:
    script = Script(calls("look"), calls("look"), says("done"), inline_system=inline_system)
    agent = Agent(script.model(), system_prompt="be brief")
    agent.tool_plain(name="look")(lambda: "nothing")
    with a_budget(1000, reminder_at_remaining_tokens=(850,)).session("root"):
        result = await agent.run("go")
    first, second, third = script.sent
    assert last_parts(first) == [(SystemPromptPart, "be brief"), (UserPromptPart, "go"), (kind, REMINDER(1000))]
    assert last_parts(second) == [(ToolReturnPart, "nothing")]
    assert last_parts(third) == [(ToolReturnPart, "nothing"), (kind, REMINDER(800))]
    assert [type(part) for message in result.all_messages()[:1] for part in message.parts] == [
        SystemPromptPart,
        UserPromptPart,
    ], "the agent's own history stays as it is"


async def test_a_reminder_whose_request_failed_is_sent_with_the_next_one() -> None:
    script = Script(ModelHTTPError(503, "model"), says("done"), says("done"))
    agent = Agent(script.model())
    with a_budget().session("root"):
        with pytest.raises(ModelHTTPError):
            await agent.run("go")
        for _ in range(2):
            await agent.run("go")
    assert [any("<rollout_budget>" in str(text) for _, text in last_parts(sent)) for sent in script.sent] == [
        True,
        True,
        False,
    ]


async def test_grace_tokens_let_one_closing_answer_through() -> None:
    script = Script(says("much", tokens=101), says("the sum of it", tokens=10))
    agent = Agent(script.model())
    with a_budget(100, grace_tokens=50).session("root"):
        with pytest.raises(TurnAborted):
            await agent.run("go")
        assert (await agent.run("sum up")).output == "the sum of it"
        with pytest.raises(TurnAborted):
            await agent.run("more")


Stream = Callable[[list[ModelMessage], AgentInfo], AsyncIterator[str | DeltaToolCalls]]


def streamed(stream: Stream) -> BudgetModel:
    return BudgetModel(FunctionModel(stream_function=stream))


async def words(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    for word in ["one ", "two ", "three ", "four "]:
        yield word


async def test_a_streamed_run_is_reminded_charged_and_stopped() -> None:
    seen: list[list[ModelMessage]] = []

    async def asks_for_ever(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        seen.append(messages)
        yield {0: DeltaToolCall("look", "{}", tool_call_id=f"call {len(seen)}")}

    agent = Agent(streamed(asks_for_ever))
    agent.tool_plain(name="look")(lambda: "nothing " * 20)
    budget = a_budget(100)
    with budget.session("root"), pytest.raises(TurnAborted):
        async with agent.run_stream("go") as result:
            await result.get_output()
    assert any("<rollout_budget>" in str(text) for _, text in last_parts(seen[0]))
    assert budget.status().exhausted
    assert len(seen) < 10


async def test_a_stream_that_is_left_early_is_charged_with_what_was_reported() -> None:
    budget = a_budget()
    with budget.session("root"):
        async with Agent(streamed(words)).run_stream("go") as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                break
    whole = a_budget()
    with whole.session("root"):
        async with Agent(streamed(words)).run_stream("go") as result:
            await result.get_output()
    assert 0 < budget.status().used <= whole.status().used


@pytest.mark.parametrize("how", ["error", "cancelled"])
async def test_the_error_inside_a_stream_is_the_one_that_is_raised(how: str) -> None:
    async def breaks(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        yield "much " * 500
        raise ConnectionResetError if how == "error" else asyncio.CancelledError

    budget = a_budget(100)
    with budget.session("root"), pytest.raises((ConnectionResetError, asyncio.CancelledError)):
        async with Agent(streamed(breaks)).run_stream("go") as result:
            await result.get_output()
    assert budget.status().exhausted, "what it used is charged all the same"


async def test_outside_of_a_session_nothing_is_metered_unless_one_was_given() -> None:
    budget = a_budget()
    await Agent(BudgetModel(TestModel())).run("go")
    await Agent(BudgetModel(TestModel(), session=Session(budget, "given"))).run("go")
    with budget.session("current"):
        await Agent(BudgetModel(TestModel(), session=Session(budget, "given"))).run("go")
    assert [(thread.thread_id, thread.used > 0) for thread in budget.status().threads] == [
        ("given", True),
        ("current", True),
    ]


_: Callable[..., Awaitable[object]] = test_outside_of_a_session_nothing_is_metered_unless_one_was_given


class Compacting(TestModel):
    async def compact_messages(
        self, request_context: ModelRequestContext, *, instructions: str | None = None
    ) -> ModelResponse:
        return says("in short", tokens=60)


async def test_a_compaction_is_charged_and_begins_a_context_that_is_told_what_is_left() -> None:
    budget = a_budget()
    model = BudgetModel(Compacting())
    context = ModelRequestContext(
        model=model, messages=[], model_settings=None, model_request_parameters=ModelRequestParameters()
    )
    assert (await model.compact_messages(context)).text == "in short"
    with budget.session("root") as session:
        await Agent(model).run("go")
        assert session.pending_reminder("0") is None
        before = budget.status().used
        await model.compact_messages(context)
        assert budget.status().used == before + 60
        assert session.pending_reminder("0")
