"""Find LangGraph's threads, rows of a database of checkpoints, and files of LangChain's messages.

The `rollout_path` of a thread in a database is the database's with the thread's name as a fragment; that of a graph
inside of a graph has the graph's name behind it. Such a graph is a sub-agent of the thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.chunks import stream_chunks
from stillroom.rollouts.agents.ends import preview_of
from stillroom.rollouts.agents.langchain.checkpoints import inside_of, lines, sessions
from stillroom.rollouts.agents.langchain.records import Records
from stillroom.rollouts.agents.lists import open_list, scan_lists
from stillroom.rollouts.agents.names import place_of, thread_id
from stillroom.rollouts.agents.rows import Row, databases, is_database, scan_rows
from stillroom.rollouts.agents.scan import File
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.found import Discovery, Found
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream
from stillroom.thread import FileStamp, Thread

AGENT = "langchain"
COPIES = False


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every thread in the database or file `root`, or in those under that folder."""
    root = root.absolute()

    def look(path: Path, row: Row) -> Thread:
        return _row(path, row, max_line_bytes, reading)

    if not root.is_file() or is_database(root):
        for path in databases(root):
            yield from scan_rows(path, known, sessions, look)
    if not is_database(root):
        yield from scan_lists(
            root, known, lambda file: _file(file, max_line_bytes, reading), lacking="no message of LangChain's"
        )


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a thread. What stands on a branch that the program went back from is marked."""
    place, session = place_of(path)
    if not session or not is_database(place):
        return open_list(
            path,
            Records(ReadStats(), reading=reading),
            max_line_bytes=max_line_bytes,
            stop_after_bytes=stop_after_bytes,
            reading=reading,
        )
    return stream_chunks(
        lines(place, session, max_line_bytes=max_line_bytes, reading=reading),
        path,
        Records(ReadStats(), of_agent=bool(inside_of(session)[1]), reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _row(path: Path, row: Row, max_line_bytes: int, reading: Reading) -> Thread:
    place, session = place_of(path)
    thread, graph = inside_of(session)
    parent = thread_id(place, thread) if graph else None
    preview = "" if graph else _begun(path, max_line_bytes, reading)[0]
    agent = {"subagent": graph.partition(":")[0]}
    updated = row.updated_ms or 0
    return Thread(
        thread_id=thread_id(place, session),
        agent=AGENT,
        rollout_path=str(path),
        # Else of whoever it is: a person named this database as a source.
        source=msgspec.json.encode(agent).decode() if graph else "cli",
        cwd="",
        created_at_ms=row.created_ms or updated,
        updated_at_ms=updated,
        title=graph or thread,
        preview=preview,
        parent_thread_id=parent,
    )


def _file(file: File, max_line_bytes: int, reading: Reading) -> Found | None:
    path = file.path
    preview, understood = _begun(path, max_line_bytes, reading)
    if not understood:
        return None
    at = file.mtime_ns // 1_000_000  # messages have no times
    thread = Thread(
        thread_id=thread_id(path, path.stem),
        agent=AGENT,
        rollout_path=str(path),
        source="cli",
        cwd="",
        created_at_ms=at,
        updated_at_ms=at,
        title=path.stem,
        preview=preview,
    )
    return Found(thread, file.stamp(file.size))


def _begun(path: Path, max_line_bytes: int, reading: Reading) -> tuple[str, int]:
    """The first words of the user, and how many messages were understood down to there."""
    with open_items(
        path, max_line_bytes=max_line_bytes, stop_after_bytes=reading.long_head_bytes, reading=reading
    ) as items:
        return preview_of(items, reading=reading), items.decoder.understood
