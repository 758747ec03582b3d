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
from stillroom.rollouts.agents.ends import Times, read_head, read_tail
from stillroom.rollouts.agents.pi.branches import NAME, inherited, superseded
from stillroom.rollouts.agents.pi.records import Records
from stillroom.rollouts.agents.scan import File, scan
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.agents.talk import NOTHING, past_of
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
    #: In the header of a fork of the client; in entries as a name, or a title.
    title: Any = None
    name: Any = None


_line = msgspec.json.Decoder(_Line)


@dataclass(slots=True)
class _Traits(Times):
    """What the lines at both ends tell."""

    session_id: str = ""
    cwd: str = ""
    title: str = ""

    def learn(self, line: bytes) -> None:
        try:
            told = _line.decode(line)
        except UNREADABLE:
            return
        self.saw(time_of(told.timestamp))
        if told.type == "session" and not self.session_id:
            self.session_id, self.cwd, self.title = text_of(told.id), text_of(told.cwd), text_of(told.title)
        elif told.type in ("session_info", "title_change"):
            self.title = text_of(told.name) or text_of(told.title) or self.title


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
    of_agent = _is_sub_agent(path)
    past = NOTHING
    if stop_after_bytes is None and not of_agent:
        past = past_of(path, superseded, inherited, max_line_bytes=max_line_bytes, reading=reading)
    records = Records(ReadStats(), of_agent=of_agent, past=past, reading=reading)
    return open_stream(path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


def _files(home: Path) -> Iterator[Path]:
    if home.is_file():
        yield home
    for path in (path for place in _PLACES for path in home.glob(place) if NAME.fullmatch(path.name)):
        yield path
        yield from path.with_suffix("").glob("*.jsonl")


def _is_sub_agent(path: Path) -> bool:
    """Of a fork of the client: its sub-agents' files lie in a folder that is named as the session."""
    return NAME.fullmatch(f"{path.parent.name}.jsonl") is not None


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    traits = _Traits()
    is_agent = _is_sub_agent(path)
    records = Records(ReadStats(), of_agent=is_agent, reading=reading)
    preview = read_head(path, records, traits.learn, max_line_bytes=max_line_bytes, reading=reading)
    offset = read_tail(path, traits.learn, size=file.size, telling=(b'"session_info"',), reading=reading)
    if _ID.fullmatch(traits.session_id) is None:
        raise RolloutError(f"`{path}` can't be used: it has no header")
    span = traits.span(file)
    thread = Thread(
        thread_id=traits.session_id,
        agent=AGENT,
        rollout_path=str(path),
        source='{"subagent":"other"}' if is_agent else "cli",
        cwd=traits.cwd,
        created_at_ms=span.began,
        updated_at_ms=span.went_on,
        title=preview_text(traits.title, max_chars=reading.preview_chars),
        preview=preview,
        parent_thread_id=path.parent.name.partition("_")[2] if is_agent else None,
    )
    return Found(thread, file.stamp(offset))
