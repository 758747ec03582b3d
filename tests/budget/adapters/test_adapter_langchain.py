"""The ledger in real LangChain agents and LangGraph graphs, with LangChain's own fake models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from stillroom.budget import BudgetExceeded, RolloutBudget, RolloutBudgetConfig, Session, TurnAborted

pytest.importorskip("langchain", reason="the extra `langchain` is not installed: `make adapters` runs this")

from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import PrivateAttr

from stillroom.budget.adapters.langchain import BudgetCallback, BudgetMiddleware

REMINDER = (
    "<rollout_budget>\nYou have {} weighted tokens left in the shared session token budget.\n</rollout_budget>".format
)


def a_budget(limit_tokens: int = 1000, **keys: Any) -> RolloutBudget:
    keys.setdefault("reminder_at_remaining_tokens", ())
    return RolloutBudget(RolloutBudgetConfig(limit_tokens=limit_tokens, **keys), tree_id="tree")


class Fake(GenericFakeChatModel):
    """LangChain's fake model, which keeps what it was sent and takes tools."""

    kind: str = "openai-chat"
    _sent: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def sent(self) -> list[list[BaseMessage]]:
        return self._sent

    @property
    def _llm_type(self) -> str:
        return self.kind

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **keys: Any,
    ) -> ChatResult:
        self._sent.append(messages)
        return super()._generate(messages, stop, run_manager, **keys)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **keys: Any,
    ) -> Iterator[ChatGenerationChunk]:
        """Words, and the usage with the last of them, as the models of the providers do."""
        self._sent.append(messages)
        answer = next(self.messages)
        assert isinstance(answer, AIMessage)
        for word in str(answer.content).split():
            yield ChatGenerationChunk(message=AIMessageChunk(word))
        yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=answer.usage_metadata))

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def fake(*answers: AIMessage | Exception, **keys: Any) -> Fake:
    def each() -> Iterator[AIMessage]:
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
            yield answer

    return Fake(messages=each(), **keys)


def used(output: int, **details: Any) -> Any:
    return {"input_tokens": 0, "output_tokens": output, "total_tokens": output, **details}


def says(text: str, *, tokens: int = 100) -> AIMessage:
    return AIMessage(text, usage_metadata=used(tokens))


def calls(name: str, *, tokens: int = 100) -> AIMessage:
    call = {"name": name, "args": {}, "id": "call", "type": "tool_call"}
    return AIMessage("", tool_calls=[call], usage_metadata=used(tokens))


@tool
def look() -> str:
    """Look."""
    return "nothing"


GO = {"messages": [("user", "go")]}


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream"])
def test_an_agent_is_charged_reminded_and_stopped_at_the_limit(how: str) -> None:
    model = fake(*[calls("look") for _ in range(5)])
    agent = create_agent(model, tools=[look], system_prompt="be brief", middleware=[BudgetMiddleware()])

    def run() -> None:
        if how == "invoke":
            agent.invoke(GO)
        elif how == "ainvoke":
            asyncio.run(agent.ainvoke(GO))
        else:
            list(agent.stream(GO, stream_mode="updates"))

    with a_budget(250, reminder_at_remaining_tokens=(150,)).session("root"):
        with pytest.raises(TurnAborted) as stopped:
            run()
        assert len(model.sent) == 3
        with pytest.raises(TurnAborted):
            run()
    assert len(model.sent) == 3, "an exhausted tree sends nothing more"
    assert [(type(sent[-1]), sent[-1].text) for sent in model.sent] == [
        (SystemMessage, REMINDER(250)),
        (SystemMessage, REMINDER(150)),
        (ToolMessage, "nothing"),
    ]
    assert [message.text for message in model.sent[2]][:2] == ["be brief", "go"], "the history stays as it is"
    outcome = BudgetExceeded.from_json(stopped.value.outcome.to_json())
    assert (outcome.used, outcome.threads) == (300, {"root": 300})


def test_where_a_system_message_must_be_the_first_a_reminder_is_the_users() -> None:
    model = fake(says("done"), kind="anthropic-chat")
    with a_budget().session("root"):
        create_agent(model, middleware=[BudgetMiddleware()]).invoke(GO)
    assert [type(message) for message in model.sent[0]] == [HumanMessage, HumanMessage]


@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_a_sub_agent_in_a_tool_shares_the_ledger(how: str) -> None:
    budget = a_budget()
    child = create_agent(fake(says("long", tokens=200)), middleware=[BudgetMiddleware()])

    @tool
    def ask() -> str:
        """Ask."""
        try:
            with budget.session("child", limit_tokens=150):
                return str(child.invoke(GO)["messages"][-1].text)
        except TurnAborted as stopped:
            return stopped.outcome.to_json()

    model = fake(calls("ask"), says("done without"))
    parent = create_agent(model, tools=[ask], middleware=[BudgetMiddleware()])
    with budget.session("parent"):
        state = parent.invoke(GO) if how == "invoke" else asyncio.run(parent.ainvoke(GO))
    assert state["messages"][-1].text == "done without"
    assert BudgetExceeded.from_json(state["messages"][-2].content).scope == "child"
    assert [(thread.thread_id, thread.parent_thread_id, thread.used) for thread in budget.status().threads] == [
        ("parent", None, 200),
        ("child", "parent", 200),
    ]


