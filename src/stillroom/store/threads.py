"""What is known of every thread, and which of them may be remembered (spec §4.3, §4.7, §4.12).

Two modes are kept of a thread: what the agent's files say, and what was set here. What was set here counts. Each method
of `Threads` is one transaction, but for `save`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, get_args

import msgspec

from stillroom.clock import Clock
from stillroom.store import copies
from stillroom.store.database import Database
from stillroom.store.forgetting import without_first_words, without_forgotten
from stillroom.store.records import Place
from stillroom.store.selection import enqueue, is_selected, selected_refused
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import columns, from_sql, to_sql
from stillroom.thread import FileStamp, MemoryMode, Thread


class Threads:
    """Every thread that a scan found."""

    def __init__(self, database: Database, *, clock: Clock, per_transaction: int) -> None:
        self._database = database
        self._clock = clock
        self._per_transaction = per_transaction

    def file_stamps(self, agent: str) -> dict[str, FileStamp]:
        """How each of the agent's rollouts looked when it was last read, by path; also copies, which are not read."""
        with self._database.read() as db:
            rows = [
                *execute(db, "list_copies", agent=agent),
                *(row[1:] for row in execute(db, "list_file_stamps", agent=agent)),
            ]
        return {
            from_sql(path): FileStamp(size=size, mtime_ns=mtime_ns, offset=offset)
            for path, size, mtime_ns, offset in rows
        }

    def save(self, found: Sequence[tuple[Thread, FileStamp]]) -> int:
        """Insert or refresh threads. A mode that was set here stays. Many are saved in several transactions, so that
        a first scan of years of sessions keeps nobody waiting. Returns how many are passed over, because a person had
        them forgotten."""
        forgotten = 0
        for start in range(0, len(found), self._per_transaction):
            with self._database.write() as db:
                forgotten += save(db, found[start : start + self._per_transaction], now=self._clock.now())
        return forgotten

    def places(self, thread_ids: Iterable[str]) -> dict[str, Place]:
        """Where each of these threads is read, of those that are known and were there at the last scan."""
        with self._database.read() as db:
            return copies.places(db, thread_ids)

    def save_copies(self, found: Sequence[tuple[str, Place]]) -> None:
        """Keep how files look that hold threads too, by thread id: they are not opened again while they stay so."""
        with self._database.write() as db:
            copies.save(db, found)

    def mark_missing(self, agent: str, present: Collection[str]) -> int:
        """Mark the agent's rollouts that are not among these paths: they are not claimed until they come back. What
        was extracted of them stays. Returns how many are newly gone."""
        present = frozenset(present)
        with self._database.write() as db:
            rows = execute(db, "list_file_stamps", agent=agent).fetchall()
            gone = [{"thread_id": row["thread_id"]} for row in rows if from_sql(row["rollout_path"]) not in present]
            db.executemany(QUERIES["mark_missing"], gone)
            # One of the other places takes over, when it is looked at again.
            db.executemany(QUERIES["forget_copies"], gone)
            copies.forget_missing(db, agent, present=present)
        return len(gone)

    def count_missing(self) -> tuple[int, int]:
        """How many threads' files are gone, and of how many of these something was extracted."""
        with self._database.read() as db:
            row = execute(db, "count_missing").fetchone()
        return row["threads"], row["extracted"]

    def end(self, ended: Mapping[str, int]) -> int:
        """These threads are over, each since that moment in milliseconds: their clients said so. What is said later
        makes one go on. Returns how many that is new of."""
        if not ended:
            return 0
        rows = [{"thread_id": to_sql(thread_id), "at_ms": at_ms} for thread_id, at_ms in sorted(ended.items())]
        with self._database.write() as db:
            return db.executemany(QUERIES["end_thread"], rows).rowcount

    def get(self, thread_id: str) -> Thread | None:
        """The thread with its mode as it counts, or None."""
        with self._database.read() as db:
            return _get(db, thread_id)

    def beginning(self, prefix: str, *, limit: int = 10) -> list[Thread]:
        """The threads whose ids begin so; the one of exactly this id is the first."""
        with self._database.read() as db:
            return [read_thread(row) for row in execute(db, "find_threads", prefix=to_sql(prefix), limit=limit)]

    def newest(self, *, limit: int = 100, agent: str | None = None) -> list[Thread]:
        """The threads that were active last, newest first; of one agent, or of all."""
        with self._database.read() as db:
            return [read_thread(row) for row in execute(db, "list_threads", limit=limit, agent=agent)]

    def set_memory_mode(self, thread_id: str, mode: MemoryMode) -> bool:
        """Say whether a thread may be remembered; a later scan does not undo it. Returns whether the mode changed.

        One that the last consolidation drew on, and that may not be remembered any more, is to be consolidated away,
        each time that this is said. One that may be again is extracted if nothing is there of it, and comes back.
        """
        with self._database.write() as db:
            thread = _get(db, thread_id)
            if thread is None:
                return False
            execute(db, "choose_mode", thread_id=to_sql(thread_id), mode=mode)
            if mode != "enabled" and is_selected(db, thread_id):
                enqueue(db, self._clock.now())
            if mode == "enabled" and thread.memory_mode != mode:
                execute(db, "reopen_unread", thread_id=to_sql(thread_id))
                enqueue(db, self._clock.now())
        return thread.memory_mode != mode


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


def _get(db: sqlite3.Connection, thread_id: str) -> Thread | None:
    row = execute(db, "get_thread", thread_id=to_sql(thread_id)).fetchone()
    return read_thread(row) if row else None


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
