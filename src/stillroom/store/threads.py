"""What is known of every thread, and which of them may be remembered (spec §4.3, §4.7, §4.12).

Two modes are kept of a thread: what the agent's files say, and what was set here. What was set here counts. All
functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, get_args

import msgspec

from stillroom.store import copies
from stillroom.store.consolidation import enqueue, is_selected, selected_refused
from stillroom.store.forgetting import without_first_words, without_forgotten
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import columns, from_sql, to_sql
from stillroom.thread import FileStamp, MemoryMode, Thread


def file_stamps(db: sqlite3.Connection, agent: str) -> dict[str, FileStamp]:
    """How every rollout of the agent looked when it was last read, by path; also copies, which are not read."""
    rows = [
        *execute(db, "list_copies", agent=agent),
        *(row[1:] for row in execute(db, "list_file_stamps", agent=agent)),
    ]
    return {
        from_sql(path): FileStamp(size=size, mtime_ns=mtime_ns, offset=offset) for path, size, mtime_ns, offset in rows
    }


def save(db: sqlite3.Connection, found: Sequence[tuple[Thread, FileStamp]], *, now: int) -> int:
    """Insert or refresh threads. One that was selected and turns out to be switched off is to be forgotten. Returns how
    many are passed over, because a person had them forgotten."""
    refused_before = selected_refused(db)
    allowed = without_forgotten(db, (thread for thread, _ in found))
    rows = [_columns(without_first_words(db, thread), stamp) for thread, stamp in found if thread.thread_id in allowed]
    db.executemany(QUERIES["save_thread"], rows)
    db.executemany(QUERIES["forget_copy"], rows)
    if not selected_refused(db) <= refused_before:
        enqueue(db, now)
    return len(found) - len(rows)


def mark_missing(db: sqlite3.Connection, agent: str, *, present: Collection[str]) -> int:
    """Mark the agent's rollouts that are not among the present ones; returns how many are newly gone."""
    rows = execute(db, "list_file_stamps", agent=agent).fetchall()
    gone = [{"thread_id": row["thread_id"]} for row in rows if from_sql(row["rollout_path"]) not in present]
    db.executemany(QUERIES["mark_missing"], gone)
    # One of the other places takes over, when it is looked at again.
    db.executemany(QUERIES["forget_copies"], gone)
    copies.forget_missing(db, agent, present=present)
    return len(gone)


def count_missing(db: sqlite3.Connection) -> tuple[int, int]:
    """How many threads' files are gone, and of how many of these something was extracted."""
    row = execute(db, "count_missing").fetchone()
    return row["threads"], row["extracted"]


def get(db: sqlite3.Connection, thread_id: str) -> Thread | None:
    row = execute(db, "get_thread", thread_id=to_sql(thread_id)).fetchone()
    return read_thread(row) if row else None


def beginning(db: sqlite3.Connection, prefix: str, *, limit: int) -> list[Thread]:
    return [read_thread(row) for row in execute(db, "find_threads", prefix=to_sql(prefix), limit=limit)]


def newest(db: sqlite3.Connection, *, limit: int, agent: str | None) -> list[Thread]:
    return [read_thread(row) for row in execute(db, "list_threads", limit=limit, agent=agent)]


def set_mode(db: sqlite3.Connection, thread_id: str, mode: MemoryMode, *, now: int) -> bool:
    """Set the mode, and have a selected thread forgotten if it may not be remembered any more, each time that this is
    said; one that may be again is extracted if nothing is there of it, and comes back. Returns whether the mode
    changed."""
    thread = get(db, thread_id)
    if thread is None:
        return False
    execute(db, "choose_mode", thread_id=to_sql(thread_id), mode=mode)
    if mode != "enabled" and is_selected(db, thread_id):
        enqueue(db, now)
    if mode == "enabled" and thread.memory_mode != mode:
        execute(db, "reopen_unread", thread_id=to_sql(thread_id))
        enqueue(db, now)
    return thread.memory_mode != mode


def _columns(thread: Thread, stamp: FileStamp) -> dict[str, object]:
    return {
        **columns(msgspec.structs.asdict(thread)),
        # A mode that we don't know can't mean yes.
        "recorded_mode": thread.memory_mode if thread.memory_mode in get_args(MemoryMode) else "disabled",
        "file_size": stamp.size,
        "file_mtime_ns": stamp.mtime_ns,
        "file_offset": stamp.offset,
    }


_FIELDS = Thread.__struct_fields__


def read_thread(row: sqlite3.Row) -> Thread:
    """The thread in a row whose first columns are its fields, in their order; others behind them are passed over."""
    known = [from_sql(value) if isinstance(value, bytes) else value for value in row[: len(_FIELDS)]]
    fields: dict[str, Any] = dict(zip(_FIELDS, known, strict=True))  # Any: the schema says what a column holds
    fields["archived"] = fields["archived"] == 1
    return Thread(**fields)
