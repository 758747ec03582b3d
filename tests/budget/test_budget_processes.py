"""One ledger in several processes, and after a restart."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from stillroom.budget import Reminder, RolloutBudgetConfig, TurnAborted
from stillroom.clock import FixedClock
from stillroom.config import BUDGET
from stillroom.errors import BudgetError
from stillroom.spending import Usage
from stillroom.store import budget_rows, processes
from stillroom.store.budgets import SharedBudget, shared_budgets

pytestmark = pytest.mark.slow

LINUX = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc: leases decide")


def open_budget(path: Path, *, limit: int = 100, clock: FixedClock | None = None) -> SharedBudget:
    config = RolloutBudgetConfig(limit_tokens=limit, reminder_at_remaining_tokens=())
    return SharedBudget.open(path, config, tree_id="tree", clock=clock)


def start(work: str, database: Path, amount: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("budget_worker.py")), work, str(database), str(amount)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]},
    )


def test_no_charge_of_two_processes_is_lost_and_holds_never_overrun_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    with open_budget(path, limit=1000) as budget:
        chargers = [start("charge", path, 90) for _ in range(2)]
        assert [worker.communicate(timeout=60) for worker in chargers] == [("", None)] * 2
        assert [(thread.thread_id, thread.used) for thread in budget.status().threads] == [
            (f"thread-{number}", 60) for number in range(3)
        ]
        spenders = [start("spend", path, 7) for _ in range(2)]
        charged = [float(worker.communicate(timeout=60)[0]) for worker in spenders]
        status = budget.status()
        assert status.used == 180 + sum(charged)
        assert 1000 - 7 < status.used <= 1000
        assert status.reserved == 0


@pytest.mark.slow
def test_processes_that_are_killed_in_mid_charge_leave_no_half_of_one(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    with open_budget(path, limit=10**9) as budget:
        chargers = [start("charge", path, 10**8) for _ in range(2)]
        while budget.status().used < 100:  # the test's time-out ends it
            assert all(charger.poll() is None for charger in chargers)
        for charger in chargers:
            charger.kill()
            charger.communicate(timeout=10)
        status = budget.status()
        assert sum(thread.used for thread in status.threads) == status.used >= 100
        budget.record_usage("root", Usage(output_tokens=1))


@LINUX
def test_what_a_process_held_ends_when_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    with open_budget(path) as budget:
        holder = start("hold", path, 60)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(TurnAborted) as caught:
            budget.reserve("root", 60)
        assert (caught.value.reason, caught.value.outcome.reserved) == ("budget_reserved", 60)
        holder.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # ended, but still in the table of processes
        assert budget.status().reserved == 0
        budget.reserve("root", 60).release()
        holder.communicate(timeout=10)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the platform does not fork")
def test_a_forked_process_shares_the_ledger(tmp_path: Path) -> None:
    with open_budget(tmp_path / "state.sqlite3") as budget:
        budget.record_usage("root", Usage(output_tokens=1))
        pid = os.fork()
        if pid == 0:
            try:
                budget.record_usage("child", Usage(output_tokens=2))
            finally:
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        budget.record_usage("root", Usage(output_tokens=4))
        assert budget.status().used == 7


def test_32_processes_at_once_are_charged_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    with open_budget(path, limit=10**9) as budget:
        workers = [start("time", path, 60) for _ in range(32)]
        assert {worker.stdout.readline() for worker in workers if worker.stdout} == {"ready\n"}
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        took = sorted(float(line) for worker in workers for line in worker.communicate(timeout=100)[0].split())
        assert budget.status().used == len(took) == 32 * 60
    assert took[int(len(took) * 0.99)] <= 0.2


def test_a_session_that_is_resumed_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    with open_budget(path) as budget, budget.session("root") as session:
        reminder = session.pending_reminder("w1")
        assert isinstance(reminder, Reminder)
        session.mark_reminder_delivered(reminder)
        session.record_usage(Usage(output_tokens=40))
    with open_budget(path, limit=1_000_000) as resumed:
        assert (resumed.remaining(), resumed.config.limit) == (60, 100)
        assert resumed.pending_reminder("root", "w1") is None
    with SharedBudget.attach(path, tree_id="tree") as attached, pytest.raises(TurnAborted):
        attached.record_usage("root", Usage(output_tokens=61))


def test_a_deep_tree_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    with open_budget(path) as budget:
        for number in range(1200):  # more than Python calls deep
            budget.register(f"{number}", parent=f"{number - 1}" if number else None)
    with open_budget(path) as resumed:
        resumed.record_usage("1199", Usage(output_tokens=1))
        assert resumed.status().threads[0].used_with_children == 1


def test_trees_of_one_database_are_strangers(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    config = RolloutBudgetConfig(limit_tokens=50, reminder_at_remaining_tokens=())
    with open_budget(path) as one, SharedBudget.open(path, config, tree_id="two") as two:
        one.reserve("root", 90)
        one.record_usage("root", Usage(output_tokens=9))
        two.reserve("root", 45)
        assert (two.status().used, two.status().limit) == (0, 50)


def test_a_tree_that_is_not_there_can_not_be_attached_to(tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match="holds no budget `nowhere`"):
        SharedBudget.attach(tmp_path / "state.sqlite3", tree_id="nowhere")


def test_a_tree_that_was_removed_is_told_so_and_charged_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.sqlite3"
    with open_budget(path) as budget:
        budget.register("root")
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute("DELETE FROM budget_trees")
        db.close()
        for thread_id in ("root", "child"):
            with pytest.raises(BudgetError, match="the budget `tree` was removed"):
                budget.record_usage(thread_id, Usage(output_tokens=1))
            with pytest.raises(BudgetError, match="the budget `tree` was removed"):
                budget.check(thread_id)
        with pytest.raises(BudgetError, match="the budget `tree` was removed"):
            budget.status()
        assert shared_budgets(path, limit=5) == ()


def test_a_clock_that_jumps_ahead_deletes_no_tree_that_is_in_use(tmp_path: Path) -> None:
    path, clock = tmp_path / "state.sqlite3", FixedClock(0)  # a machine that booted without a clock
    with open_budget(path, clock=clock) as budget:
        budget.record_usage("root", Usage(output_tokens=90))
        clock.advance(seconds=1_800_000_000)
        config = RolloutBudgetConfig(limit_tokens=50, reminder_at_remaining_tokens=())
        SharedBudget.open(path, config, tree_id="another", clock=clock).close()
        budget.record_usage("root", Usage(output_tokens=1))
    with open_budget(path, clock=clock) as budget:
        assert budget.remaining() == 9


def test_a_tree_that_nobody_used_for_a_quarter_is_deleted_when_one_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_rows, "BUDGET", msgspec.structs.replace(BUDGET, trees_kept=2))
    path, clock = tmp_path / "state.sqlite3", FixedClock(1_800_000_000_000)
    config = RolloutBudgetConfig(limit_tokens=50, reminder_at_remaining_tokens=())

    def open_tree(name: str) -> SharedBudget:
        return SharedBudget.open(path, config, tree_id=name, clock=clock)

    with open_tree("left") as left, open_tree("charged") as charged, open_tree("opened"):
        left.reserve("root", 9)
        clock.advance(seconds=1)
        charged.record_usage("root", Usage(output_tokens=1))
        open_tree("opened").close()
        clock.advance(seconds=90 * 24 * 3600)
        open_tree("new").close()
        assert {tree.tree_id for tree in shared_budgets(path, limit=9)} == {"charged", "opened", "new"}
        with pytest.raises(BudgetError, match="the budget `left` was removed"):
            left.check("root")
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM budget_reservations").fetchone() == (0,)
    db.close()
    with open_tree("left") as begun_again:
        assert begun_again.remaining() == 50


def test_names_of_any_kind_come_back_as_they_were(tmp_path: Path) -> None:
    with open_budget(tmp_path / "state.sqlite3") as budget:
        for name in ("日本", "a'b\"c", "\udcff", "\0", " "):
            with budget.session(name) as session:
                session.record_usage(Usage(output_tokens=1))
                reminder = session.pending_reminder("\udcfe")
                assert reminder is not None
                session.mark_reminder_delivered(reminder)
                assert session.pending_reminder("\udcfe") is None
        assert [thread.thread_id for thread in budget.status().threads] == ["日本", "a'b\"c", "\udcff", "\0", " "]


@LINUX
def test_only_what_is_certain_counts_as_gone() -> None:
    mine = processes.this_process()
    pid, start_tick, id_space = mine.split("@")
    assert not processes.is_surely_gone(mine)
    assert processes.is_surely_gone(f"{pid}@{int(start_tick) - 1}@{id_space}")
    assert processes.is_surely_gone(f"{2**30}@{start_tick}@{id_space}")
    for unknown in ("", "nonsense", f"{pid}@-@{id_space}", f"{2**30}@5@another-machine", "x@5@-"):
        assert not processes.is_surely_gone(unknown)
