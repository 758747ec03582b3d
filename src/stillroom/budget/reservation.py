"""Tokens held for a request under way: reserve, then settle or release."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, Self

from stillroom.budget.outcome import TurnAborted
from stillroom.errors import ReservationSettled
from stillroom.spending import Usage

if TYPE_CHECKING:
    from stillroom.budget.protocol import Budget


class Closing(NamedTuple):
    """Which limit gives the closing answer: a thread's own, or with None the tree's."""

    scope: str | None


class Reservation:
    """A hold on weighted tokens. Leaving its block without `settle` gives them back.

    with budget.reserve("child", 8_000) as held:
        response = send(max_output_tokens=8_000)
        held.settle(response.usage)
    """

    def __init__(
        self, budget: Budget, *, reservation_id: str, thread_id: str, tokens: float, closing: Closing | None = None
    ) -> None:
        self.reservation_id = reservation_id
        self.thread_id = thread_id
        #: Weighted tokens.
        self.tokens = tokens
        #: Set for a closing answer.
        self.closing = closing
        self._budget = budget
        #: Protects what follows: two threads may settle at once, and only one may charge.
        self._lock = threading.Lock()
        self._settled = False
        self._released = False

    def settle(self, usage: Usage, *, units: float | None = None) -> float:
        """End the hold and charge what was used; returns the charge. Raises as `record_usage` does.

        It may come after `release`, or after the lease: a cancelled request whose usage is reported late is charged.
        A second time raises `ReservationSettled` and charges nothing. After `InvalidUsage` it may be tried again.
        """
        with self._lock:
            if self._settled:
                raise ReservationSettled(f"reservation `{self.reservation_id}` was settled before")
            try:
                charged = self._budget.settle_reservation(self, usage, units=units)
            except TurnAborted:
                self._settled = True
                raise
            self._settled = True
            return charged

    def release(self) -> None:
        """End the hold and charge nothing. Does nothing a second time, or after `settle`."""
        with self._lock:
            if not self._settled and not self._released:
                self._budget.release_reservation(self)
                self._released = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
