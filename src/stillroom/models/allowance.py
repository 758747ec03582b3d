"""What the pipeline may spend on models: it is a tenant of a budget too, so that background work can't run away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from stillroom.budget import RolloutBudget, RolloutBudgetConfig
from stillroom.budget.charges import PER_TOKEN, weigher
from stillroom.budget.config import MAX_LIMIT_TOKENS
from stillroom.clock import Clock
from stillroom.config import Memories
from stillroom.errors import SpendingCapped
from stillroom.pausing import told_pause
from stillroom.spending import Phase, Usage

_DAY_SECONDS = 24 * 3600
#: Charges as Codex's, and no limit of its own: the caps are looked at together, and may be zero.
_LEDGER = RolloutBudgetConfig(
    limit_tokens=MAX_LIMIT_TOKENS, reminder_at_remaining_tokens=(), enforce_limit=False, reminder_at_context_start=False
)

Cap = Literal["run", "day", "pause"]
Refused = tuple[Cap, str]
"""Because of what no more is sent, and the reason in words."""
#: What was spent since a moment (seconds), by everybody who uses this state database.
SpentSince = Callable[[int], Usage]


PausedSince = Callable[[], str | None]
"""When a person paused all passes; None: nobody did."""


class AllowanceReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass spent of what it may, in weighted tokens: output and input that was not cached."""

    run_tokens: int
    run_cap: int
    #: Of the day (UTC) in which the pass ended, by all passes.
    day_tokens: int
    day_cap: int
    #: What each phase of this pass spent.
    phases: dict[str, int]
    #: Requests were not sent because of this cap.
    reached: Cap | None = None
    reason: str = ""


class Allowance:
    """The caps of one pass and of its day. Any thread may use it.

    The day's sum comes from the spending table, so that it holds for all processes and a new cap counts at once. Both
    caps are looked at before each request; requests that are under way then are paid for all the same.
    """

    def __init__(
        self,
        memories: Memories,
        *,
        spent_since: SpentSince,
        clock: Clock,
        paused_since: PausedSince = lambda: None,
    ) -> None:
        self._run_cap = memories.max_weighted_tokens_per_run
        self._day_cap = memories.max_weighted_tokens_per_day
        self._spent_since = spent_since
        self._clock = clock
        self._paused_since = paused_since
        self._ledger = RolloutBudget(_LEDGER, tree_id="pipeline", clock=clock)
        self._weigh = weigher(_LEDGER)
        #: What it last refused.
        self.refused: Refused | None = None

    def check(self) -> None:
        """Raise `SpendingCapped` if nothing more may be sent. Ask before every request; it reads the database."""
        if since := self._paused_since():
            reason = told_pause(since)
            self.refused = ("pause", reason)
            raise SpendingCapped(reason, hint="`stillroom resume` lets them run again")
        run = self.run_tokens()
        if run >= self._run_cap:
            raise self._refusal("run", run, self._run_cap)
        day = self._day_tokens()
        if day >= self._day_cap:
            raise self._refusal("day", day, self._day_cap)

    def charge(self, phase: Phase, usage: Usage) -> None:
        """Count a response, a failed one too."""
        self._ledger.record_usage(phase, usage)

    def run_tokens(self) -> int:
        """What this pass has spent by now, in weighted tokens."""
        return round(self._ledger.status().used)

    def report(self) -> AllowanceReport:
        """How it stands. Reads the database."""
        cap, reason = self.refused or (None, "")
        return AllowanceReport(
            run_tokens=self.run_tokens(),
            run_cap=self._run_cap,
            day_tokens=self._day_tokens(),
            day_cap=self._day_cap,
            phases={thread.thread_id: round(thread.used) for thread in self._ledger.status().threads},
            reached=cap,
            reason=reason,
        )

    def _day_tokens(self) -> int:
        now = self._clock.now()
        return self._weigh(self._spent_since(now - now % _DAY_SECONDS)) // PER_TOKEN

    def _refusal(self, cap: Cap, used: int, limit: int) -> SpendingCapped:
        whose = "this pass has" if cap == "run" else "today's passes have"
        key = f"memories.max_weighted_tokens_per_{cap}"
        reason = f"{whose} used {used:,} weighted tokens, and `{key}` is {limit:,}"
        self.refused = (cap, reason)
        when = "the next pass" if cap == "run" else "tomorrow (UTC)"
        return SpendingCapped(reason, hint=f"it goes on with {when}; or raise the cap")
