"""The folders in which threads ran: which project each was when it was last there, and whether its memory is on.

Each method of `Folders` is one transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable

import msgspec

from stillroom.clock import Clock
from stillroom.store.database import Database
from stillroom.store.records import Checkout, Folder
from stillroom.store.selection import enqueue, selected_refused
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import columns, from_sql, to_sql, values


class Folders:
    """Every folder in which a thread ran."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def newest(self, *, limit: int) -> list[Folder]:
        """The newest first, with what is known of the project of each."""
        with self._database.read() as db:
            return [_folder(values(row)) for row in execute(db, "list_folders", limit=limit)]

    def save(self, found: Iterable[tuple[str, Checkout]]) -> None:
        """Keep what these folders are. Those that are not named stay as they are known."""
        rows = [columns({"cwd": cwd, **msgspec.structs.asdict(checkout)}) for cwd, checkout in found]
        with self._database.write() as db:
            db.executemany(QUERIES["save_folder"], rows)

    def has_switched_off(self) -> bool:
        """Whether a thread is of a project whose memory is switched off."""
        with self._database.read() as db:
            return bool(_switched_off(db))

    def switch_off(self, folders: Collection[str]) -> int:
        """Exactly the threads of these folders are switched off from now on; returns how many were not so before.

        What is remembered of one that is newly off is to be consolidated away, and what is remembered of one that is
        on again comes back.
        """
        with self._database.write() as db:
            before = selected_refused(db)
            # Every thread is asked for, not only every folder: new ones in a folder that is off are on to begin with.
            off, back = sorted(folders), sorted(_switched_off(db).difference(folders))
            changed = _switch(db, "switch_off", off) + _switch(db, "switch_on", back)
            if back or not selected_refused(db) <= before:
                enqueue(db, self._clock.now())
        return changed

    def count(self, folders: Iterable[str]) -> tuple[int, int]:
        """How many threads ran in these folders, and how many of them the last consolidation drew on."""
        with self._database.read() as db:
            rows = [execute(db, "count_folder", cwd=to_sql(cwd)).fetchone() for cwd in folders]
        return sum(row["threads"] for row in rows), sum(row["selected"] or 0 for row in rows)


def _switched_off(db: sqlite3.Connection) -> set[str]:
    return {from_sql(row["cwd"]) for row in execute(db, "list_switched_off")}


def _switch(db: sqlite3.Connection, query: str, folders: Collection[str]) -> int:
    return db.executemany(QUERIES[query], [{"cwd": to_sql(cwd)} for cwd in folders]).rowcount if folders else 0


def _folder(row: dict[str, object]) -> Folder:
    checkout = None
    if row["is_known"]:
        fields = {name: row[name] for name in Checkout.__struct_fields__}
        checkout = msgspec.convert({**fields, "is_git": bool(row["is_git"])}, Checkout)
    return Folder(
        cwd=str(row["cwd"]),
        git_origin_url=str(row["git_origin_url"]) if row["git_origin_url"] else None,
        has_output=bool(row["has_output"]),
        checkout=checkout,
    )
