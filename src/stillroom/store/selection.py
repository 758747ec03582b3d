"""What the memory folder rests on, and what it is to rest on next (spec §4.10).

Where this differs from Codex: new extractions lift the pause after a failure only while retries are left, and the files
on disk are the union with the previous selection.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3

from stillroom.clock import DAY_SECONDS
from stillroom.config import StageTwo
from stillroom.store.records import Selection, Stage1Output
from stillroom.store.sql import execute
from stillroom.store.texts import to_sql, values


def enqueue(db: sqlite3.Connection, watermark: int) -> None:
    """Say that there is something to consolidate. The job's watermark grows each time, whatever is given."""
    execute(db, "enqueue_consolidation", watermark=watermark, retries=StageTwo().retries)


def select(db: sqlite3.Connection, *, limit: int, max_unused_days: int, now: int) -> Selection:
    """The top `limit` outputs, and with them what the previous selection adds to the files on disk."""
    if limit <= 0:
        return Selection(selected=(), on_disk=())
    cutoff = now - max(max_unused_days, 0) * DAY_SECONDS
    selected = [to_output(row) for row in execute(db, "select_outputs", cutoff=cutoff, limit=limit)]
    previous = [to_output(row) for row in execute(db, "select_previous_outputs", limit=2 * limit)]
    chosen = {output.thread_id for output in selected}
    room = 2 * limit - len(selected)
    leaving = [output for output in previous if output.thread_id not in chosen][:room]
    return Selection(
        selected=tuple(selected), on_disk=tuple(sorted(selected + leaving, key=lambda output: output.thread_id))
    )


def is_selected(db: sqlite3.Connection, thread_id: str) -> bool:
    """Whether the last successful consolidation drew on the thread."""
    return execute(db, "is_selected", thread_id=to_sql(thread_id)).fetchone() is not None


def selected_refused(db: sqlite3.Connection) -> set[str]:
    """The threads that the last successful consolidation drew on, and that may not be remembered any more."""
    return {row["thread_id"] for row in execute(db, "list_selected_refused")}


def to_output(row: sqlite3.Row) -> Stage1Output:
    return Stage1Output(**values(row))
