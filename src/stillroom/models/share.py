"""A pass's allowance where several processes send requests: each knows what the others have spent, as it was last told.

    share = Share(memories, …)                   # in the other process
    share.spent_elsewhere = told                 # before a job
    settled = share.settle()                     # after it

As between threads, requests that are under way when a cap is reached are paid for all the same.
"""

from __future__ import annotations

from collections import deque

import msgspec

from stillroom.clock import Clock
from stillroom.config import Memories
from stillroom.models.allowance import Allowance, PausedSince, Refused, SpentSince
from stillroom.spending import Phase, Usage


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """What a process has spent, for the one that it works for."""

    #: Since it last told.
    charges: list[tuple[Phase, Usage]]
    #: By now, in weighted tokens.
    run_tokens: int
    #: It was refused more.
    refused: Refused | None


class Share(Allowance):
    """What one more process may spend. Any thread may use it."""

    def __init__(self, memories: Memories, *, spent_since: SpentSince, clock: Clock, paused_since: PausedSince) -> None:
        super().__init__(memories, spent_since=spent_since, clock=clock, paused_since=paused_since)
        #: Weighted tokens of this pass that all other processes have spent.
        self.spent_elsewhere = 0
        self._unsettled: deque[tuple[Phase, Usage]] = deque()

    def run_tokens(self) -> int:
        return self.spent_elsewhere + super().run_tokens()

    def charge(self, phase: Phase, usage: Usage) -> None:
        super().charge(phase, usage)
        self._unsettled.append((phase, usage))

    def settle(self) -> Settled:
        """What there is to tell, whichever thread spent it."""
        charges = []
        while True:
            try:
                charges.append(self._unsettled.popleft())
            except IndexError:
                return Settled(charges=charges, run_tokens=super().run_tokens(), refused=self.refused)
