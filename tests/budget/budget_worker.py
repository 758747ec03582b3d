"""A process that shares a ledger: `python budget_worker.py charge|time|spend|hold DATABASE AMOUNT`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from stillroom.budget import TurnAborted
from stillroom.spending import Usage
from stillroom.store.budgets import SharedBudget


def charge(budget: SharedBudget, times: int) -> None:
    """Charge one token, so many times."""
    for number in range(times):
        budget.record_usage(f"thread-{number % 3}", Usage(output_tokens=1))


def time_charges(budget: SharedBudget, times: int) -> None:
    """Once a line is read: charge one token, so many times; print the seconds that each took."""
    budget.register("root")
    print("ready", flush=True)
    sys.stdin.readline()
    took = []
    for _ in range(times):
        began = time.perf_counter()
        budget.record_usage("root", Usage(output_tokens=1))
        took.append(time.perf_counter() - began)
    print(*took)


def spend(budget: SharedBudget, tokens: int) -> None:
    """Reserve and settle until nothing is left; print what was charged."""
    charged = 0.0
    try:
        while True:
            with budget.reserve("spender", tokens) as held:
                charged += tokens
                held.settle(Usage(output_tokens=tokens))
    except TurnAborted:
        print(charged)


def hold(budget: SharedBudget, tokens: int) -> None:
    """Reserve, say so, and wait for the end."""
    with budget.reserve("holder", tokens):
        print("held", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    work = {"charge": charge, "time": time_charges, "spend": spend, "hold": hold}[sys.argv[1]]
    with SharedBudget.attach(Path(sys.argv[2]), tree_id="tree") as shared:
        work(shared, int(sys.argv[3]))
