"""Find the trajectories of SWE-agent (`*.traj`) and mini-swe-agent (`*.traj.json`): one file a run."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents import documents
from stillroom.rollouts.agents.chat_parts import when
from stillroom.rollouts.agents.chunks import stream_chunks
from stillroom.rollouts.agents.decoder import text_of
from stillroom.rollouts.agents.ends import asked_of
from stillroom.rollouts.agents.scan import File, scan
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.agents.swe_agent.records import Records
from stillroom.rollouts.found import Discovery, Found
from stillroom.rollouts.item import UNREADABLE
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream
from stillroom.thread import FileStamp, Thread

AGENT = "swe-agent"
COPIES = False
_PLACES = ("*.traj", "*.traj.json")
#: The agent of mini-swe-agent that a person talks to.
_INTERACTIVE = "InteractiveAgent"
_TIME = re.compile(rb'"timestamp"\s*:\s*(\d{9,13}(?:\.\d{1,9})?)')
# It holds the whole configuration, and the patch that the run is about.
_MAX_INFO_BYTES = 4 * 1024 * 1024


class _AgentConfig(msgspec.Struct):
    instance_template: Any = None


class _Environment(msgspec.Struct):
    cwd: Any = None


class _Config(msgspec.Struct):
    agent: _AgentConfig = msgspec.field(default_factory=_AgentConfig)
    agent_type: Any = None
    environment: _Environment = msgspec.field(default_factory=_Environment)


class _Info(msgspec.Struct):
    config: _Config = msgspec.field(default_factory=_Config)
    mini_version: Any = None
    swe_agent_version: Any = None
    exit_status: Any = None


class _Run(NamedTuple):
    """What a file tells of itself."""

    info: _Info
    #: Where the messages stand.
    list_name: str

    @property
    def of_person(self) -> bool:
        return text_of(self.info.config.agent_type).rpartition(".")[2] == _INTERACTIVE


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every trajectory in `root`, a folder or a file, oldest first."""
    root = root.absolute()
    paths = [root] if root.is_file() else [path for place in _PLACES for path in root.rglob(place)]
    yield from scan(paths, known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a trajectory. Raises `RolloutError` if it can't be opened."""
    try:
        run = _run(path, reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error
    stop = sys.maxsize if stop_after_bytes is None else stop_after_bytes
    return _stream(path, run, max_line_bytes=max_line_bytes, stop_after_bytes=stop, reading=reading)


def _stream(
    path: Path, run: _Run, *, max_line_bytes: int, stop_after_bytes: int, reading: Reading
) -> ItemStream[Records]:
    config = run.info.config
    records = Records(
        ReadStats(),
        of_person=run.of_person,
        template=text_of(config.agent.instance_template),
        cwd=text_of(config.environment.cwd) or None,
        reading=reading,
    )
    return stream_chunks(
        _lines(path, run, reading),
        path,
        records,
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _lines(path: Path, run: _Run, reading: Reading) -> Generator[bytes, None, None]:
    status = text_of(run.info.exit_status)
    outcome = msgspec.json.encode({"outcome": f"The run ended with `{status}`."}) if status else b""
    with open_stored(path, reading=reading) as file:
        messages = documents.lines(file, (run.list_name,), reading=reading)
        yield from documents.followed_by(messages, lambda: outcome)


def _run(path: Path, reading: Reading) -> _Run:
    """Raises `OSError`, and `RolloutError` for what is no trajectory."""
    with open_stored(path, reading=reading) as file:
        found = documents.fields(
            file,
            ("info", "trajectory_format", "environment"),
            max_bytes=_MAX_INFO_BYTES,
            stop_after_bytes=reading.long_head_bytes,
            reading=reading,
        )
    if not found.keys() & {"info", "trajectory_format"}:
        cut = documents.cut(path, reading=reading)
        raise RolloutError(f"`{path}` can't be used: it is no trajectory of SWE-agent{cut}")
    try:
        info = msgspec.json.decode(found.get("info", b"{}"), type=_Info)
    except UNREADABLE:
        info = _Info()
    # SWE-agent's file names the environment of the run, mini-swe-agent's has it in the configuration.
    return _Run(info, "history" if "environment" in found else "messages")


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    run = _run(file.path, reading)
    began, ended = _times(file, reading)
    with _stream(
        file.path, run, max_line_bytes=max_line_bytes, stop_after_bytes=reading.long_head_bytes, reading=reading
    ) as items:
        asked = asked_of(items, reading=reading)
    seen = file.mtime_ns // 1_000_000
    # The interactive agent overwrites the file of its last run.
    name = f"{file.path}\n{began}".encode("utf-8", "surrogateescape")
    version = run.info.mini_version or run.info.swe_agent_version
    thread = Thread(
        thread_id=f"swe-{hashlib.sha256(name).hexdigest()[:32]}",
        agent=AGENT,
        rollout_path=str(file.path),
        source="cli",
        cwd=text_of(run.info.config.environment.cwd),
        created_at_ms=began or seen,
        updated_at_ms=max(ended or seen, began or 0),
        # The file of a batch bears the name of its task.
        title="" if run.of_person else file.path.name.partition(".traj")[0],
        preview=asked.words,
        cli_version=text_of(version) or None,
    )
    return Found(thread, file.stamp(0))


def _times(file: File, reading: Reading) -> tuple[int | None, int | None]:
    """The first and the last time that the ends of the file tell, in milliseconds."""
    with open_stored(file.path, reading=reading) as text:
        first = _TIME.search(text.read(reading.head_bytes))
        text.seek(max(file.size - reading.tail_window_bytes, 0))
        last = _TIME.findall(text.read(reading.tail_window_bytes))
    return when(float(first[1])) if first else None, when(float(last[-1])) if last else None
