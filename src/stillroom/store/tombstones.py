"""Statements that a person removed, and what keeps them out of what is stored and selected.

Each method of `Tombstones` is one transaction; the functions run inside one of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

import msgspec

from stillroom import tombstones as stones
from stillroom.clock import Clock
from stillroom.lanes import line_key
from stillroom.store.database import Database
from stillroom.store.records import Selection, Stage1Draft, Stage1Output, Stage1Restored
from stillroom.store.selection import enqueue
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import from_sql, to_sql
from stillroom.tombstones import Buried

_PREFERENCES = "Preference signals:"


class Tombstones:
    """What stays out."""

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def buried(self) -> Buried:
        """The statements that stay out."""
        with self._database.read() as db:
            return buried(db)

    def bury(self, forms: Mapping[bytes, int], *, run: str) -> int:
        """Keep a statement out from now on, and take it out of everything that was extracted; returns of how many
        sessions. A slug of its words goes too. Twice is once."""
        now = self._clock.now()
        with self._database.write() as db:
            rows = [{"digest": digest, "words": words, "at": now, "run": run} for digest, words in forms.items()]
            db.executemany(QUERIES["save_tombstone"], rows)
            changed = [new for row in execute(db, "list_output_texts").fetchall() if (new := _stripped(row, forms))]
            for row, gone in changed:
                # What the other lines rest on is as true as before.
                sources = execute(db, "list_lines_of_thread", thread_id=row["thread_id"]).fetchall()
                execute(db, "set_output_texts", **row)
                left = [dict(source) for source in sources if source["line_key"] not in gone]
                db.executemany(QUERIES["save_memory_line"], left)
            if changed:
                enqueue(db, now)
        return len(changed)

    def lift(self, *, run: str) -> int:
        """What this version removed may come back. Returns how many hashes that are."""
        with self._database.write() as db:
            return execute(db, "delete_tombstones_of", run=run).rowcount


def buried(db: sqlite3.Connection) -> dict[bytes, int]:
    return {bytes(row["digest"]): row["words"] for row in execute(db, "list_tombstones")}


def kept_out(db: sqlite3.Connection, draft: Stage1Draft, *, thread_id: str) -> Stage1Draft:
    """The draft without what was removed. What the person says in a session that began later stands again."""
    rows = execute(db, "list_tombstones").fetchall()
    if not rows:
        return draft
    thread = execute(db, "get_thread", thread_id=to_sql(thread_id)).fetchone()
    began = thread["created_at_ms"] // 1000 if thread else 0
    younger = {bytes(row["digest"]) for row in rows if row["at"] < began}
    again = {digest for line in _preferences(draft.raw_memory) for digest in stones.forms(line)} & younger
    if again:
        # All hashes of a statement go with the one by which it came again.
        runs = {row["run"] for row in rows if bytes(row["digest"]) in again}
        for run in runs:
            execute(db, "delete_tombstones_of", run=run)
        rows = [row for row in rows if row["run"] not in runs]
    standing = {bytes(row["digest"]): int(row["words"]) for row in rows}
    raw, gone = stones.without(draft.raw_memory, standing)
    summary, gone_there = stones.without(draft.rollout_summary, standing)
    if not (gone or gone_there):
        return draft
    sources = tuple(source for source in draft.sources if not stones.says(source.line, standing))
    return msgspec.structs.replace(draft, raw_memory=raw, rollout_summary=summary, rollout_slug=None, sources=sources)


def without_buried(db: sqlite3.Connection, selection: Selection) -> Selection:
    """The selection without what was removed: a version that an undo brought back may have it."""
    standing = buried(db)
    if not standing:
        return selection

    def clean(output: Stage1Output) -> Stage1Output:
        raw, gone = stones.without(output.raw_memory, standing)
        summary, gone_there = stones.without(output.rollout_summary, standing)
        if not (gone or gone_there):
            return output
        return msgspec.structs.replace(output, raw_memory=raw, rollout_summary=summary)

    return msgspec.structs.replace(
        selection, selected=tuple(map(clean, selection.selected)), on_disk=tuple(map(clean, selection.on_disk))
    )


def restored_without(db: sqlite3.Connection, restored: Sequence[Stage1Restored]) -> list[Stage1Restored]:
    """Outputs of an older version, without what was removed since and stays so."""
    standing = buried(db)
    return [
        msgspec.structs.replace(
            output,
            raw_memory=stones.without(output.raw_memory, standing)[0],
            rollout_summary=stones.without(output.rollout_summary, standing)[0],
        )
        for output in restored
    ]


def _stripped(row: sqlite3.Row, forms: Buried) -> tuple[dict[str, object], set[str]] | None:
    """The output without the statement, and the names of the lines that went."""
    raw, gone = stones.without(from_sql(row["raw_memory"]), forms)
    summary, gone_there = stones.without(from_sql(row["rollout_summary"]), forms)
    if not (gone or gone_there):
        return None
    new: dict[str, object] = {
        "thread_id": row["thread_id"],
        "raw_memory": to_sql(raw),
        "rollout_summary": to_sql(summary),
        "rollout_slug": None,
    }
    return new, {line_key(line) for line in (*gone, *gone_there)}


def _preferences(raw_memory: str) -> list[str]:
    """The lines under `Preference signals:`: what the person said."""
    found: list[str] = []
    inside = False
    for line in raw_memory.split("\n"):
        if line.strip() == _PREFERENCES:
            inside = True
        elif line.strip() and not line.lstrip().startswith(("-", "*", "+")):
            inside = False
        elif inside and line.strip():
            found.append(line)
    return found
