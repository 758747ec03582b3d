"""What each line of the memory rests on: which session, whose word, where, and the words.

`save` runs inside a transaction of the caller; each method of `MemoryLines` is one of its own.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping

from stillroom.lanes import line_key, quarantined
from stillroom.store.database import Database
from stillroom.store.records import MemoryLine, Stage1Draft
from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import to_sql, values


class MemoryLines:
    """The sources of lines. A line that was put together of several has several."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, line: str) -> list[MemoryLine]:
        """What this line rests on, in whichever text it stands: what a person said first, then the newest."""
        with self._database.read() as db:
            return [MemoryLine(**values(row)) for row in execute(db, "list_memory_lines", line_key=line_key(line))]

    def repeat(self, lines: Mapping[str, str]) -> None:
        """Note that each line of `lines` rests on what the line beside it rests on: it says the same in other words."""
        with self._database.write() as db:
            for line, source in lines.items():
                execute(db, "repeat_memory_line", line_key=line_key(line), source_key=line_key(source))


def save(db: sqlite3.Connection, thread_id: str, draft: Stage1Draft) -> None:
    """Keep the sources of a draft in place of those of an earlier one. Without any, nothing is known of its lines."""
    key = to_sql(thread_id)
    execute(db, "delete_memory_lines", thread_id=key)
    if draft.sources:
        db.executemany(QUERIES["save_memory_line"], [{"thread_id": key, **row} for row in _rows(draft)])


def _rows(draft: Stage1Draft) -> Iterator[dict[str, str | bytes | int]]:
    texts = f"{draft.raw_memory}\n{draft.rollout_summary}"
    held = {line_key(found.text) for found in quarantined(texts)}

    def row(line: str, speaker: str, line_no: int, quote: str) -> dict[str, str | bytes | int]:
        key = line_key(line)
        verdict = "held" if key in held else "kept"
        return {
            "line_key": key,
            "speaker": speaker,
            "line_no": line_no,
            "quote": to_sql(quote),
            "verdict": verdict,
        }

    for source in draft.sources:
        yield row(source.line, source.speaker, source.line_no, source.quote)
    found = {line_key(source.line) for source in draft.sources}
    for line in texts.split("\n"):
        if line.startswith(("- ", "* ")) and line_key(line) not in found:
            yield row(line, "nobody", 0, "")
