"""What every ledger can do: `RolloutBudget` in one process, `SharedBudget` across processes and restarts."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from stillroom.budget.config import RolloutBudgetConfig
from stillroom.budget.outcome import BudgetStatus
from stillroom.budget.reminders import Reminder
from stillroom.spending import Usage

if TYPE_CHECKING:
    from stillroom.budget.reservation import Reservation
    from stillroom.budget.session import Session


class Budget(Protocol):
    """One ledger for a tree of threads. Every method is atomic, and any thread or task may call it.

    A thread that is not known yet is added, directly under the tree. Limits are looked at from the tree down to the
    thread, so that the outermost one that is exceeded is the one that is reported. A limit is exceeded
    when more than it is used: with exactly nothing left, one more request may be sent, as Codex sends it.
    """

    @property
    def config(self) -> RolloutBudgetConfig:
        """What the tree was begun with."""
        ...

    @property
    def tree_id(self) -> str:
        """Names the tree in outcomes and in `stillroom budget status`."""
        ...

    def session(
        self, thread_id: str, *, parent: str | None = None, limit_tokens: float | None = None
    ) -> AbstractContextManager[Session]:
        """Make this thread the current one for everything that is started inside the block.

        Its parent is the thread that is current outside, unless `parent` names one. `limit_tokens` as in `register`.
        """
        ...

    def register(self, thread_id: str, *, parent: str | None = None, limit_tokens: float | None = None) -> None:
        """Add a thread under its parent, or under the tree. A known thread keeps its parent.

        `limit_tokens` holds for the thread and all threads below it. It can only lower what they may use: a second
        limit counts if it is below the first.
        """
        ...

    def record_usage(self, thread_id: str, usage: Usage, *, units: float | None = None) -> float:
        """Charge what a response used and return the charge, in weighted tokens.

        `units` is a charge that the provider set itself (`codex_rollout_budget_units`); then the weights don't count.
        Raises `TurnAborted` when a limit is exceeded, now or earlier: the usage is charged all the same. Raises
        `InvalidUsage` for numbers that mean nothing, and charges nothing.
        """
        ...

    def check(self, thread_id: str) -> None:
        """Raise `TurnAborted` if this thread may send nothing more. Ask before every request."""
        ...

    def remaining(self, thread_id: str | None = None) -> float:
        """Weighted tokens that the tree has left, or this thread under all limits above it. Never below zero."""
        ...

    def reserve(self, thread_id: str, tokens: float, *, lease_seconds: float | None = None) -> Reservation:
        """Hold weighted tokens for a request that is about to be sent.

        Raises `TurnAborted` when they don't fit beside what is used and what others hold, so that requests that are
        sent at once can't all count on the same rest. The hold ends with the reservation's block, with its process,
        and after `lease_seconds`.
        """
        ...

    def reserve_closing_answer(self, thread_id: str) -> Reservation | None:
        """Hold `grace_tokens` for one last answer after a limit was exceeded; None when there is none to give.

        Each limit gives one, to the first thread that asks. Settling it raises nothing, releasing it gives it back; a
        process that ends without either has used it.
        """
        ...

    def pending_reminder(self, thread_id: str, window_id: str) -> Reminder | None:
        """The reminder that has to be put into this thread's history now, if any. Changes nothing."""
        ...

    def mark_reminder_delivered(self, reminder: Reminder) -> None:
        """The reminder stands in the history. Call it only then: until it is marked it stays pending."""
        ...

    def rearm_reminder(self, thread_id: str) -> None:
        """The history lost its reminders, e.g. by a rollback: the next request states again what is left."""
        ...

    def status(self) -> BudgetStatus:
        """The whole tree at this moment."""
        ...

    def settle_reservation(self, reservation: Reservation, usage: Usage, *, units: float | None = None) -> float:
        """End the hold and charge what was used, in one step. Called by `Reservation.settle`."""
        ...

    def release_reservation(self, reservation: Reservation) -> None:
        """End the hold. Called by `Reservation.release`, once."""
        ...
