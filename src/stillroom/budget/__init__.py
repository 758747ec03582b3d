"""One weighted token ledger for a tree of agent sessions: charges, limits, reservations, reminders.

`ledger` keeps it in memory; `stillroom.store.budgets` keeps it in the state database. `protocol` says what both can do.
"""

from __future__ import annotations

from stillroom.budget.config import RolloutBudgetConfig, load_budget_config
from stillroom.budget.ledger import RolloutBudget
from stillroom.budget.outcome import BudgetExceeded, BudgetStatus, ReservationStatus, ThreadStatus, TurnAborted
from stillroom.budget.protocol import Budget
from stillroom.budget.reminders import Reminder
from stillroom.budget.reported import ReportedUsage, read_usage
from stillroom.budget.reservation import Reservation
from stillroom.budget.session import Session, current_session, keep_session

__all__ = [
    "Budget",
    "BudgetExceeded",
    "BudgetStatus",
    "Reminder",
    "ReportedUsage",
    "Reservation",
    "ReservationStatus",
    "RolloutBudget",
    "RolloutBudgetConfig",
    "Session",
    "ThreadStatus",
    "TurnAborted",
    "current_session",
    "keep_session",
    "load_budget_config",
    "read_usage",
]
