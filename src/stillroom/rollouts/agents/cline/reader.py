"""Find the threads of Cline, in the terminal and in editors, and of Roo Code and Kilo Code, which have its layout."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.chunks import stream_chunks
from stillroom.rollouts.agents.cline.records import Records
from stillroom.rollouts.agents.cline.tasks import EDITOR, TERMINAL, Task, ids_of, is_of_editor, read_task
from stillroom.rollouts.agents.documents import lines
from stillroom.rollouts.agents.ends import preview_of
from stillroom.rollouts.agents.scan import File, scan
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.found import Discovery, Found
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.speech import preview_text
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream
from stillroom.thread import FileStamp, Thread

AGENT = "cline"
COPIES = True
_ID = re.compile(r"[\w.-]{1,200}", re.ASCII)
#: In the client's home, in its folder of data, which is an extension's too, and in one session's folder.
_PLACES = (
    *(f"data/sessions/*/*{TERMINAL}", f"data/tasks/*/{EDITOR}"),
    *(f"sessions/*/*{TERMINAL}", f"tasks/*/{EDITOR}"),
    *(f"*{TERMINAL}", EDITOR),
)


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session under `root`, or at the one that it is, oldest first."""
    root = root.absolute()
    paths = [root] if root.is_file() else [path for place in _PLACES for path in root.glob(place)]
    yield from scan(paths, known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session. Raises `RolloutError` if it can't be opened.

    What the session that it was forked from holds too is left out; with `stop_after_bytes` that is not looked for.
    """
    try:
        task = read_task(path, reading=reading)
        origin = path.parents[1] / task.forked_from / f"{task.forked_from}{TERMINAL}"
        taken: frozenset[int] = frozenset()
        if stop_after_bytes is None and _ID.fullmatch(task.forked_from) and origin != path and origin.is_file():
            taken = ids_of(origin, max_line_bytes=max_line_bytes, reading=reading)
        return _open(path, task, taken, max_line_bytes, stop_after_bytes, reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error


def _open(
    path: Path, task: Task, taken: frozenset[int], max_line_bytes: int, stop_after_bytes: int | None, reading: Reading
) -> ItemStream[Records]:
    records = Records(
        ReadStats(),
        of_editor=is_of_editor(path),
        of_agent=bool(task.parent),
        cwd=task.cwd or None,
        inherited=taken,
        reading=reading,
    )
    return stream_chunks(
        _lines(path, reading),
        path,
        records,
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _lines(path: Path, reading: Reading) -> Generator[bytes, None, None]:
    with open_stored(path, reading=reading) as file:
        yield from lines(file, () if is_of_editor(path) else ("messages",), reading=reading)


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    task = read_task(path, reading=reading)
    if _ID.fullmatch(task.session_id) is None:
        raise RolloutError(f"`{path}` can't be used: {task.session_id[:80]!r} is no id of a session")
    with _open(path, task, frozenset(), max_line_bytes, reading.long_head_bytes, reading) as items:
        preview = preview_of(items, reading=reading)
    modified = file.mtime_ns // 1_000_000
    created = task.created_ms or modified
    agent = {"subagent": task.agent or "other"}
    thread = Thread(
        thread_id=task.session_id,
        agent=AGENT,
        rollout_path=str(path),
        source=msgspec.json.encode(agent).decode() if task.parent else task.source,
        cwd=task.cwd,
        created_at_ms=created,
        updated_at_ms=max(modified, created),
        title=preview_text(task.title, max_chars=reading.preview_chars),
        preview=preview,
        parent_thread_id=task.parent or None,
        git_branch=task.branch or None,
        git_origin_url=task.origin_url or None,
        cli_version=task.version or None,
    )
    return Found(thread, file.stamp(0))
