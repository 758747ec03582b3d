"""Threads of projects whose memory is switched off.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from stillroom.store.consolidation import enqueue
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import from_sql, to_sql


def switched_off(db: sqlite3.Connection) -> set[str]:
    """The folders of threads that are switched off."""
    return {from_sql(row["cwd"]) for row in execute(db, "list_switched_off")}


def switch_off(db: sqlite3.Connection, folders: Collection[str], *, retries: int, now: int) -> int:
    """Exactly the threads in these folders are switched off; returns how many were not so before.

    What is remembered of one that is newly off is to be consolidated away, and what is remembered of one that is on
    again comes back.
    """
    before = {row["thread_id"] for row in execute(db, "list_selected_refused")}
    # Every thread is asked for, not only every folder: new ones in a folder that is off are on to begin with.
    off, known = set(folders), switched_off(db)
    changed = (
        db.executemany(QUERIES["switch_off"], [{"cwd": to_sql(cwd)} for cwd in sorted(off)]).rowcount if off else 0
    )
    back = sorted(known - off)
    if back:
        changed += db.executemany(QUERIES["switch_on"], [{"cwd": to_sql(cwd)} for cwd in back]).rowcount
    after = {row["thread_id"] for row in execute(db, "list_selected_refused")}
    if back or not after <= before:
        enqueue(db, now, retries=retries)
    return changed


def count(db: sqlite3.Connection, folders: Collection[str]) -> tuple[int, int]:
    """How many threads ran in these folders, and how many of them the last consolidation drew on."""
    rows = [execute(db, "count_folder", cwd=to_sql(cwd)).fetchone() for cwd in folders]
    return sum(row["threads"] for row in rows), sum(row["selected"] or 0 for row in rows)
