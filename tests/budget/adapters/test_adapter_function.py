"""Any function that sends a request, by decorator."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from stillroom.budget import RolloutBudget, RolloutBudgetConfig, Session, TurnAborted
from stillroom.budget.adapters.function import metered
from stillroom.errors import InvalidUsage
from stillroom.spending import Usage


def a_budget(limit_tokens: int = 1000, **keys: Any) -> RolloutBudget:
    keys.setdefault("reminder_at_remaining_tokens", ())
    return RolloutBudget(RolloutBudgetConfig(limit_tokens=limit_tokens, **keys))


def test_a_function_is_charged_with_what_it_returns_and_not_called_once_the_limit_is_reached() -> None:
    called: list[str] = []

    @metered
    def ask(name: str) -> Any:
        called.append(name)
        return {"usage": {"prompt_tokens": 60, "completion_tokens": 40}}

    with a_budget(150).session("root"):
        ask("one")
        with pytest.raises(TurnAborted):
            ask("two")
        with pytest.raises(TurnAborted):
            ask("three")
    assert called == ["one", "two"]
    ask("four")
    assert called[-1] == "four", "outside of a session nothing is metered"


@pytest.mark.parametrize(
    ("result", "charge"),
    [
        ({"usage": {"input_tokens": 10, "output_tokens": 5}}, 15),
        (SimpleNamespace(usage={"input_tokens": 1, "output_tokens": 1, "codex_rollout_budget_units": 7.5}), 7.5),
        (SimpleNamespace(usage=Usage(output_tokens=9)), 9),
        ({"usage": None}, 0),
        ("no usage at all", 0),
    ],
)
def test_usage_is_found_in_objects_and_in_json(result: object, charge: float) -> None:
    budget = a_budget()
    with budget.session("root"):
        assert metered(lambda: result)() is result
    assert budget.status().used == charge


def test_a_closing_answer_that_tells_no_usage_is_the_only_one_all_the_same() -> None:
    answers = iter([{"usage": Usage(output_tokens=101)}, "no usage at all"])
    ask = metered(lambda: next(answers))
    with a_budget(100, grace_tokens=50).session("root"):
        with pytest.raises(TurnAborted):
            ask()
        assert ask() == "no usage at all"
        with pytest.raises(TurnAborted):
            ask()


def test_usage_may_stand_elsewhere_and_nonsense_is_refused() -> None:
    budget = a_budget()
    with budget.session("root"):
        metered(usage=lambda answer: answer[1])(lambda: ("text", {"input_tokens": 3}))()
        with pytest.raises(InvalidUsage):
            metered(usage=lambda answer: answer)(lambda: {"input_tokens": "many"})()
    assert budget.status().used == 3


def test_a_reminder_is_passed_until_a_call_succeeds() -> None:
    reminders: list[str | None] = []

    @metered(reminder="told")
    def ask(*, fails: bool, told: str | None = None) -> Any:
        reminders.append(told)
        if fails:
            raise ConnectionError
        return {"usage": {"output_tokens": 1}}

    with a_budget(1000).session("root") as session:
        with pytest.raises(ConnectionError):
            ask(fails=True)
        ask(fails=False)
        ask(fails=False)
        session.rearm_reminder()
        metered(lambda: {"usage": {"output_tokens": 1}})()
        assert session.pending_reminder("0"), "who is given no reminder was not reminded"
    text = "<rollout_budget>\nYou have 1000 weighted tokens left in the shared session token budget.\n</rollout_budget>"
    assert reminders == [text, text, None]


def test_coroutines_share_the_ledger_and_what_is_cancelled_gives_its_hold_back() -> None:
    budget = a_budget(300)

    @metered(reserve_tokens=100)
    async def ask(gate: asyncio.Event) -> Any:
        await gate.wait()
        return {"usage": {"output_tokens": 50}}

    async def child(number: int, gate: asyncio.Event) -> object:
        with budget.session(f"child {number}"):
            return await ask(gate)

    async def main() -> list[Any]:
        gate = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            cancelled = group.create_task(child(0, asyncio.Event()))
            await asyncio.sleep(0)
            assert budget.status().reserved == 100
            cancelled.cancel()
        tasks = [asyncio.ensure_future(child(number, gate)) for number in range(1, 5)]
        await asyncio.sleep(0)
        gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    with budget.session("root"):
        ends = asyncio.run(main())
    assert [getattr(end, "reason", "answered") for end in ends] == ["answered"] * 3 + ["budget_reserved"]
    assert (budget.status().used, budget.status().reserved) == (150, 0)


def test_a_generator_is_refused_because_only_its_reader_knows_its_end() -> None:
    def words() -> Iterator[str]:
        yield "one"

    with pytest.raises(TypeError, match="yields its answer"):
        metered(words)


def test_a_session_may_be_given_for_threads_that_have_none() -> None:
    budget = a_budget()
    metered(session=Session(budget, "given"))(lambda: {"usage": {"output_tokens": 5}})()
    assert budget.status().threads[0].used == 5
