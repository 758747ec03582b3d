"""`stillroom budget`: what trees of sessions have used of their shared budgets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec

from stillroom.budget.outcome import BudgetStatus
from stillroom.cli.options import Flag, current_settings, option
from stillroom.cli.output import print_data, print_json, print_lines
from stillroom.config import BUDGET
from stillroom.errors import BudgetError
from stillroom.store.budgets import SharedBudget, shared_budgets
from stillroom.wording import many, plain


class BudgetReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    budgets: tuple[BudgetStatus, ...]


def status_command(
    tree: str | None = None,
    /,
    *,
    max_trees: Annotated[int, option("--limit", "-n", at_least=1)] = BUDGET.trees_told,
    json: Flag = False,
) -> int:
    """Show each tree's limit, what is used, held and left, and what each of its threads used.

    These are the budgets in the state database (`SharedBudget`, and the gateway's). A `RolloutBudget` lives and ends
    inside its program. Numbers are weighted tokens.

    ```
    stillroom budget status
    stillroom budget status --json | jq '.budgets[0].remaining'
    ```

    Parameters
    ----------
    tree
        Only the tree of this name. Default: the trees that were used last.
    max_trees
        At most so many trees.
    json
        Print `{budgets: [...]}` as JSON.
    """
    database = current_settings().database
    report = BudgetReport(
        budgets=shared_budgets(database, limit=max_trees) if tree is None else (_one(database, tree),)
    )
    if json:
        print_json(report)
        return 0
    for budget in report.budgets:
        for line in _lines(budget):
            print_data(plain(line))
    if not report.budgets:
        print_lines([(None, "no session tree has a shared budget yet")])
    return 0


def _one(database: Path, tree: str) -> BudgetStatus:
    if not database.exists():
        raise BudgetError(f"there is no budget `{tree}`: `{database}` does not exist")
    with SharedBudget.attach(database, tree_id=tree) as budget:
        return budget.status()


def _lines(budget: BudgetStatus) -> Iterator[str]:
    end = f"  EXHAUSTED by {budget.crossed_by}" if budget.exhausted else ""
    yield f"{budget.tree_id}  {_of(budget.used, budget.limit)}, {_number(budget.remaining)} left{end}"
    children: dict[str | None, list[str]] = {}
    threads = {thread.thread_id: thread for thread in budget.threads}
    for thread in budget.threads:
        children.setdefault(thread.parent_thread_id, []).append(thread.thread_id)
    waiting = [(thread_id, 1) for thread_id in reversed(children.get(None, []))]
    told = 0
    while waiting and told < BUDGET.threads_told:
        thread_id, depth = waiting.pop()
        thread = threads[thread_id]
        used = _of(thread.used_with_children, thread.limit)
        own = f", {_number(thread.used)} itself" if thread.used != thread.used_with_children else ""
        yield f"{'  ' * depth}{thread_id}  {used}{own}"
        waiting += [(child, depth + 1) for child in reversed(children.get(thread_id, []))]
        told += 1
    if told < len(threads):
        yield f"  and {many(len(threads) - told, 'more thread')}"
    for hold in budget.reservations[: BUDGET.threads_told]:
        until = datetime.fromtimestamp(hold.lease_until).astimezone().strftime("%H:%M:%S")
        yield f"  held: {_number(hold.tokens)} for {hold.thread_id} until {until}, process {hold.owner.split('@')[0]}"
    if len(budget.reservations) > BUDGET.threads_told:
        yield f"  and {many(len(budget.reservations) - BUDGET.threads_told, 'more reservation')}"


def _of(used: float, limit: float | None) -> str:
    return f"{_number(used)} used" if limit is None else f"{_number(used)} of {_number(limit)} used"


def _number(tokens: float) -> str:
    return f"{tokens:,.2f}".rstrip("0").rstrip(".")
