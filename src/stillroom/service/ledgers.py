"""The budgets of all trees that go through a gateway. Everything here blocks, for about a millisecond."""

from __future__ import annotations

from dataclasses import dataclass

from stillroom.budget import Reminder, ReportedUsage, RolloutBudgetConfig, TurnAborted, read_usage
from stillroom.clock import Clock
from stillroom.service.naming import Named
from stillroom.store.budgets import SharedBudget
from stillroom.store.database import Database


@dataclass(frozen=True, slots=True)
class Admission:
    """A request that may be sent."""

    budget: SharedBudget
    named: Named
    reminder: Reminder | None


class Ledgers:
    """One ledger a tree, each begun with the same configuration, or resumed with its own."""

    def __init__(self, database: Database, config: RolloutBudgetConfig, *, clock: Clock) -> None:
        self._database, self._config, self._clock = database, config, clock
        self._budgets: dict[str, SharedBudget] = {}

    def admit(self, named: Named) -> Admission:
        """Raises `TurnAborted` when the tree may send nothing more, `BudgetError` or `StoreError` without a ledger."""
        budget = self._budgets.get(named.tree)
        if budget is None:
            budget = SharedBudget.within(self._database, self._config, tree_id=named.tree, clock=self._clock)
            self._budgets[named.tree] = budget
        budget.register(named.thread, parent=named.parent)
        budget.check(named.thread)
        return Admission(budget, named, budget.pending_reminder(named.thread, named.window))

    def charge(self, admission: Admission, reported: object, *, reminded: bool) -> str | None:
        """Charge what a response reported; what a person should know of it.

        Raises `InvalidUsage` for counts that mean nothing, and `StoreError`; then nothing is charged.
        """
        budget, thread = admission.budget, admission.named.thread
        if reminded and admission.reminder:
            budget.mark_reminder_delivered(admission.reminder)
        usage = read_usage(reported)
        if usage is None:
            return "the upstream reported no usage: nothing is charged"
        return self._record(budget, thread, usage)

    def _record(self, budget: SharedBudget, thread: str, reported: ReportedUsage) -> str | None:
        try:
            budget.record_usage(thread, reported.usage, units=reported.units)
        except TurnAborted as stop:
            return str(stop)
        return None
