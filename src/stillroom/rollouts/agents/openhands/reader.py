"""Find OpenHands' threads: a folder each, with a file for every event."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.chunks import stream_chunks
from stillroom.rollouts.agents.decoder import text_of
from stillroom.rollouts.agents.ends import preview_of
from stillroom.rollouts.agents.openhands.events import STATE, State, events_of, inherited, lines, read_state, superseded
from stillroom.rollouts.agents.openhands.records import Records
from stillroom.rollouts.agents.scan import File, scan
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.agents.talk import NOTHING, Past
from stillroom.rollouts.found import Discovery, Found
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream
from stillroom.thread import FileStamp, Thread

AGENT = "openhands"
COPIES = True
_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
#: A conversation, a folder of conversations, or the client's own folder.
_PLACES = (STATE, f"*/{STATE}", f"conversations/*/{STATE}")
_SUB_AGENTS = "subagents"
# Sub-agents of sub-agents; links may go in circles.
_MAX_DEPTH = 8


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every conversation under `root`, oldest first. Its state is written after each event."""
    root = root.absolute()
    found = [root] if root.is_file() else [path for place in _PLACES for path in root.glob(place)]
    yield from scan(
        (each for path in found for each in _with_agents(path)),
        known,
        lambda file: _look(file, max_line_bytes, reading),
    )


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open the conversation whose state is at `path`. Raises `RolloutError` if it can't be opened.

    What the one that it was forked from holds too is left out, and what its user left behind is marked; with
    `stop_after_bytes` neither is looked for.
    """
    try:
        return _open(path, read_state(path), max_line_bytes, stop_after_bytes, reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error


def _open(
    path: Path, state: State, max_line_bytes: int, stop_after_bytes: int | None, reading: Reading
) -> ItemStream[Records]:
    events = events_of(path)
    whole = stop_after_bytes is None
    records = Records(
        ReadStats(),
        cwd=text_of(state.workspace.working_dir) or None,
        of_agent=_parent(path) is not None,
        past=Past(superseded(events, state, reading=reading), inherited(path, events)) if whole else NOTHING,
        reading=reading,
    )
    return stream_chunks(
        lines(events, reading=reading),
        path,
        records,
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _with_agents(path: Path, depth: int = 0) -> Iterator[Path]:
    yield path
    if depth < _MAX_DEPTH:
        for other in path.parent.glob(f"{_SUB_AGENTS}/*/{STATE}"):
            yield from _with_agents(other, depth + 1)


def _parent(path: Path) -> Path | None:
    """The state of the conversation that started this one."""
    folder = path.parent.parent
    return folder.with_name(STATE) if folder.name == _SUB_AGENTS else None


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    state = read_state(path)
    events = events_of(path)
    if not events:
        raise RolloutError(f"`{path}` can't be used: it has no events")
    with _open(path, state, max_line_bytes, reading.long_head_bytes, reading) as items:
        preview = preview_of(items, reading=reading)
    modified = file.mtime_ns // 1_000_000
    created = events[0].time_ms() or modified
    parent = _parent(path)
    thread = Thread(
        thread_id=_id(path, state),
        agent=AGENT,
        rollout_path=str(path),
        source=msgspec.json.encode({"subagent": "other"}).decode() if parent is not None else "cli",
        cwd=text_of(state.workspace.working_dir),
        created_at_ms=created,
        updated_at_ms=max(events[-1].time_ms() or modified, created),
        preview=preview,
        parent_thread_id=_id(parent, read_state(parent)) if parent is not None else None,
    )
    return Found(thread, file.stamp(0))


def _id(path: Path, state: State) -> str:
    """The folder is named by the id too, without dashes."""
    given = text_of(state.id)
    return given if _ID.fullmatch(given) else path.parent.name
