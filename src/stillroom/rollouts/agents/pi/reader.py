"""Find the pi agent's threads: one file a session, in a folder for each project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.decoder import UNREADABLE, text_of, time_of
from stillroom.rollouts.agents.ends import read_head, read_tail
from stillroom.rollouts.agents.pi.branches import NAME, inherited, superseded
from stillroom.rollouts.agents.pi.records import Records
from stillroom.rollouts.agents.scan import File, scan
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.found import Discovery, Found
from stillroom.rollouts.speech import preview_text
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream, open_stream
from stillroom.thread import FileStamp, Thread

AGENT = "pi"
COPIES = True
_ID = re.compile(r"[\w.-]{1,120}", re.ASCII)
#: Under the agent's own folder, or under one that the user chose for sessions.
_PLACES = ("sessions/*/*.jsonl", "*/*.jsonl", "*.jsonl")


class _Line(msgspec.Struct):
    type: Any = None
    id: Any = None
    timestamp: Any = None
    cwd: Any = None
    name: Any = None


_line = msgspec.json.Decoder(_Line)


@dataclass(slots=True)
class _Traits:
    """What the lines at both ends tell."""

    session_id: str = ""
    cwd: str = ""
    title: str = ""
    first_ms: int | None = None
    last_ms: int | None = None

    def learn(self, line: bytes) -> None:
        try:
            told = _line.decode(line)
        except UNREADABLE:
            return
        if (time := time_of(told.timestamp)) is not None:
            self.first_ms = self.first_ms or time
            self.last_ms = max(self.last_ms or time, time)
        if told.type == "session" and not self.session_id:
            self.session_id, self.cwd = text_of(told.id), text_of(told.cwd)
        elif told.type == "session_info":
            self.title = text_of(told.name) or self.title


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session under `home`, oldest first."""
    yield from scan(_files(home.absolute()), known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session. Raises `RolloutError` if it can't be opened.

    What the session that it was forked from holds too is left out, and what its user left behind is marked; with
    `stop_after_bytes` neither is looked for.
    """
    records = Records(ReadStats(), reading=reading)
    if stop_after_bytes is None:
        try:
            records = Records(
                ReadStats(),
                superseded=superseded(path, max_line_bytes=max_line_bytes, reading=reading),
                inherited=inherited(path, max_line_bytes=max_line_bytes, reading=reading),
                reading=reading,
            )
        except OSError as error:
            raise RolloutError(f"`{path}` can't be read: {error.strerror}") from error
    return open_stream(path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


def _files(home: Path) -> Iterator[Path]:
    if home.is_file():
        yield home
    yield from (path for place in _PLACES for path in home.glob(place) if NAME.fullmatch(path.name))


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    traits = _Traits()
    records = Records(ReadStats(), reading=reading)
    preview = read_head(path, records, traits.learn, max_line_bytes=max_line_bytes, reading=reading)
    offset = read_tail(path, traits.learn, size=file.size, reading=reading)
    if _ID.fullmatch(traits.session_id) is None:
        raise RolloutError(f"`{path}` can't be used: it has no header")
    created = traits.first_ms or file.mtime_ns // 1_000_000
    thread = Thread(
        thread_id=traits.session_id,
        agent=AGENT,
        rollout_path=str(path),
        source="cli",
        cwd=traits.cwd,
        created_at_ms=created,
        updated_at_ms=max(traits.last_ms or file.mtime_ns // 1_000_000, created),
        title=preview_text(traits.title, max_chars=reading.preview_chars),
        preview=preview,
    )
    return Found(thread, file.stamp(offset))
