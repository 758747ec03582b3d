"""Find the sessions of programs built with the OpenAI Agents SDK: rows of a database that the program chose.

The `rollout_path` is the database's path with the session's name as a fragment: `…/app.db#user-1`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.chunks import stream_chunks
from stillroom.rollouts.agents.ends import preview_of
from stillroom.rollouts.agents.names import place_of, thread_id
from stillroom.rollouts.agents.openai_agents.database import lines, sessions
from stillroom.rollouts.agents.openai_agents.records import Records
from stillroom.rollouts.agents.rows import Row, databases, scan_rows
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.found import Discovery
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream
from stillroom.thread import FileStamp, Thread

AGENT = "openai-agents"
COPIES = False


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session in the database `root`, or in those under that folder."""

    def look(path: Path, row: Row) -> Thread:
        return _thread(path, row, max_line_bytes, reading)

    for path in databases(root.absolute()):
        yield from scan_rows(path, known, sessions, look)


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session. What stands on a branch that the program left is marked."""
    place, session = place_of(path)
    return stream_chunks(
        lines(place, session, reading=reading),
        path,
        Records(ReadStats(), reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _thread(path: Path, row: Row, max_line_bytes: int, reading: Reading) -> Thread:
    place, session = place_of(path)
    with open_items(
        path, max_line_bytes=max_line_bytes, stop_after_bytes=reading.long_head_bytes, reading=reading
    ) as items:
        preview = preview_of(items, reading=reading)
    updated = row.updated_ms or 0
    return Thread(
        thread_id=thread_id(place, session),
        agent=AGENT,
        rollout_path=str(path),
        source="cli",  # of whoever it is: a person named this database as a source
        cwd="",
        created_at_ms=row.created_ms or updated,
        updated_at_ms=updated,
        title=session,
        preview=preview,
    )
