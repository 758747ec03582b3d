"""Find Cursor's threads: one transcript a session, and one for each of its sub-agents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.chunks import stream_chunks
from stillroom.rollouts.agents.cursor.places import chat_of, folder_of
from stillroom.rollouts.agents.cursor.plain_text import as_lines
from stillroom.rollouts.agents.cursor.records import Records
from stillroom.rollouts.agents.decoder import number_of, text_of
from stillroom.rollouts.agents.ends import preview_of
from stillroom.rollouts.agents.scan import File, scan
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.found import Discovery, Found
from stillroom.rollouts.speech import preview_text
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream, open_stream
from stillroom.thread import FileStamp, Thread

AGENT = "cursor"
COPIES = False
_TRANSCRIPTS = "agent-transcripts"
_SUB_AGENTS = "subagents"
_ID = re.compile(r"[\w.-]{1,120}", re.ASCII)


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every transcript under `home`, oldest first."""
    folders: dict[Path, str] = {}

    def look(file: File) -> Discovery:
        project = _project(file.path)
        if project not in folders:
            folders[project] = folder_of(project)
        return _look(file, folders[project], max_line_bytes, reading)

    yield from scan(_files(home.absolute()), known, look)


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a transcript. Raises `RolloutError` if it can't be opened."""
    project = _project(path)
    cwd = text_of(chat_of(project, _session(path)).cwd) or folder_of(project)
    return _open(path, cwd, max_line_bytes, stop_after_bytes, reading)


def _open(
    path: Path, cwd: str, max_line_bytes: int, stop_after_bytes: int | None, reading: Reading
) -> ItemStream[Records]:
    records = Records(ReadStats(), of_agent=_is_sub_agent(path), cwd=cwd or None, reading=reading)
    if path.suffix != ".txt":
        return open_stream(
            path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading
        )
    if not path.is_file():
        raise RolloutError(f"`{path}` can't be opened: it is no file")
    return stream_chunks(
        as_lines(path, max_line_bytes=max_line_bytes, reading=reading),
        path,
        records,
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _files(home: Path) -> Iterator[Path]:
    if home.is_file():
        yield home
    for path in home.glob(f"projects/*/{_TRANSCRIPTS}/*"):
        if path.suffix == ".jsonl":
            yield path
        elif path.suffix == ".txt":
            # It is what the client wrote before it wrote lines.
            if not (path.with_suffix("") / f"{path.stem}.jsonl").exists():
                yield path
        elif _ID.fullmatch(path.name):
            yield path / f"{path.name}.jsonl"
            yield from path.glob(f"{_SUB_AGENTS}/*.jsonl")


def _is_sub_agent(path: Path) -> bool:
    return path.parent.name == _SUB_AGENTS


def _session(path: Path) -> str:
    return path.parent.parent.name if _is_sub_agent(path) else path.stem


def _project(path: Path) -> Path:
    """The project's folder, which is above the transcripts."""
    above = next((folder for folder in path.parents if folder.name == _TRANSCRIPTS), path.parent)
    return above.parent


def _look(file: File, folder: str, max_line_bytes: int, reading: Reading) -> Discovery:
    path, session = file.path, _session(file.path)
    if _ID.fullmatch(session) is None or _ID.fullmatch(path.stem) is None:
        raise RolloutError(f"`{path}` can't be used: its name is no id")
    chat, is_agent = chat_of(_project(path), session), _is_sub_agent(path)
    cwd = text_of(chat.cwd) or folder
    with _open(path, cwd, max_line_bytes, reading.long_head_bytes, reading) as items:
        preview = preview_of(items, reading=reading)
    updated = file.mtime_ns // 1_000_000
    created = number_of(chat.created_at_ms) or min(_began(path), updated)
    thread = Thread(
        thread_id=f"{session}:{path.stem}" if is_agent else session,
        agent=AGENT,
        rollout_path=str(path),
        source='{"subagent":"other"}' if is_agent or chat.is_subagent is True else "cli",
        cwd=cwd,
        created_at_ms=created,
        updated_at_ms=max(updated, created),
        title="" if is_agent else preview_text(text_of(chat.title), max_chars=reading.preview_chars),
        preview=preview,
        parent_thread_id=session if is_agent else None,
    )
    return Found(thread, file.stamp(0))


def _began(path: Path) -> int:
    """When the folder of a session got its transcript; nothing in a transcript has a time."""
    folder = path.parent if path.parent.name == path.stem else path
    return folder.stat().st_mtime_ns // 1_000_000
