"""Which sessions say the same: each is distilled for what no other has told.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3

from stillroom.store.leases import STAGE1
from stillroom.store.records import Told
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql, to_sql

_DIGEST_BYTES = 8


def settle(db: sqlite3.Connection, thread_id: str, chain: bytes) -> Told | None:
    """Keep what a claimed thread says, and tell which other thread has the longest beginning of it.

    `chain` has eight bytes for each item: a digest of all items up to it. Only threads that are extracted, or at work,
    count; and none that itself leaves something to this one.
    """
    key = to_sql(thread_id)
    row = execute(
        db, "find_told", thread_id=key, chain=chain, size=len(chain), last=chain[-_DIGEST_BYTES:], kind=STAGE1
    ).fetchone()
    told = (
        Told(from_sql(row["thread_id"]), items=row["size"] // _DIGEST_BYTES, of=len(chain) // _DIGEST_BYTES)
        if row
        else None
    )
    # A program may write the next talk in the place of this one.
    execute(db, "reopen_left", thread_id=key, chain=chain)
    execute(
        db,
        "save_contents",
        thread_id=key,
        chain=chain,
        told_in=to_sql(told.thread_id) if told else None,
        told_items=told.items if told else 0,
    )
    return told


def reopen_resting(db: sqlite3.Connection, thread_id: str) -> None:
    """Have the threads extracted again that left something to one of which nothing was extracted after all."""
    execute(db, "reopen_resting", thread_id=to_sql(thread_id))


def told_elsewhere(db: sqlite3.Connection) -> dict[str | bytes, Told]:
    """The threads of which another has told the beginning, or all."""
    return {
        row["thread_id"]: Told(from_sql(row["told_in"]), items=row["told_items"], of=row["size"] // _DIGEST_BYTES)
        for row in execute(db, "list_told")
    }
