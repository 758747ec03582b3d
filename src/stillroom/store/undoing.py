"""What an undo does to outputs: those of the version that the folder goes back to are selected again, as they were
then; those that came later stay out, until their threads change or a person wants them back.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from stillroom.lanes import is_shown_of
from stillroom.store.records import Stage1Restored
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql, to_sql


def undo(db: sqlite3.Connection, restored: Sequence[Stage1Restored]) -> int:
    """Make these, and no others, the previous selection; returns how many later ones stay out.

    A row that was extracted anew since it was last consolidated is no part of what is undone, and stays as it is. Of a
    thread that is not known any more nothing is restored. Doing it twice is doing it once.
    """
    for output in restored:
        if _is_there(db, output):
            continue
        row = {
            "thread_id": to_sql(output.thread_id),
            "source_updated_at": output.source_updated_at,
            "raw_memory": to_sql(output.raw_memory),
            "rollout_summary": to_sql(output.rollout_summary),
            "rollout_slug": output.rollout_slug and to_sql(output.rollout_slug),
            "generated_at": output.generated_at,
        }
        execute(db, "restore_output", **row)
    for output in restored:
        execute(db, "hold_in", thread_id=to_sql(output.thread_id), source_updated_at=output.source_updated_at)
    there = {to_sql(output.thread_id) for output in restored}
    later = [row for row in execute(db, "list_selected").fetchall() if row["thread_id"] not in there]
    for row in later:
        execute(db, "hold_out", thread_id=row["thread_id"])
    return len(later)


def _is_there(db: sqlite3.Connection, output: Stage1Restored) -> bool:
    """Whether the row is this version. It may have lines that were left out of the folder: these stay with it."""
    row = execute(db, "get_output_texts", thread_id=to_sql(output.thread_id)).fetchone()
    return (
        row is not None
        and row["source_updated_at"] == output.source_updated_at
        and is_shown_of(output.raw_memory, from_sql(row["raw_memory"]))
        and is_shown_of(output.rollout_summary, from_sql(row["rollout_summary"]))
    )
