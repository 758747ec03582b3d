"""Find Copilot CLI's threads: one folder a session, with its events and a few words about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.copilot.records import Records
from stillroom.rollouts.agents.decoder import UNREADABLE, text_of, time_of
from stillroom.rollouts.agents.ends import Times, lines_with, read_head, read_small, read_tail
from stillroom.rollouts.agents.scan import File, scan
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.found import Discovery, Found
from stillroom.rollouts.speech import preview_text
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream, open_stream
from stillroom.thread import FileStamp, Thread

AGENT = "copilot-cli"
COPIES = False
_ID = re.compile(r"[\w-]{1,100}", re.ASCII)
# How the client tells its model that nobody is there to be asked.
_NON_INTERACTIVE = re.compile(r"running in non-interactive mode")
_PROMPT_CHARS = 2000
_NAME = re.compile(r"^name: (.+)$", re.MULTILINE)


class _Context(msgspec.Struct, rename="camel"):
    cwd: Any = None
    branch: Any = None
    head_commit: Any = None
    repository: Any = None


class _Data(msgspec.Struct, rename="camel"):
    session_id: Any = None
    copilot_version: Any = None
    start_time: Any = None
    content: Any = None
    context: _Context = msgspec.field(default_factory=_Context)


class _Event(msgspec.Struct, rename="camel"):
    type: Any = None
    timestamp: Any = None
    agent_id: Any = None
    data: _Data = msgspec.field(default_factory=_Data)


_event = msgspec.json.Decoder(_Event)
# Beside the times of the first and the last event, all that is learned stands in these.
_TELLING = (b'"session.start"', b'"session.resume"', b'"system.message"')


@dataclass(slots=True)
class _Traits(Times):
    """What the events at both ends tell."""

    session_id: str = ""
    version: str = ""
    cwd: str = ""
    branch: str = ""
    commit: str = ""
    #: Whether a turn with and a turn without a person were seen.
    typed: bool = False
    scripted: bool = False

    def learn(self, line: bytes) -> None:
        try:
            told = _event.decode(line)
        except UNREADABLE:
            return
        data = told.data
        self.saw(time_of(told.timestamp))
        if told.type == "session.start":
            self.session_id = self.session_id or text_of(data.session_id)
        if told.type in ("session.start", "session.resume"):
            self.version = text_of(data.copilot_version) or self.version
            self.cwd = self.cwd or text_of(data.context.cwd)
            self.branch = text_of(data.context.branch) or self.branch
            self.commit = text_of(data.context.head_commit) or self.commit
        if told.type == "system.message" and told.agent_id is None:
            alone = _NON_INTERACTIVE.search(text_of(data.content)[:_PROMPT_CHARS]) is not None
            self.scripted, self.typed = self.scripted or alone, self.typed or not alone


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session under `home`, oldest first."""
    yield from scan(_files(home.absolute()), known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session's events. Raises `RolloutError` if they can't be opened."""
    records = Records(ReadStats(), cwd=_cwd(path) or None, reading=reading)
    return open_stream(path, records, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)


def _files(home: Path) -> Iterator[Path]:
    if home.is_file():
        yield home
    yield from home.glob("session-state/*/events.jsonl")
    yield from home.glob("session-state/*.jsonl")  # of older versions


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    traits = _Traits()
    records = Records(ReadStats(), reading=reading)
    # What the model is told stands behind the first prompt, where a look for that would end.
    for line in lines_with(_TELLING, read_small(path, max_bytes=reading.tail_window_bytes)):
        traits.learn(line)
    preview = read_head(path, records, traits.learn, max_line_bytes=max_line_bytes, reading=reading)
    offset = read_tail(path, traits.learn, size=file.size, telling=_TELLING, reading=reading)
    if _ID.fullmatch(traits.session_id) is None:
        raise RolloutError(f"`{path}` can't be used: it has no `session.start` event")
    span = traits.span(file)
    thread = Thread(
        thread_id=traits.session_id,
        agent=AGENT,
        rollout_path=str(path),
        source="exec" if traits.scripted and not traits.typed else "cli",
        cwd=traits.cwd,
        created_at_ms=span.began,
        updated_at_ms=span.went_on,
        title=preview_text(_title(path), max_chars=reading.preview_chars),
        preview=preview,
        git_branch=traits.branch or None,
        git_sha=traits.commit or None,
        cli_version=traits.version or None,
    )
    return Found(thread, file.stamp(offset))


def _cwd(path: Path) -> str:
    traits = _Traits()
    for line in read_small(path).splitlines()[:1]:
        traits.learn(line)
    return traits.cwd


def _title(path: Path) -> str:
    """The session's name, as the client or its user chose it."""
    match = _NAME.search(read_small(path.with_name("workspace.yaml")).decode("utf-8", "replace"))
    return match[1].strip().strip("'\"") if match else ""