def test_a_hand_off_between_nodes_of_a_graph_shares_the_ledger_by_callback() -> None:
    budget = a_budget(250)
    planner, writer = fake(says("a plan"), says("a plan")), fake(says("a text"), says("a text"))

    def plan(state: MessagesState) -> Any:
        return {"messages": [planner.invoke(state["messages"])]}

    async def write(state: MessagesState) -> Any:
        return {"messages": [await writer.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node(plan).add_node(write)
    graph.add_edge(START, "plan").add_edge("plan", "write").add_edge("write", END)
    runnable = graph.compile()

    async def run() -> Any:
        return await runnable.ainvoke(GO, config={"callbacks": [BudgetCallback()]})

    with budget.session("root"):
        assert asyncio.run(run())["messages"][-1].text == "a text"
        with pytest.raises(TurnAborted):
            asyncio.run(run())
        with pytest.raises(TurnAborted):
            asyncio.run(run())
    assert (len(planner.sent), len(writer.sent)) == (2, 1)
    assert budget.status().used == 300


def test_a_callback_gives_back_what_a_failed_request_held() -> None:
    budget = a_budget()
    with budget.session("root") as session:
        callback = BudgetCallback(session=session, reserve_tokens=400)
        for answer in (ConnectionError(), says("done")):
            model = fake(answer)
            try:
                model.invoke("go", config={"callbacks": [callback]})
            except ConnectionError:
                assert budget.status().reserved == 0
    assert (budget.status().used, budget.status().reserved) == (100, 0)


def test_a_model_that_streams_is_charged_by_callback_and_raises_after_its_last_chunk() -> None:
    budget = a_budget(150)
    model = fake(says("one two"), says("three four"))
    seen: list[str] = []
    with budget.session("root"):
        for chunk in model.stream("go", config={"callbacks": [BudgetCallback()]}):
            seen += [str(chunk.content)]
        with pytest.raises(TurnAborted):
            for chunk in model.stream("go", config={"callbacks": [BudgetCallback()]}):
                seen += [str(chunk.content)]
    assert [word for word in seen if word] == ["one", "two", "three", "four"]
    assert budget.status().used == 200


def test_an_agent_whose_tokens_are_streamed_is_charged() -> None:
    budget = a_budget()
    agent = create_agent(fake(says("one two")), middleware=[BudgetMiddleware()])
    with budget.session("root"):
        chunks = [chunk.content for chunk, _ in agent.stream(GO, stream_mode="messages")]
    assert [chunk for chunk in chunks if chunk] == ["one", "two"]
    assert budget.status().used == 100


def test_each_try_of_a_retry_is_reminded_until_one_is_answered() -> None:
    budget = a_budget()
    model = fake(says("done"), says("done"))
    broken = fake(ConnectionError())
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, on_failure="error")
    with budget.session("root") as session:
        with pytest.raises(Exception):  # noqa: B017
            create_agent(broken, middleware=[retry, BudgetMiddleware()]).invoke(GO)
        assert all(REMINDER(1000) == sent[-1].text for sent in broken.sent) and len(broken.sent) == 2
        assert session.pending_reminder("0"), "nobody read it"
        create_agent(model, middleware=[retry, BudgetMiddleware()]).invoke(GO)
        assert session.pending_reminder("0") is None
    assert budget.status().used == 100


def test_every_kind_of_token_is_charged_by_its_weight() -> None:
    details = {
        "input_tokens": 1000,
        "input_token_details": {"cache_read": 600, "cache_creation": 100},
        "output_token_details": {"reasoning": 20},
    }
    budget = a_budget(10_000, cached_token_weight=0.1, cache_write_token_weight=2, reasoning_token_weight=3)
    with budget.session("root"):
        answer = AIMessage("done", usage_metadata=used(50, **details))
        create_agent(fake(answer), middleware=[BudgetMiddleware()]).invoke(GO)
    assert budget.status().used == 600 * 0.1 + 100 * 2 + 300 + 20 * 3 + 30


def test_outside_of_a_session_nothing_is_metered_unless_one_was_given() -> None:
    budget = a_budget()
    create_agent(fake(says("done")), middleware=[BudgetMiddleware()]).invoke(GO)
    fake(says("done")).invoke("go", config={"callbacks": [BudgetCallback()]})
    create_agent(fake(says("done")), middleware=[BudgetMiddleware(session=Session(budget, "given"))]).invoke(GO)
    assert budget.status().used == 100
