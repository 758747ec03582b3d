"""Find the trajectories of SWE-agent (`*.traj`) and mini-swe-agent (`*.traj.json`): one file a run."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions import documents
from stillroom.sessions.chat_parts import ChatDecoder, Message, role_of, when
from stillroom.sessions.conversation import number_of, text_of
from stillroom.sessions.discovery import Discovery, File, Found, scan
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.jsonl import open_stored
from stillroom.sessions.metadata import asked_of
from stillroom.sessions.normalize import NormalizedItem, said_by_agent, said_by_assistant
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, stream_chunks
from stillroom.thread import FileStamp, Thread

# --- Messages of SWE-agent and mini-swe-agent as the items that memory keeps.
#
# Both call nearly all that they send to the model the user's: the task, what commands printed, and complaints about the
# form of an answer. Only in mini-swe-agent's interactive agent a person may have typed something.

_BY_USER = re.compile(
    r"\s*(?:Command not executed\. The user rejected your command with the following message:|Interrupted by user:"
    r"|The user added a new task:)\s*"
)
# What was asked for in place of a call, ahead of version 2.
_FENCED = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_OBSERVED = ("<returncode>", "OBSERVATION:", "Observation:")
_TASK = re.compile(r"\{\{-?\s*(?:task|problem_statement)\s*-?\}\}")
_MARKS = re.compile(r"\{\{|\}\}|\{%|%\}|…")
# As much of a template's words beside the task finds the place.
_BESIDE_CHARS = 60


class _Action(msgspec.Struct):
    command: Any = None


class _Extra(msgspec.Struct):
    interrupt_type: Any = None
    actions: list[_Action] = []
    returncode: Any = None
    raw_output: Any = None
    timestamp: Any = None


class _Entry(Message):
    extra: _Extra | None = None
    message_type: Any = None
    is_demo: Any = None
    thought: Any = None
    action: Any = None
    tool_call_ids: list[Any] | None = None
    #: Ours: how the run ended, put behind its messages.
    outcome: Any = None


_entry = msgspec.json.Decoder(_Entry)


class Records(ChatDecoder):
    """Decodes messages, one a line. `template` is what the task was put into, `of_person` whether a person typed it."""

    def __init__(
        self, stats: ReadStats, *, of_person: bool, template: str, cwd: str | None, reading: Reading = READING
    ) -> None:
        super().__init__(stats, of_agent=not of_person, cwd=cwd, reading=reading)
        self._template = template
        self._asked = False

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a message."""
        entry = _entry.decode(line)
        return when(entry.extra.timestamp) if entry.extra is not None else None, self._made(entry)

    def _made(self, entry: _Entry) -> Iterator[NormalizedItem]:
        if entry.is_demo is True:
            self.stats.drop("demonstration")
        elif entry.outcome is not None:
            yield said_by_agent(text_of(entry.outcome))
        elif entry.role == "exit":
            self.stats.drop("written by the client")
        else:
            match role_of(entry):
                case "user":
                    yield from self._user(entry)
                case "assistant":
                    yield from self._assistant(entry)
                case "tool":
                    yield from self._observation(entry)
                case _:
                    yield from self.message(entry)

    def _user(self, entry: _Entry) -> Iterator[NormalizedItem]:
        text = "\n".join(self.texts(entry))
        told = entry.extra or _Extra()
        if told.interrupt_type is None and not self._asked:
            self._asked = True
            yield from self.prompt(task_in(text, self._template), of_agent=self._of_agent)
        elif entry.message_type == "observation" or told.raw_output is not None or text.startswith(_OBSERVED):
            yield from self._observation(entry)
        elif not self._of_agent and (typed := _BY_USER.match(text)):
            yield from self.prompt(text[typed.end() :], of_agent=False)
        else:
            self.stats.drop("written by the client")

    def _assistant(self, entry: _Entry) -> Iterator[NormalizedItem]:
        if entry.tool_calls:
            yield from self.answer(entry)
            return
        text = text_of(entry.thought) or "\n".join(self.texts(entry))
        if text.strip():
            yield said_by_assistant(text)
        commands = [text_of(action.command) for action in entry.extra.actions] if entry.extra is not None else []
        for command in commands or [text_of(entry.action)] if commands or entry.action else _FENCED.findall(text)[:1]:
            if command.strip():
                yield from self.call("", "bash", msgspec.json.encode({"command": command}))

    def _observation(self, entry: _Entry) -> Iterator[NormalizedItem]:
        ids = entry.tool_call_ids or [entry.tool_call_id]
        told = entry.extra or _Extra()
        text = text_of(told.raw_output) or "\n".join(self.texts(entry)).removeprefix("OBSERVATION:\n")
        yield from self.result(text_of(ids[0]), text, failed=None, exit_code=number_of(told.returncode))


def task_in(text: str, template: str) -> str:
    """The task in a first message that was made of a template; all of the message where the template does not fit."""
    place = _TASK.search(template)
    if place is None:
        return text
    before = _MARKS.split(template[: place.start()])[-1][-_BESIDE_CHARS:].strip()
    behind = _MARKS.split(template[place.end() :])[0].strip()[:_BESIDE_CHARS].strip()
    start = text.find(before)
    if start < 0:
        return text
    start += len(before)
    end = text.find(behind, start) if behind else len(text)
    return text[start : end if end >= 0 else len(text)].strip()


# --- Sessions

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
