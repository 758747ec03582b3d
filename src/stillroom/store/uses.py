"""What was used of memory, each use once, and which sessions are still to be searched for it.

Each method of `Uses` is one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

import msgspec

from stillroom.store.database import Database
from stillroom.store.records import RecordedUse, Use, Worth
from stillroom.store.sql import execute
from stillroom.store.texts import to_sql
from stillroom.store.threads import read_thread
from stillroom.thread import FileStamp, Thread


class Uses:
    """The uses of memory that are recorded of sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def unsearched(self) -> list[tuple[Thread, FileStamp]]:
        """Sessions that are new or changed since they were searched, with how their files looked; oldest first: a fork
        comes after its origin."""
        with self._database.read() as db:
            return [
                (read_thread(row), FileStamp(size=row["file_size"], mtime_ns=row["file_mtime_ns"]))
                for row in execute(db, "list_unsearched")
            ]

    def known(self, thread_id: str) -> set[tuple[bytes, int | None]]:
        """The uses that are recorded of a session, as `(digest, nth)`."""
        with self._database.read() as db:
            return set(_known(db, thread_id))

    def record(self, thread_id: str, uses: Sequence[Use], *, stamp: FileStamp | None = None) -> list[RecordedUse]:
        """Record what a session used of memory and count it, each use once however often it is given; returns what is
        new. With `stamp` the session counts as searched."""
        with self._database.write() as db:
            recorded = _record(db, thread_id, uses)
            if stamp is not None:
                _save_search(db, thread_id, stamp)
            return recorded

    def mark_searched(self, found: Sequence[tuple[str, FileStamp]]) -> None:
        """These sessions, whose files looked like this, use no memory that is not recorded yet."""
        with self._database.write() as db:
            for thread_id, stamp in found:
                _save_search(db, thread_id, stamp)

    def citations(self, thread_ids: Collection[str], *, since: int) -> list[int]:
        """When messages cited the memory of one of these threads, in seconds, oldest first."""
        wanted = frozenset(thread_ids)
        with self._database.read() as db:
            return [
                row["at"]
                for row in execute(db, "list_citations", since=since)
                if not wanted.isdisjoint(msgspec.json.decode(row["counted"], type=tuple[str, ...]))
            ]

    def worth(self, *, since: int) -> Worth:
        """What the memory holds, and what of it was used since then."""
        with self._database.read() as db:
            return Worth(**execute(db, "worth_of_outputs", since=since).fetchone())


def _record(db: sqlite3.Connection, thread_id: str, uses: Sequence[Use]) -> list[RecordedUse]:
    """Record those that are new, and count the memory that they used."""
    recorded: list[RecordedUse] = []
    seen = _known(db, thread_id)
    for use in uses:
        nth = use.nth if use.nth is not None else 1 + sum(digest == use.digest for digest, _ in seen)
        if (use.digest, nth) in seen:
            continue
        twin = seen.get((use.twin, nth)) if use.twin is not None else None
        counted = tuple(
            name for name in use.used if twin is None and (use.kind == "command" or _count(db, name, use.at))
        )
        seen[use.digest, nth] = counted
        execute(
            db,
            "save_use",
            thread_id=to_sql(thread_id),
            digest=use.digest,
            nth=nth,
            kind=use.kind,
            at=use.at,
            counted=msgspec.json.encode([name.encode("utf-8", "replace").decode() for name in counted]).decode(),
        )
        recorded.append(RecordedUse(use=use, counted=counted if twin is None else twin, again=twin is not None))
    return recorded


def _known(db: sqlite3.Connection, thread_id: str) -> dict[tuple[bytes, int | None], tuple[str, ...]]:
    """The uses of a session that are recorded, as `(digest, nth)`, and what was counted of each."""
    return {
        (row["digest"], row["nth"]): msgspec.json.decode(row["counted"], type=tuple[str, ...])
        for row in execute(db, "list_uses", thread_id=to_sql(thread_id))
    }


def _save_search(db: sqlite3.Connection, thread_id: str, stamp: FileStamp) -> None:
    execute(db, "save_search", thread_id=to_sql(thread_id), file_size=stamp.size, file_mtime_ns=stamp.mtime_ns)


def _count(db: sqlite3.Connection, thread_id: str, at: int) -> bool:
    return execute(db, "use_output", thread_id=to_sql(thread_id), now=at).rowcount > 0
