"""`SharedBudget`: the ledger of a tree of sessions in the state database, for several processes and across restarts."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

from stillroom.budget.arguments import checked_thread_id, lease_ms_of, limit_units, reserved_units
from stillroom.budget.charges import PER_TOKEN, provider_units, weigher
from stillroom.budget.config import RolloutBudgetConfig
from stillroom.budget.outcome import BudgetExceeded, BudgetStatus, TurnAborted
from stillroom.budget.reminders import Reminder, after_delivery, due_reminder
from stillroom.budget.reservation import Closing, Reservation
from stillroom.budget.session import SessionScope
from stillroom.clock import Clock, SystemClock
from stillroom.config import DatabaseLimits
from stillroom.errors import BudgetError
from stillroom.spending import Usage
from stillroom.store import budget_rows
from stillroom.store.budget_rows import Hold, Lineage, Node
from stillroom.store.database import Database
from stillroom.store.processes import this_process
from stillroom.system import LOCK_FILE, give_way, lock


class SharedBudget:
    """One weighted ledger for a tree of threads, in a database: a `Budget`.

    Whoever opens the same tree shares it, now or later: a session that is resumed goes on where it was. Each method is
    one transaction. What a process holds ends with the process.

    with SharedBudget.open(load_settings().database, config, tree_id="release-42") as budget:
        with budget.session("root") as session: ...
    """

    def __init__(self, database: Database, config: RolloutBudgetConfig, *, tree_id: str, clock: Clock) -> None:
        self._database = database
        self._config = config
        self._tree_id = tree_id
        self._clock = clock
        self._weigh = weigher(config)
        #: A thread's place never changes once it is written.
        self._paths: dict[str, Lineage] = {}

    @classmethod
    def open(cls, path: Path, config: RolloutBudgetConfig, *, tree_id: str, clock: Clock | None = None) -> Self:
        """Begin this tree, or go on with it: a tree that is there keeps the configuration that it was begun with.

        Creates the database if need be. Raises `StoreUnavailable` or `NewerSchema`.
        """
        return cls.within(Database(path, DatabaseLimits()), config, tree_id=tree_id, clock=clock or SystemClock())

    @classmethod
    def attach(cls, path: Path, *, tree_id: str, clock: Clock | None = None) -> Self:
        """Go on with a tree that another process began. Raises `BudgetError` if there is none."""
        database = Database(path, DatabaseLimits())
        try:
            with database.read() as db:
                config = budget_rows.config_of(db, tree_id)
            if config is None:
                raise BudgetError(f"`{path}` holds no budget `{tree_id}`", hint="`stillroom budget status` lists them")
        except BaseException:
            database.close()
            raise
        return cls(database, config, tree_id=tree_id, clock=clock or SystemClock())

    @classmethod
    def within(cls, database: Database, config: RolloutBudgetConfig, *, tree_id: str, clock: Clock) -> Self:
        """As `open`, in a database that is open."""
        with _in_turn(database), database.write() as db:
            budget_rows.begin_tree(db, checked_thread_id(tree_id), config, now=clock.now())
            stored = budget_rows.config_of(db, tree_id)
        return cls(database, stored or config, tree_id=tree_id, clock=clock)

    def close(self) -> None:
        """Close the database; what is charged stays."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        self._path(thread_id, parent=parent)
        if limit is not None:
            with self._write() as db:
                budget_rows.lower_limit(db, self._tree_id, thread_id, limit)

    def record_usage(self, thread_id: str, usage: Usage, *, units: float | None = None) -> float:
        charge = self._weigh(usage) if units is None else provider_units(units)
        path = self._path(thread_id)
        with self._write() as db:
            stop = self._charge(db, path, charge)
        if stop:
            raise TurnAborted(stop)
        return charge / PER_TOKEN

    def check(self, thread_id: str) -> None:
        path = self._path(thread_id)
        with self._database.read() as db:
            stop = self._stop(db, path)
        if stop:
            raise TurnAborted(stop)

    def remaining(self, thread_id: str | None = None) -> float:
        path = (None,) if thread_id is None else self._path(thread_id)
        with self._database.read() as db:
            return max(_left(self._nodes(db, path)), 0) / PER_TOKEN

    def reserve(self, thread_id: str, tokens: float, *, lease_seconds: float | None = None) -> Reservation:
        units, lease_ms = reserved_units(tokens), lease_ms_of(lease_seconds)
        path, now_ms, reservation_id = self._path(thread_id), self._clock.now_ms(), str(uuid.uuid4())
        with self._write() as db:
            stop = self._stop(db, path) or self._refusal(db, path, units)
            if not stop:
                hold = Hold(reservation_id, thread_id, units, now_ms + lease_ms, this_process())
                budget_rows.save_hold(db, self._tree_id, hold)
        if stop:
            raise TurnAborted(stop)
        return Reservation(self, reservation_id=reservation_id, thread_id=thread_id, tokens=units / PER_TOKEN)

    def reserve_closing_answer(self, thread_id: str) -> Reservation | None:
        path = self._path(thread_id)
        with self._write() as db:
            exceeded = self._exceeded(self._nodes(db, path))
            if exceeded is None or exceeded.closing_given or not self._config.grace_tokens:
                return None
            budget_rows.set_closing(db, self._tree_id, exceeded.thread_id, given=True)
        return Reservation(
            self,
            reservation_id=str(uuid.uuid4()),
            thread_id=thread_id,
            tokens=self._config.grace_tokens,
            closing=Closing(exceeded.thread_id),
        )

    def pending_reminder(self, thread_id: str, window_id: str) -> Reminder | None:
        path = self._path(thread_id)
        with self._database.read() as db:
            nodes = self._nodes(db, path)
        return due_reminder(
            self._config,
            thread_id=thread_id,
            window_id=window_id,
            remaining_units=_left(nodes),
            delivered=nodes[-1].delivered,
        )

    def mark_reminder_delivered(self, reminder: Reminder) -> None:
        self._path(reminder.thread_id)
        with self._write() as db:
            delivered = self._node(db, reminder.thread_id).delivered
            delivery = after_delivery(reminder, delivered=delivered)
            budget_rows.set_delivery(db, self._tree_id, reminder.thread_id, delivery)

    def rearm_reminder(self, thread_id: str) -> None:
        self._path(thread_id)
        with self._write() as db:
            budget_rows.set_delivery(db, self._tree_id, thread_id, None)

    def status(self) -> BudgetStatus:
        with self._database.read() as db:
            self._node(db, None)
            return budget_rows.status(db, self._tree_id, self._config, now_ms=self._clock.now_ms())

    def settle_reservation(self, reservation: Reservation, usage: Usage, *, units: float | None = None) -> float:
        charge = self._weigh(usage) if units is None else provider_units(units)
        path = self._path(reservation.thread_id)
        with self._write() as db:
            budget_rows.drop_hold(db, reservation.reservation_id)
            stop = self._charge(db, path, charge)
        if stop and not reservation.closing:
            raise TurnAborted(stop)
        return charge / PER_TOKEN

    def release_reservation(self, reservation: Reservation) -> None:
        with self._write() as db:
            budget_rows.drop_hold(db, reservation.reservation_id)
            if reservation.closing:
                budget_rows.set_closing(db, self._tree_id, reservation.closing.scope, given=False)

    def _path(self, thread_id: str, *, parent: str | None = None) -> Lineage:
        """From the tree down to this thread, which is added if it isn't known.

        In a transaction of its own: what `_paths` holds must be committed.
        """
        if known := self._paths.get(thread_id):
            return known
        with self._database.read() as db:
            if budget_rows.node(db, self._tree_id, checked_thread_id(thread_id)):
                return self._walk(db, thread_id)
        above: Lineage = (None,) if parent is None or parent == thread_id else self._path(parent)
        with self._write() as db:
            self._node(db, None)  # a tree that was removed gets no threads
            now = self._clock.now()
            budget_rows.add_thread(db, self._tree_id, thread_id, parent=above[-1], now=now)
        with self._database.read() as db:
            return self._walk(db, thread_id)

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with _in_turn(self._database), self._database.write() as db:
            yield db

    # All below runs inside a transaction.

    def _walk(self, db: sqlite3.Connection, thread_id: str) -> Lineage:
        """From the tree down to a thread that is there."""
        path: Lineage = (None,)
        below: list[str] = []
        at: str | None = thread_id
        while at is not None:
            if known := self._paths.get(at):
                path = known
                break
            below.append(at)
            at = self._node(db, at).parent_thread_id
        path = (*path, *reversed(below))
        self._paths[thread_id] = path
        return path

    def _node(self, db: sqlite3.Connection, thread_id: str | None) -> Node:
        node = budget_rows.node(db, self._tree_id, thread_id)
        if node is None:
            raise self._removed()
        return node

    def _nodes(self, db: sqlite3.Connection, path: Lineage) -> list[Node]:
        return [self._node(db, thread_id) for thread_id in path]

    def _removed(self) -> BudgetError:
        return BudgetError(f"the budget `{self._tree_id}` was removed from `{self._database.path}`")

    def _charge(self, db: sqlite3.Connection, path: Lineage, charge: int) -> BudgetExceeded | None:
        exceeded = budget_rows.charge(db, self._tree_id, path, charge, now=self._clock.now())
        if exceeded is None:
            raise self._removed()
        return self._stop(db, path) if exceeded else None

    def _exceeded(self, nodes: list[Node]) -> Node | None:
        """The outermost limit that is exceeded."""
        if not self._config.enforce_limit:
            return None
        return next((node for node in nodes if node.is_exceeded), None)

    def _stop(self, db: sqlite3.Connection, path: Lineage) -> BudgetExceeded | None:
        exceeded = self._exceeded(self._nodes(db, path))
        return self._outcome(db, "budget_exceeded", exceeded, path) if exceeded else None

    def _refusal(self, db: sqlite3.Connection, path: Lineage, units: int) -> BudgetExceeded | None:
        """Why so much can't be held for this thread."""
        held, ended = budget_rows.holds(db, self._tree_id, now_ms=self._clock.now_ms())
        for hold in ended:
            budget_rows.drop_hold(db, hold.reservation_id)
        if not self._config.enforce_limit:
            return None
        for cap in self._nodes(db, path):
            if cap.limit is not None and cap.used + self._held(db, cap, held) + units > cap.limit:
                return self._outcome(db, "budget_reserved", cap, path)
        return None

    def _held(self, db: sqlite3.Connection, cap: Node, held: list[Hold]) -> int:
        return sum(hold.units for hold in held if cap.thread_id in self._walk(db, hold.thread_id))

    def _outcome(
        self, db: sqlite3.Connection, reason: Literal["budget_exceeded", "budget_reserved"], cap: Node, path: Lineage
    ) -> BudgetExceeded:
        assert cap.limit is not None  # only a limit stops anything
        held, _ = budget_rows.holds(db, self._tree_id, now_ms=self._clock.now_ms())
        threads = budget_rows.nodes(db, self._tree_id)[1:]
        return BudgetExceeded(
            reason=reason,
            tree_id=self._tree_id,
            thread_id=str(path[-1]),
            scope=cap.thread_id,
            limit=cap.limit / PER_TOKEN,
            used=cap.used / PER_TOKEN,
            reserved=self._held(db, cap, held) / PER_TOKEN,
            crossed_by=cap.crossed_by,
            threads={str(thread.thread_id): thread.own / PER_TOKEN for thread in threads},
        )


