"""`RolloutBudget`: the ledger of a tree of sessions within one process."""

from __future__ import annotations

import threading
import uuid
from typing import Literal

from stillroom.budget.arguments import checked_thread_id, lease_ms_of, limit_units, reserved_units
from stillroom.budget.charges import PER_TOKEN, provider_units, units_of, weigher
from stillroom.budget.config import RolloutBudgetConfig
from stillroom.budget.outcome import BudgetExceeded, BudgetStatus, ReservationStatus, ThreadStatus, TurnAborted
from stillroom.budget.reminders import Delivery, Reminder, after_delivery, due_reminder
from stillroom.budget.reservation import Closing, Reservation
from stillroom.budget.session import SessionScope
from stillroom.clock import Clock, SystemClock
from stillroom.spending import Usage

#: More than any ledger can hold, for threads under which only the limits above count.
_NO_LIMIT = 2**64


class _Node:
    """The tree, or a thread of it. Amounts are millionths."""

    __slots__ = (
        "between",
        "closing_given",
        "crossed_by",
        "delivered",
        "limit",
        "own",
        "parent",
        "path",
        "thread_id",
        "used",
    )

    def __init__(self, thread_id: str | None, *, parent: _Node | None, limit: int) -> None:
        self.thread_id = thread_id
        self.parent = parent
        self.limit = limit
        #: With all that is below.
        self.used = 0
        self.own = 0
        self.crossed_by: str | None = None
        self.closing_given = False
        self.delivered: Delivery | None = None
        #: From the tree down to this node.
        self.path: tuple[_Node, ...] = (*parent.path, self) if parent else (self,)
        #: Without these two; empty for most threads.
        self.between = self.path[1:-1]


class _Hold:
    """Tokens of a reservation that is neither settled nor released."""

    __slots__ = ("lease_until_ms", "node", "units")

    def __init__(self, node: _Node, units: int, lease_until_ms: int) -> None:
        self.node = node
        self.units = units
        self.lease_until_ms = lease_until_ms


