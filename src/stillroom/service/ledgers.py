"""The budgets of all trees that go through a gateway. Everything here blocks, most of it for about a millisecond."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stillroom.budget import Reminder, RolloutBudgetConfig, TurnAborted, read_usage
from stillroom.clock import Clock
from stillroom.config import DatabaseLimits
from stillroom.errors import BudgetError
from stillroom.service.naming import Named
from stillroom.store.budgets import SharedBudget
from stillroom.store.database import Database


@dataclass(frozen=True, slots=True)
class Admission:
    """A request that may be sent."""

    named: Named
    reminder: Reminder | None


class Ledgers:
    """One ledger a tree, each begun with the same configuration, or resumed with its own.

    Two connections to one database: who only reads waits for nobody, not even for a charge of ours that has to wait.
    """

    def __init__(self, path: Path, config: RolloutBudgetConfig, *, limits: DatabaseLimits, clock: Clock) -> None:
        self._config, self._clock = config, clock
        self._reading, self._writing = Database(path, limits), Database(path, limits)
        self._budgets: dict[tuple[Database, str], SharedBudget] = {}
        self._known: set[tuple[str, str]] = set()

    def close(self) -> None:
        """Close the database; what is charged stays."""
        self._reading.close()
        self._writing.close()

    def knows(self, named: Named) -> bool:
        """`admit` will only read: it takes a tenth of a millisecond."""
        return (named.tree, named.thread) in self._known

    def admit(self, named: Named) -> Admission:
        """Raises `TurnAborted` when the tree may send nothing more, `BudgetError` or `StoreError` without a ledger."""
        try:
            return self._admit(named)
        except TurnAborted:
            raise
        except BudgetError:
            # Trees that nobody used for long are deleted, whoever has them open: this one begins anew.
            self._forget(named.tree)
            return self._admit(named)

    def _admit(self, named: Named) -> Admission:
        budget = self._budget(self._reading, named.tree)
        budget.register(named.thread, parent=named.parent)
        self._known.add((named.tree, named.thread))
        budget.check(named.thread)
        reminder = budget.pending_reminder(named.thread, named.window)
        return Admission(named, reminder)

    def _forget(self, tree: str) -> None:
        for database in (self._reading, self._writing):
            self._budgets.pop((database, tree), None)
        self._known = {known for known in self._known if known[0] != tree}

    def _budget(self, database: Database, tree: str) -> SharedBudget:
        key = (database, tree)
        if key not in self._budgets:
            self._budgets[key] = SharedBudget.within(database, self._config, tree_id=tree, clock=self._clock)
        return self._budgets[key]

    def charge(self, admission: Admission, reported: object, *, reminded: bool) -> str | None:
        """Charge what a response reported; what a person should know of it.

        Raises `InvalidUsage` for counts that mean nothing, and `StoreError`; then nothing is charged.
        """
        thread = admission.named.thread
        budget = self._budget(self._writing, admission.named.tree)
        if reminded and admission.reminder:
            budget.mark_reminder_delivered(admission.reminder)
        usage = read_usage(reported)
        if usage is None:
            return "the upstream reported no usage: nothing is charged"
        try:
            budget.record_usage(thread, usage.usage, units=usage.units)
        except TurnAborted as stop:
            return str(stop)
        return None
