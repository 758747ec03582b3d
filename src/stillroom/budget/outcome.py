"""How a turn ends that its tree can't pay for, and what a ledger shows of itself. All of it goes through JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

from stillroom.errors import BudgetError


class BudgetExceeded(msgspec.Struct, frozen=True, kw_only=True):
    """Why a turn was aborted. Numbers are weighted tokens."""

    #: `budget_exceeded`: more than the limit is used. `budget_reserved`: what was to be held does not fit beside that.
    reason: Literal["budget_exceeded", "budget_reserved"]
    tree_id: str
    #: The thread whose turn is aborted.
    thread_id: str
    #: The limit that is in the way: the tree's, or a thread's own lower one.
    limit: float
    #: What counts against that limit.
    used: float
    #: What is held for requests under way, against that limit.
    reserved: float = 0
    #: The thread whose own limit it is; None: the limit of the whole tree.
    scope: str | None = None
    #: The thread whose charge exceeded the limit.
    crossed_by: str | None = None
    #: What each thread of the tree used itself.
    threads: dict[str, float] = {}

    def to_json(self) -> str:
        """One line of JSON, for a parent agent or a log."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> BudgetExceeded:
        """Read what `to_json` wrote."""
        return msgspec.json.decode(text, type=cls)


class TurnAborted(BudgetError):
    """The tree's budget does not allow this turn to go on; `outcome` says why.

    Nothing was lost: what led to it is charged. A parent catches it around a child that has a lower limit of its own;
    where the limit of the whole tree is exceeded, the parent's next `check` raises it again.
    """

    def __init__(self, outcome: BudgetExceeded) -> None:
        super().__init__(_message(outcome))
        self.outcome = outcome

    @property
    def reason(self) -> str:
        """Why: `budget_exceeded`, or `budget_reserved`."""
        return self.outcome.reason

    def __reduce__(self) -> tuple[type[TurnAborted], tuple[BudgetExceeded]]:  # so that process pools can raise it
        return (type(self), (self.outcome,))


class ThreadStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One thread of a tree. Numbers are weighted tokens."""

    thread_id: str
    parent_thread_id: str | None
    #: Its own limit, which holds for the threads below it too.
    limit: float | None
    #: By itself.
    used: float
    #: By itself and all threads below it.
    used_with_children: float


class ReservationStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Weighted tokens that are held for a request under way."""

    reservation_id: str
    thread_id: str
    tokens: float
    #: Seconds since 1970: then it counts no longer.
    lease_until: int
    #: The process that holds it.
    owner: str


class BudgetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A whole tree at one moment. Numbers are weighted tokens."""

    tree_id: str
    limit: float
    used: float
    remaining: float
    reserved: float
    #: Nothing more may be sent.
    exhausted: bool
    crossed_by: str | None
    threads: tuple[ThreadStatus, ...]
    reservations: tuple[ReservationStatus, ...]


def _message(outcome: BudgetExceeded) -> str:
    whose = (
        "the shared session token budget" if outcome.scope is None else f"the token limit of thread `{outcome.scope}`"
    )
    if outcome.reason == "budget_reserved":
        left = max(outcome.limit - outcome.used, 0)
        return f"{whose} has {left:,.0f} weighted tokens left, of which {outcome.reserved:,.0f} are reserved"
    return f"{whose} is used up: {outcome.used:,.0f} of {outcome.limit:,.0f} weighted tokens"
