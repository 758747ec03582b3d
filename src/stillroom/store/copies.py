"""Where threads lie that lie in several places: each is read from one of them.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence

from stillroom.store.records import Place
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import from_sql, to_sql
from stillroom.thread import FileStamp


def places(db: sqlite3.Connection, thread_ids: Iterable[str]) -> dict[str, Place]:
    """Where each of these threads is read, of those that are known and were there at the last scan."""
    found: dict[str, Place] = {}
    for thread_id in thread_ids:
        row = execute(db, "get_place", thread_id=to_sql(thread_id)).fetchone()
        if row is not None:
            stamp = FileStamp(size=row["file_size"], mtime_ns=row["file_mtime_ns"], offset=row["file_offset"])
            found[thread_id] = Place(row["agent"], from_sql(row["rollout_path"]), row["updated_at_ms"], stamp)
    return found


def save(db: sqlite3.Connection, copies: Sequence[tuple[str, Place]]) -> None:
    """Keep how other places of these threads look; nothing of threads that are not known."""
    rows = [
        {
            "thread_id": to_sql(thread_id),
            "agent": place.agent,
            "rollout_path": to_sql(place.path),
            "file_size": place.stamp.size,
            "file_mtime_ns": place.stamp.mtime_ns,
            "file_offset": place.stamp.offset,
        }
        for thread_id, place in copies
    ]
    db.executemany(QUERIES["save_copy"], rows)


def forget_missing(db: sqlite3.Connection, agent: str, *, present: Collection[str]) -> None:
    """Forget the agent's copies that are gone."""
    rows = execute(db, "list_copies", agent=agent).fetchall()
    gone = [
        {"agent": agent, "rollout_path": row["rollout_path"]}
        for row in rows
        if from_sql(row["rollout_path"]) not in present
    ]
    db.executemany(QUERIES["forget_copy"], gone)
