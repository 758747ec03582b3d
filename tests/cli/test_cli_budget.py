"""`stillroom budget status`: before there is any, and with a tree under way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stillroom.budget import RolloutBudgetConfig, TurnAborted
from stillroom.cli.app import run_command
from stillroom.clock import SystemClock
from stillroom.spending import Usage
from stillroom.store.budgets import SharedBudget


def test_a_new_user_is_told_that_there_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"
    assert run_command(["budget", "status", "--home", str(home)]) == 0
    assert capsys.readouterr() == ("", "no session tree has a shared budget yet\n")
    assert run_command(["budget", "status", "--json", "--home", str(home)]) == 0
    assert json.loads(capsys.readouterr().out) == {"budgets": []}
    assert run_command(["budget", "status", "nightly", "--home", str(home)]) == 1
    assert "there is no budget `nightly`" in capsys.readouterr().err
    assert not home.exists()


def test_trees_are_told_with_threads_and_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = RolloutBudgetConfig(limit_tokens=100_000, reminder_at_remaining_tokens=())
    path = tmp_path / "state.sqlite3"
    with SharedBudget.open(path, config, tree_id="nightly", clock=SystemClock()) as budget:
        with budget.session("root") as root:
            root.record_usage(Usage(output_tokens=1500))
            with budget.session("search\x1b[31m", limit_tokens=4000) as child:
                child.record_usage(Usage(), units=2500.5)
        budget.reserve("root", 2000)
        with SharedBudget.open(path, config, tree_id="used up") as other, pytest.raises(TurnAborted):
            other.record_usage("root", Usage(output_tokens=100_001))
        assert run_command(["budget", "status", "nightly", "--home", str(tmp_path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[:3] == [
            "nightly  4,000.5 of 100,000 used, 95,999.5 left",
            "  root  4,000.5 used, 1,500 itself",
            "    search\ufffd[31m  2,500.5 of 4,000 used",
        ]
        assert lines[3].startswith("  held: 2,000 for root until ")
        assert run_command(["budget", "status", "--home", str(tmp_path)]) == 0
        assert "used up  100,001 of 100,000 used, 0 left  EXHAUSTED by root" in capsys.readouterr().out
        assert run_command(["budget", "status", "nightly", "--json", "--home", str(tmp_path)]) == 0
        (told,) = json.loads(capsys.readouterr().out)["budgets"]
        assert (told["limit"], told["used"], told["remaining"], told["reserved"]) == (100_000, 4000.5, 95_999.5, 2000)
        assert [thread["thread_id"] for thread in told["threads"]] == ["root", "search\x1b[31m"]
    assert run_command(["budget", "status", "--limit", "1", "--json", "--home", str(tmp_path)]) == 0
    assert len(json.loads(capsys.readouterr().out)["budgets"]) == 1


def test_a_tree_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = RolloutBudgetConfig(limit_tokens=100, reminder_at_remaining_tokens=())
    SharedBudget.open(tmp_path / "state.sqlite3", config, tree_id="tree").close()
    assert run_command(["budget", "status", "other", "--home", str(tmp_path)]) == 1
    assert "holds no budget `other`" in capsys.readouterr().err


def test_a_large_tree_is_cut_and_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = RolloutBudgetConfig(limit_tokens=100_000, reminder_at_remaining_tokens=())
    with SharedBudget.open(tmp_path / "state.sqlite3", config, tree_id="large") as budget:
        for number in range(35):
            budget.reserve(f"thread-{number}", 1)
        assert run_command(["budget", "status", "--home", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("  and 5 more threads") == lines.count("  and 5 more reservations") == 1
    assert len(lines) == 1 + 30 + 1 + 30 + 1