@contextmanager
def _in_turn(database: Database) -> Iterator[None]:
    """Wait in the system's queue: SQLite's own waiting is a lottery, in which some of 32 processes wait for seconds."""
    try:
        file = os.open(database.path.with_name(database.path.name + "-turn"), LOCK_FILE, 0o600)
    except OSError:  # a folder that can't be written: the database tells it better
        yield
        return
    try:
        lock(file, wait=True)
        yield
    finally:
        os.close(file)
        give_way()  # or the same process would be the next one, as long as it has the processor


def shared_budgets(path: Path, *, limit: int, clock: Clock | None = None) -> tuple[BudgetStatus, ...]:
    """The trees in this database, the last used first; none if it is not there. Raises as `SharedBudget.open`."""
    if not path.exists():
        return ()
    now_ms = (clock or SystemClock()).now_ms()
    database = Database(path, DatabaseLimits())
    try:
        with database.read() as db:
            trees = budget_rows.trees(db, limit=limit)
            return tuple(budget_rows.status(db, tree_id, config, now_ms=now_ms) for tree_id, config in trees)
    finally:
        database.close()


def _left(nodes: list[Node]) -> int:
    """What the narrowest limit leaves; below zero once it is overrun."""
    return min(node.limit - node.used for node in nodes if node.limit is not None)
