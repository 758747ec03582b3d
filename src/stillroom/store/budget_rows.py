"""The rows of shared ledgers: a tree, its threads, what is held.

All functions run inside a transaction of the caller. The tree itself is the node whose thread id is empty; in records
its `thread_id` is `None`.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

import msgspec

from stillroom.budget.charges import MAX_UNITS, PER_TOKEN, units_of
from stillroom.budget.config import RolloutBudgetConfig
from stillroom.budget.outcome import BudgetStatus, ReservationStatus, ThreadStatus
from stillroom.budget.reminders import Delivery
from stillroom.config import BUDGET
from stillroom.store.processes import is_surely_gone
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql, to_sql

Lineage = tuple[str | None, ...]
"""From the tree down to a thread."""


class Node(NamedTuple):
    """The tree, or a thread of it. Amounts are millionths."""

    thread_id: str | None
    parent_thread_id: str | None
    limit: int | None
    own: int
    used: int
    crossed_by: str | None
    closing_given: bool
    delivered: Delivery | None

    @property
    def is_exceeded(self) -> bool:
        return self.limit is not None and self.used > self.limit


class Hold(NamedTuple):
    """Tokens of a reservation that is neither settled nor released."""

    reservation_id: str
    thread_id: str
    units: int
    lease_until_ms: int
    owner: str


def begin_tree(db: sqlite3.Connection, tree_id: str, config: RolloutBudgetConfig, *, now: int) -> None:
    """Add the tree, unless it is there, and delete those that nobody has used for long."""
    tree = to_sql(tree_id)
    execute(db, "begin_budget_tree", tree_id=tree, config_json=msgspec.json.encode(config), now=now)
    limit = units_of(config.limit)
    execute(db, "add_budget_node", tree_id=tree, thread_id="", parent_thread_id=None, limit_units=limit, now=now)
    execute(db, "use_budget_tree", tree_id=tree, now=now)
    before = now - BUDGET.tree_kept_days * 24 * 3600
    execute(db, "drop_unused_budget_trees", before=before, kept=BUDGET.trees_kept)


def config_of(db: sqlite3.Connection, tree_id: str) -> RolloutBudgetConfig | None:
    """What the tree was begun with; None if there is none."""
    row = execute(db, "get_budget_tree", tree_id=to_sql(tree_id)).fetchone()
    return row and msgspec.json.decode(row["config_json"], type=RolloutBudgetConfig)


def trees(db: sqlite3.Connection, *, limit: int) -> list[tuple[str, RolloutBudgetConfig]]:
    """The trees, the last used first."""
    return [
        (from_sql(row["tree_id"]), msgspec.json.decode(row["config_json"], type=RolloutBudgetConfig))
        for row in execute(db, "list_budget_trees", limit=limit).fetchall()
    ]


def add_thread(db: sqlite3.Connection, tree_id: str, thread_id: str, *, parent: str | None, now: int) -> None:
    """Add a thread, unless it is there."""
    execute(
        db,
        "add_budget_node",
        tree_id=to_sql(tree_id),
        thread_id=to_sql(thread_id),
        parent_thread_id=_key_or_null(parent),
        limit_units=None,
        now=now,
    )


def lower_limit(db: sqlite3.Connection, tree_id: str, thread_id: str, limit: int) -> None:
    execute(db, "lower_budget_limit", tree_id=to_sql(tree_id), thread_id=to_sql(thread_id), limit_units=limit)


def node(db: sqlite3.Connection, tree_id: str, thread_id: str | None) -> Node | None:
    row = execute(db, "get_budget_node", tree_id=to_sql(tree_id), thread_id=_key(thread_id)).fetchone()
    return row and _read_node(row)


def nodes(db: sqlite3.Connection, tree_id: str) -> list[Node]:
    """The tree and its threads, in the order in which they were seen."""
    return [_read_node(row) for row in execute(db, "list_budget_nodes", tree_id=to_sql(tree_id)).fetchall()]


def charge(db: sqlite3.Connection, tree_id: str, path: Lineage, units: int, *, now: int) -> bool | None:
    """Add a charge all along the path; returns whether a limit on it is exceeded, None if the tree is gone."""
    tree, used_by = to_sql(tree_id), _key(path[-1])
    exceeded = False
    for thread_id in path:
        row = execute(
            db,
            "charge_budget_node",
            tree_id=tree,
            thread_id=_key(thread_id),
            charge=units,
            most=MAX_UNITS,
            used_by=used_by,
            now=now,
        ).fetchone()
        if row is None:
            return None
        exceeded = exceeded or (row["limit_units"] is not None and row["used_units"] > row["limit_units"])
    return exceeded


def set_closing(db: sqlite3.Connection, tree_id: str, scope: str | None, *, given: bool) -> None:
    execute(db, "set_budget_closing", tree_id=to_sql(tree_id), thread_id=_key(scope), given=given)


def set_delivery(db: sqlite3.Connection, tree_id: str, thread_id: str, delivery: Delivery | None) -> None:
    execute(
        db,
        "set_budget_delivery",
        tree_id=to_sql(tree_id),
        thread_id=to_sql(thread_id),
        window_id=delivery and to_sql(delivery.window_id),
        index=delivery and delivery.index,
    )


def save_hold(db: sqlite3.Connection, tree_id: str, hold: Hold) -> None:
    execute(
        db,
        "save_budget_hold",
        reservation_id=hold.reservation_id,
        tree_id=to_sql(tree_id),
        thread_id=to_sql(hold.thread_id),
        units=hold.units,
        lease_until_ms=hold.lease_until_ms,
        owner=hold.owner,
    )


def holds(db: sqlite3.Connection, tree_id: str, *, now_ms: int) -> tuple[list[Hold], list[Hold]]:
    """What is held, and what is left over from leases and processes that ended."""
    rows = [
        Hold(row["reservation_id"], from_sql(row["thread_id"]), row["units"], row["lease_until_ms"], row["owner"])
        for row in execute(db, "list_budget_holds", tree_id=to_sql(tree_id)).fetchall()
    ]
    gone = {owner for owner in {hold.owner for hold in rows} if is_surely_gone(owner)}
    ended = [hold for hold in rows if hold.lease_until_ms <= now_ms or hold.owner in gone]
    return [hold for hold in rows if hold not in ended], ended


def drop_hold(db: sqlite3.Connection, reservation_id: str) -> None:
    execute(db, "drop_budget_hold", reservation_id=reservation_id)


def status(db: sqlite3.Connection, tree_id: str, config: RolloutBudgetConfig, *, now_ms: int) -> BudgetStatus:
    """The whole tree."""
    tree, *threads = nodes(db, tree_id)
    held, _ = holds(db, tree_id, now_ms=now_ms)
    assert tree.limit is not None  # given when the tree was begun
    return BudgetStatus(
        tree_id=tree_id,
        limit=config.limit,
        used=tree.used / PER_TOKEN,
        remaining=max(tree.limit - tree.used, 0) / PER_TOKEN,
        reserved=sum(hold.units for hold in held) / PER_TOKEN,
        exhausted=config.enforce_limit and tree.is_exceeded,
        crossed_by=tree.crossed_by,
        threads=tuple(
            ThreadStatus(
                thread_id=str(thread.thread_id),
                parent_thread_id=thread.parent_thread_id,
                limit=None if thread.limit is None else thread.limit / PER_TOKEN,
                used=thread.own / PER_TOKEN,
                used_with_children=thread.used / PER_TOKEN,
            )
            for thread in threads
        ),
        reservations=tuple(
            ReservationStatus(
                reservation_id=hold.reservation_id,
                thread_id=hold.thread_id,
                tokens=hold.units / PER_TOKEN,
                lease_until=hold.lease_until_ms // 1000,
                owner=hold.owner,
            )
            for hold in held
        ),
    )


def _key(thread_id: str | None) -> str | bytes:
    return "" if thread_id is None else to_sql(thread_id)


def _key_or_null(thread_id: str | None) -> str | bytes | None:
    return None if thread_id is None else to_sql(thread_id)


def _text(value: str | bytes | None) -> str | None:
    return None if value is None else from_sql(value)


def _read_node(row: sqlite3.Row) -> Node:
    window = _text(row["delivered_window"])
    return Node(
        thread_id=from_sql(row["thread_id"]) or None,
        parent_thread_id=_text(row["parent_thread_id"]),
        limit=row["limit_units"],
        own=row["own_units"],
        used=row["used_units"],
        crossed_by=_text(row["crossed_by"]),
        closing_given=bool(row["closing_given"]),
        delivered=None if window is None else Delivery(window, row["delivered_index"]),
    )
