"""What the memory folder rests on, and what it is to rest on next (spec §4.10).

Where this differs from Codex: new extractions lift the pause after a failure only while retries are left; the files on
disk are the union with the previous selection; age counts from the last use or the extraction; preferences have none.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3

from stillroom.clock import DAY_SECONDS
from stillroom.config import StageTwo
from stillroom.store.records import Leaving, Selection, Stage1Output
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql, to_sql, values

_NAME_CHARS = 80


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
    left = [output for output in previous if output.thread_id not in chosen]
    return Selection(
        selected=tuple(selected),
        on_disk=tuple(sorted(selected + left[:room], key=lambda output: output.thread_id)),
        leaving=tuple(_leaving(db, output, is_full=len(selected) >= limit) for output in left),
    )


def name_of(db: sqlite3.Connection, thread_id: str, *, slug: str | None = None) -> tuple[str, str]:
    """What a person calls a thread, and its folder."""
    row = execute(db, "get_name", thread_id=to_sql(thread_id)).fetchone()
    if row is None:
        return slug or thread_id, ""
    found = values(row)
    name = slug or found["rollout_slug"] or found["title"] or found["preview"] or thread_id
    return " ".join(str(name).split())[:_NAME_CHARS], str(found["cwd"])


def leaving(db: sqlite3.Connection, *, max_unused_days: int, before: int) -> list[Leaving]:
    """What the memory rests on and will lose before that second, unless somebody uses it."""
    seconds = max(max_unused_days, 0) * DAY_SECONDS
    found: list[Leaving] = []
    for row in execute(db, "list_leaving", before=before - seconds).fetchall():
        name, cwd = name_of(db, from_sql(row["thread_id"]), slug=row["rollout_slug"] and from_sql(row["rollout_slug"]))
        found.append(Leaving(thread_id=from_sql(row["thread_id"]), name=name, cwd=cwd, at=row["alive_at"] + seconds))
    return found


def _leaving(db: sqlite3.Connection, output: Stage1Output, *, is_full: bool) -> Leaving:
    name, cwd = name_of(db, output.thread_id, slug=output.rollout_slug)
    return Leaving(thread_id=output.thread_id, name=name, cwd=cwd, reason="rank" if is_full else "unused")


def is_selected(db: sqlite3.Connection, thread_id: str) -> bool:
    """Whether the last successful consolidation drew on the thread."""
    return execute(db, "is_selected", thread_id=to_sql(thread_id)).fetchone() is not None


def selected_refused(db: sqlite3.Connection) -> set[str]:
    """The threads that the last successful consolidation drew on, and that may not be remembered any more."""
    return {row["thread_id"] for row in execute(db, "list_selected_refused")}


def to_output(row: sqlite3.Row) -> Stage1Output:
    return Stage1Output(**values(row))
