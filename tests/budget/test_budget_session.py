"""The tree is found without passing it on: by coroutines, tasks, threads and pools."""

from __future__ import annotations

import asyncio
import pickle
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from stillroom.budget import Budget, RolloutBudget, RolloutBudgetConfig, Session, TurnAborted
from stillroom.budget.session import current_session, keep_session
from stillroom.spending import Usage

NewBudget = Callable[..., Budget]


def a_budget(limit_tokens: int = 100) -> RolloutBudget:
    return RolloutBudget(RolloutBudgetConfig(limit_tokens=limit_tokens, reminder_at_remaining_tokens=()))


def thread_now() -> str | None:
    session = current_session()
    return session.thread_id if session else None


def test_a_session_inside_another_is_its_child(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    with budget.session("root") as root:
        assert current_session() == root == Session(budget, "root")
        with budget.session("child", limit_tokens=50), budget.session("grandchild"):
            assert thread_now() == "grandchild"
        with budget.session("root"):
            assert thread_now() == "root"
        assert thread_now() == "root"
    assert current_session() is None
    parents = {thread.thread_id: thread.parent_thread_id for thread in budget.status().threads}
    assert parents == {"root": None, "child": "root", "grandchild": "child"}


def test_a_session_has_the_ledgers_methods_for_its_thread(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100, grace_tokens=5)
    with budget.session("root") as session:
        reminder = session.pending_reminder("w1")
        assert reminder is not None
        session.mark_reminder_delivered(reminder)
        assert session.pending_reminder("w1") is None
        session.rearm_reminder()
        assert session.pending_reminder("w1") == reminder
        session.reserve(10).release()
        assert session.record_usage(Usage(), units=40) == 40
        session.check()
        assert session.remaining() == 60
        with pytest.raises(TurnAborted):
            session.record_usage(Usage(output_tokens=61))
        assert session.reserve_closing_answer() is not None


def test_a_session_of_another_ledger_is_no_parent() -> None:
    outer, inner = a_budget(), a_budget()
    with outer.session("outer"), inner.session("inner"):
        pass
    assert [thread.parent_thread_id for thread in inner.status().threads] == [None]


def test_a_block_is_not_entered_twice_at_once() -> None:
    block = a_budget().session("root")
    with block:
        with pytest.raises(RuntimeError), block:
            pass
        assert current_session() is not None
    assert current_session() is None
    with block:
        pass


def test_tasks_and_worker_threads_of_asyncio_share_it() -> None:
    budget = a_budget()

    async def child(name: str) -> None:
        with budget.session(name):
            await asyncio.sleep(0)
            assert thread_now() == name
            assert await asyncio.to_thread(thread_now) == name

    async def main() -> None:
        with budget.session("root"):
            async with asyncio.TaskGroup() as group:
                for number in range(3):
                    group.create_task(child(f"child-{number}"))
            assert thread_now() == "root"

    asyncio.run(main())
    assert {thread.parent_thread_id for thread in budget.status().threads[1:]} == {"root"}


def test_a_pool_and_a_plain_thread_share_it_when_asked_to() -> None:
    budget = a_budget()
    seen: list[str | None] = []
    with budget.session("root"), ThreadPoolExecutor(2) as pool:
        assert list(pool.map(keep_session(lambda _: thread_now()), range(4))) == ["root"] * 4
        kept = threading.Thread(target=keep_session(lambda: seen.append(thread_now())))
        kept.start()
        kept.join()
    assert seen == ["root"]


def test_keeping_no_session_hides_the_workers_own() -> None:
    kept = keep_session(thread_now)
    with a_budget().session("root"):
        assert kept() is None
        assert thread_now() == "root"


def test_a_block_that_is_left_in_another_context_does_no_harm() -> None:
    budget = a_budget()

    async def stream() -> AsyncIterator[str | None]:
        with budget.session("stream"):
            yield thread_now()

    async def main() -> None:
        steps = stream()
        assert await asyncio.create_task(anext(steps)) == "stream"  # type: ignore[arg-type]
        await asyncio.create_task(steps.aclose())  # type: ignore[attr-defined]
        assert thread_now() is None

    asyncio.run(main())


def test_a_parent_turns_its_childs_end_into_a_result(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    with budget.session("root") as root:
        with pytest.raises(TurnAborted) as caught, budget.session("child", limit_tokens=20) as child:
            child.record_usage(Usage(output_tokens=25))
        assert caught.value.outcome.scope == "child"
        root.check()
        assert root.remaining() == 75


def test_the_error_crosses_processes_whole() -> None:
    budget = a_budget()
    with pytest.raises(TurnAborted) as caught:
        budget.record_usage("root", Usage(output_tokens=101))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.outcome) == (str(caught.value), caught.value.outcome)
    assert again.reason == "budget_exceeded"


def test_threads_that_charge_at_once_lose_nothing(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=1_000_000)
    gate = threading.Barrier(4)

    def work(number: int) -> None:
        gate.wait()
        for _ in range(50):
            budget.record_usage(f"thread-{number % 2}", Usage(output_tokens=3))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert budget.status().used == 600


def test_threads_that_reserve_at_once_never_overrun_the_limit(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=200)
    gate = threading.Barrier(4)

    def work(number: int) -> None:
        gate.wait()
        try:
            while True:
                with budget.reserve(f"thread-{number}", 9) as held:
                    held.settle(Usage(output_tokens=9))
        except TurnAborted:
            pass

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    status = budget.status()
    assert status.reserved == 0
    assert 200 - 4 * 9 <= status.used <= 200


def test_a_cancelled_request_gives_back_its_hold_and_is_charged_when_its_usage_comes(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)

    async def main() -> None:
        began = asyncio.Event()
        held = budget.reserve("root", 60)

        async def request() -> None:
            with held:
                began.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(request())
        await began.wait()
        assert budget.status().reserved == 60
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert budget.status().reserved == 0
        held.settle(Usage(output_tokens=20))

    asyncio.run(main())
    assert budget.status().used == 20
