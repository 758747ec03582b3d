"""Find message histories of programs built with Pydantic AI: a file each, a JSON list or lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.ends import preview_of
from stillroom.rollouts.agents.lists import open_list, read_end, scan_lists
from stillroom.rollouts.agents.names import thread_id
from stillroom.rollouts.agents.pydantic_ai.copies import inherited
from stillroom.rollouts.agents.pydantic_ai.records import Records
from stillroom.rollouts.agents.scan import File
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.found import Discovery, Found
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream
from stillroom.rollouts.timestamps import parse_timestamp
from stillroom.thread import FileStamp, Thread

AGENT = "pydantic-ai"
COPIES = True
_TIME = re.compile(rb'"timestamp":\s*"([^"\\]{20,40})"')


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at the history `root`, or at those under that folder, oldest first."""
    yield from scan_lists(
        root.absolute(),
        known,
        lambda file: _look(file, max_line_bytes, reading),
        lacking="no message of Pydantic AI's",
    )


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a history. Raises `RolloutError` if it can't be opened.

    What an earlier file of the same conversation holds is left out; with `stop_after_bytes` it is not looked for.
    """
    taken: frozenset[int] = frozenset()
    if stop_after_bytes is None:
        try:
            taken = inherited(path, max_line_bytes=max_line_bytes, reading=reading)
        except OSError as error:
            raise RolloutError(f"`{path}` can't be read: {error.strerror}") from error
    return open_list(
        path,
        Records(ReadStats(), inherited=taken, reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _look(file: File, max_line_bytes: int, reading: Reading) -> Found | None:
    path = file.path
    with open_items(
        path, max_line_bytes=max_line_bytes, stop_after_bytes=reading.long_head_bytes, reading=reading
    ) as items:
        preview = preview_of(items, reading=reading)
        head = items.decoder
    if not head.understood:
        return None
    written = file.mtime_ns // 1_000_000
    times = map(parse_timestamp, _TIME.findall(read_end(path, file.size, reading=reading)))
    updated = max((time for time in times if time is not None), default=written)
    thread = Thread(
        thread_id=thread_id(path, path.stem),
        agent=AGENT,
        rollout_path=str(path),
        source="cli",  # of whoever it is: a person named this place as a source
        cwd="",
        created_at_ms=min(head.first_ms or updated, updated),
        updated_at_ms=updated,
        title=path.stem,
        preview=preview,
    )
    return Found(thread, file.stamp(file.size))