class RolloutBudget:
    """One weighted ledger for a tree of threads, in memory: a `Budget`. It ends with its process.

    budget = RolloutBudget(RolloutBudgetConfig(limit_tokens=1_000_000, reminder_at_remaining_tokens=(100_000,)))
    with budget.session("root") as session:
        session.check()
        response = send(...)
        session.record_usage(Usage(input_tokens=1_200, output_tokens=300))
    """

    def __init__(self, config: RolloutBudgetConfig, *, tree_id: str | None = None, clock: Clock | None = None) -> None:
        self._config = config
        self._tree_id = str(uuid.uuid4()) if tree_id is None else tree_id
        self._clock = clock or SystemClock()
        self._weigh = weigher(config)
        #: Protects every node and hold: a charge changes several, and a reservation reads before it writes.
        self._lock = threading.Lock()
        self._tree = _Node(None, parent=None, limit=units_of(config.limit))
        self._threads: dict[str, _Node] = {}
        self._holds: dict[str, _Hold] = {}

    @property
    def config(self) -> RolloutBudgetConfig:
        return self._config

    @property
    def tree_id(self) -> str:
        return self._tree_id

    def session(self, thread_id: str, *, parent: str | None = None, limit_tokens: float | None = None) -> SessionScope:
        return SessionScope(self, thread_id, parent=parent, limit_tokens=limit_tokens)

    def register(self, thread_id: str, *, parent: str | None = None, limit_tokens: float | None = None) -> None:
        limit = None if limit_tokens is None else limit_units(limit_tokens)
        with self._lock:
            if parent is not None and parent != thread_id and thread_id not in self._threads:
                above = self._node(parent)
                self._threads[thread_id] = _Node(checked_thread_id(thread_id), parent=above, limit=_NO_LIMIT)
            node = self._node(thread_id)
            if limit is not None:
                node.limit = min(node.limit, limit)

    def record_usage(self, thread_id: str, usage: Usage, *, units: float | None = None) -> float:
        charge = self._weigh(usage) if units is None else provider_units(units)
        stop = self._charge(thread_id, charge)
        if stop:
            raise TurnAborted(stop)
        return charge / PER_TOKEN

    def check(self, thread_id: str) -> None:
        with self._lock:
            node = self._threads.get(thread_id) or self._node(thread_id)
            stop = self._stop(node) if any(cap.used > cap.limit for cap in node.path) else None
        if stop:
            raise TurnAborted(stop)

    def remaining(self, thread_id: str | None = None) -> float:
        with self._lock:
            return max(_left(self._tree if thread_id is None else self._node(thread_id)), 0) / PER_TOKEN

    def reserve(self, thread_id: str, tokens: float, *, lease_seconds: float | None = None) -> Reservation:
        units, lease_ms = reserved_units(tokens), lease_ms_of(lease_seconds)
        with self._lock:
            node = self._node(thread_id)
            now = self._drop_ended_holds()
            if stop := self._stop(node) or self._refusal(node, units):
                raise TurnAborted(stop)
            reservation_id = str(uuid.uuid4())
            self._holds[reservation_id] = _Hold(node, units, now + lease_ms)
        return Reservation(self, reservation_id=reservation_id, thread_id=thread_id, tokens=units / PER_TOKEN)

    def reserve_closing_answer(self, thread_id: str) -> Reservation | None:
        with self._lock:
            exceeded = self._exceeded(self._node(thread_id))
            if exceeded is None or exceeded.closing_given or not self._config.grace_tokens:
                return None
            exceeded.closing_given = True
        return Reservation(
            self,
            reservation_id=str(uuid.uuid4()),
            thread_id=thread_id,
            tokens=self._config.grace_tokens,
            closing=Closing(exceeded.thread_id),
        )

    def pending_reminder(self, thread_id: str, window_id: str) -> Reminder | None:
        with self._lock:
            node = self._node(thread_id)
            remaining, delivered = _left(node), node.delivered
        return due_reminder(
            self._config,
            thread_id=thread_id,
            window_id=window_id,
            remaining_units=remaining,
            delivered=delivered,
        )

    def mark_reminder_delivered(self, reminder: Reminder) -> None:
        with self._lock:
            node = self._node(reminder.thread_id)
            node.delivered = after_delivery(reminder, delivered=node.delivered)

    def rearm_reminder(self, thread_id: str) -> None:
        with self._lock:
            self._node(thread_id).delivered = None

    def status(self) -> BudgetStatus:
        with self._lock:
            self._drop_ended_holds()
            return BudgetStatus(
                tree_id=self._tree_id,
                limit=self._config.limit,
                used=self._tree.used / PER_TOKEN,
                remaining=max(_left(self._tree), 0) / PER_TOKEN,
                reserved=self._held(self._tree) / PER_TOKEN,
                exhausted=self._exceeded(self._tree) is not None,
                crossed_by=self._tree.crossed_by,
                threads=tuple(map(_thread_status, self._threads.values())),
                reservations=tuple(
                    ReservationStatus(
                        reservation_id=reservation_id,
                        thread_id=str(hold.node.thread_id),
                        tokens=hold.units / PER_TOKEN,
                        lease_until=hold.lease_until_ms // 1000,
                        owner="this process",
                    )
                    for reservation_id, hold in self._holds.items()
                ),
            )

    def settle_reservation(self, reservation: Reservation, usage: Usage, *, units: float | None = None) -> float:
        charge = self._weigh(usage) if units is None else provider_units(units)
        stop = self._charge(reservation.thread_id, charge, reservation_id=reservation.reservation_id)
        if stop and not reservation.closing:
            raise TurnAborted(stop)
        return charge / PER_TOKEN

    def release_reservation(self, reservation: Reservation) -> None:
        with self._lock:
            self._holds.pop(reservation.reservation_id, None)
            if reservation.closing:
                scope = reservation.closing.scope
                (self._tree if scope is None else self._threads[scope]).closing_given = False

    def _charge(self, thread_id: str, charge: int, *, reservation_id: str | None = None) -> BudgetExceeded | None:
        """End the hold, add the charge, and say why the turn has to end, in one step."""
        node = self._threads.get(thread_id) or self._new_node(thread_id)  # nodes are never removed
        tree = self._tree
        with self._lock:
            # Neither a call nor a loop is on the usual way through here: with a GIL threads change only at those, so
            # that no thread is stopped while it holds the lock, with all others waiting for it.
            if reservation_id is not None:
                self._holds.pop(reservation_id, None)
            node.own += charge
            node.used += charge
            tree.used += charge
            tree_exceeded = tree.used > tree.limit
            thread_exceeded = node.used > node.limit
            if node.between:
                thread_exceeded = self._charge_between(node, charge) or thread_exceeded
            return self._mark_exceeded(node) if tree_exceeded or thread_exceeded else None

    def _new_node(self, thread_id: str) -> _Node:
        with self._lock:
            return self._node(thread_id)

    # All below is called with the lock held.

    def _node(self, thread_id: str) -> _Node:
        node = self._threads.get(thread_id)
        if node is None:
            node = _Node(checked_thread_id(thread_id), parent=self._tree, limit=_NO_LIMIT)
            self._threads[thread_id] = node
        return node

    def _charge_between(self, node: _Node, charge: int) -> bool:
        """Charge the threads between the tree and this one; whether a limit of theirs is exceeded."""
        for cap in node.between:
            cap.used += charge
        return any(cap.used > cap.limit for cap in node.between)

    def _mark_exceeded(self, node: _Node) -> BudgetExceeded | None:
        for cap in node.path:
            if cap.used > cap.limit and cap.crossed_by is None:
                cap.crossed_by = node.thread_id
        return self._stop(node)

    def _exceeded(self, node: _Node) -> _Node | None:
        """The outermost limit over this node that is exceeded. Using exactly all of it is within it."""
        if not self._config.enforce_limit:
            return None
        return next((cap for cap in node.path if cap.used > cap.limit), None)

    def _stop(self, node: _Node) -> BudgetExceeded | None:
        exceeded = self._exceeded(node)
        return self._outcome("budget_exceeded", exceeded, node) if exceeded else None

    def _refusal(self, node: _Node, units: int) -> BudgetExceeded | None:
        """Why so much can't be held for this node."""
        if not self._config.enforce_limit:
            return None
        for cap in node.path:
            if cap.used + self._held(cap) + units > cap.limit:
                return self._outcome("budget_reserved", cap, node)
        return None

    def _outcome(
        self, reason: Literal["budget_exceeded", "budget_reserved"], cap: _Node, node: _Node
    ) -> BudgetExceeded:
        self._drop_ended_holds()
        return BudgetExceeded(
            reason=reason,
            tree_id=self._tree_id,
            thread_id=str(node.thread_id),
            scope=cap.thread_id,
            limit=cap.limit / PER_TOKEN,
            used=cap.used / PER_TOKEN,
            reserved=self._held(cap) / PER_TOKEN,
            crossed_by=cap.crossed_by,
            threads={thread_id: thread.own / PER_TOKEN for thread_id, thread in self._threads.items()},
        )

    def _held(self, cap: _Node) -> int:
        return sum(hold.units for hold in self._holds.values() if cap in hold.node.path)

    def _drop_ended_holds(self) -> int:
        """Forget holds whose lease is over; returns the time."""
        now = self._clock.now_ms()
        for reservation_id in [key for key, hold in self._holds.items() if hold.lease_until_ms <= now]:
            del self._holds[reservation_id]
        return now


def _left(node: _Node) -> int:
    """What the narrowest limit over this node leaves; below zero once it is overrun."""
    return min(cap.limit - cap.used for cap in node.path)


def _thread_status(node: _Node) -> ThreadStatus:
    return ThreadStatus(
        thread_id=str(node.thread_id),
        parent_thread_id=node.parent.thread_id if node.parent else None,
        limit=None if node.limit == _NO_LIMIT else node.limit / PER_TOKEN,
        used=node.own / PER_TOKEN,
        used_with_children=node.used / PER_TOKEN,
    )
