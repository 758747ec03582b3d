"""Find trajectories in ATIF, the format in which Harbor and others write the runs of any agent.

A trajectory is a file; those of sub-agents that it holds have its path with their number behind it,
`trajectory.json#0`. In a trial of Harbor, `…/TRIAL/agent/trajectory.json`, nobody is at the other end: its task is an
evaluation's, and what it was worth stands in `…/TRIAL/result.json`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions import documents
from stillroom.sessions.chat_parts import ChatDecoder, Content, Message, inner_text, when
from stillroom.sessions.conversation import text_of
from stillroom.sessions.discovery import Broken, Discovery, File, Found, scan_stores
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.jsonl import open_stored
from stillroom.sessions.metadata import Asked, asked_of, read_description
from stillroom.sessions.normalize import NormalizedItem, said_by_agent, said_by_assistant
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, stream_chunks
from stillroom.sessions.timestamps import parse_timestamp
from stillroom.thread import FileStamp, Thread

# --- The steps of a trajectory in ATIF, which many harnesses write, as the items that memory keeps.


class _Call(msgspec.Struct):
    tool_call_id: Any = None
    function_name: Any = None
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class _RecordResult(msgspec.Struct):
    source_call_id: Any = None
    content: Any = None


class _Observation(msgspec.Struct):
    results: list[_RecordResult] = []


class _Step(msgspec.Struct):
    step_id: Any = None
    timestamp: Any = None
    source: Any = None
    message: Content = None
    tool_calls: list[_Call] | None = None
    observation: _Observation | None = None
    is_copied_context: Any = None
    #: Ours: what a harness found out about the run, put behind its steps.
    outcome: Any = None


_step = msgspec.json.Decoder(_Step)


class Records(ChatDecoder):
    """Decodes steps, one a line. `of_agent`: the tasks are an evaluation's, or another agent's."""

    def made(self, line: bytes) -> tuple[int | None, Iterable[NormalizedItem]]:
        """The items of a step."""
        step = _step.decode(line)
        return when(step.timestamp), self._made(step)

    def _made(self, step: _Step) -> Iterator[NormalizedItem]:
        if step.is_copied_context is True:
            self.stats.drop("seen before")
        elif step.source == "user":
            yield from self.prompt(*self._texts(step), of_agent=self._of_agent)
        elif step.source == "agent":
            yield from self._answer(step)
        elif step.source == "system":
            self.stats.drop("system prompt")
        elif step.outcome is not None:
            yield said_by_agent(text_of(step.outcome))
        else:
            self.stats.count_unknown(f"step/{step.source}")
        yield from self._results(step)

    def _answer(self, step: _Step) -> Iterator[NormalizedItem]:
        if text := "\n".join(text for text in self._texts(step) if text.strip()):
            yield said_by_assistant(text)
        for call in step.tool_calls or ():
            yield from self.call(text_of(call.tool_call_id), text_of(call.function_name), bytes(call.arguments))

    def _results(self, step: _Step) -> Iterator[NormalizedItem]:
        for result in step.observation.results if step.observation is not None else ():
            # Of an agent with one tool some harnesses don't say which call a result belongs to.
            call_id = text_of(result.source_call_id)
            if not call_id and step.tool_calls:
                call_id = text_of(step.tool_calls[0].tool_call_id)
            text = inner_text(result.content)
            if text or call_id:
                yield from self.result(call_id or f"step-{step.step_id}", text, failed=None)

    def _texts(self, step: _Step) -> list[str]:
        return self.texts(Message(content=step.message))


# --- Sessions

AGENT = "atif"
COPIES = False
_PLACES = ("trajectory*.json", "*.atif.json")
_INSIDE = re.compile(r"(.+)#(\d{1,6})", re.DOTALL)
_ID = re.compile(r"[\w.-]{1,120}", re.ASCII)
# Written by a harness for its own work: the client's request for a summary, and the like.
_SUB_AGENT = re.compile(r"(.+?)-summarization-\d+-\w+", re.ASCII)
_TIME = re.compile(rb'"timestamp"\s*:\s*"([^"\\]{10,40})"')
_NO_ID = "atif-"
# An agent's description may hold the definitions of all its tools.
_MAX_FIELD_BYTES = 1024 * 1024
_MAX_SUB_AGENTS = 1000


class _Agent(msgspec.Struct):
    name: Any = None
    version: Any = None


class _Extra(msgspec.Struct):
    cwd: Any = None
    git_branch: Any = None


class _Traits(msgspec.Struct):
    schema_version: Any = None
    session_id: Any = None
    trajectory_id: Any = None
    agent: _Agent = msgspec.field(default_factory=_Agent)
    extra: _Extra | None = None

    @property
    def thread_id(self) -> str:
        """Ids of other agents' sessions are taken over by trajectories that were made of them."""
        parts = [text_of(self.session_id), text_of(self.trajectory_id)]
        return _NO_ID + "-".join(part for part in dict.fromkeys(parts) if part)


class _Rewards(msgspec.Struct):
    rewards: dict[str, Any] | None = None


class _Result(msgspec.Struct):
    verifier_result: _Rewards | None = None


class _Place(NamedTuple):
    """A trajectory in its file; `number` is that of a sub-agent's."""

    file: Path
    number: int | None = None

    @property
    def rollout(self) -> Path:
        return self.file if self.number is None else self.file.with_name(f"{self.file.name}#{self.number}")

    @property
    def inside(self) -> documents.Path:
        return () if self.number is None else ("subagent_trajectories", self.number)


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every trajectory in `root`, a folder or a file, oldest first."""
    root = root.absolute()
    paths = [root] if root.is_file() else [path for place in _PLACES for path in root.rglob(place)]
    yield from scan_stores(paths, known, _is_unchanged, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a trajectory. Raises `RolloutError` if it can't be opened."""
    place = _place_of(path)
    try:
        traits = _traits(place, reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error
    stop = sys.maxsize if stop_after_bytes is None else stop_after_bytes
    return _stream(place, traits, max_line_bytes=max_line_bytes, stop_after_bytes=stop, reading=reading)


def _stream(
    place: _Place, traits: _Traits, *, max_line_bytes: int, stop_after_bytes: int, reading: Reading
) -> ItemStream[Records]:
    records = Records(
        ReadStats(),
        of_agent=_is_trial(place.file) or place.number is not None or _parent_of(traits) is not None,
        names_failures=traits.agent.name == "claude-code",
        cwd=text_of(traits.extra.cwd) or None if traits.extra is not None else None,
        reading=reading,
    )
    return stream_chunks(
        _lines(place, reading),
        place.rollout,
        records,
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _lines(place: _Place, reading: Reading) -> Generator[bytes, None, None]:
    def outcome() -> bytes:
        told = _outcome(place.file) if place.number is None else ""
        return msgspec.json.encode({"outcome": told}) if told else b""

    with open_stored(place.file, reading=reading) as file:
        steps = documents.lines(file, (*place.inside, "steps"), reading=reading)
        yield from documents.followed_by(steps, outcome)


def _outcome(path: Path) -> str:
    """What the trial was worth, in words; "" if that is not known."""
    if not _is_trial(path):
        return ""
    result = read_description(_result_of(path), _Result, max_bytes=_MAX_FIELD_BYTES).verifier_result
    rewards = result.rewards if result is not None and result.rewards is not None else {}
    told = [f"{name} = {value}" for name, value in rewards.items() if isinstance(value, int | float)]
    return f"The verifier of this trial gave: {', '.join(told)}." if told else ""


def _is_trial(path: Path) -> bool:
    return path.parent.name == "agent" and _result_of(path).is_file()


def _result_of(path: Path) -> Path:
    return path.parents[1] / "result.json"


def _place_of(path: Path) -> _Place:
    inside = _INSIDE.fullmatch(path.name)
    return _Place(path.with_name(inside[1]), int(inside[2])) if inside and not path.exists() else _Place(path)


def _is_unchanged(file: File, stamps: list[FileStamp]) -> bool:
    return any((stamp.size, stamp.mtime_ns) == (file.size, file.mtime_ns) for stamp in stamps)


def _look(file: File, max_line_bytes: int, reading: Reading) -> Iterator[Discovery]:
    place = _Place(file.path)
    traits = _traits(place, reading)
    if not text_of(traits.schema_version).startswith("ATIF-"):
        cut = documents.cut(file.path, reading=reading)
        raise RolloutError(f"`{file.path}` can't be used: it is no trajectory in ATIF{cut}")
    with _stream(
        place, traits, max_line_bytes=max_line_bytes, stop_after_bytes=reading.long_head_bytes, reading=reading
    ) as items:
        asked = asked_of(items, reading=reading)
    ended = _last_ms(file, reading) or file.mtime_ns // 1_000_000
    main = _described(file, place, traits, asked, None, ended)
    yield main
    if isinstance(main, Found):
        yield from _sub_agents(file, main.thread, max_line_bytes, reading)


def _sub_agents(file: File, parent: Thread, max_line_bytes: int, reading: Reading) -> Iterator[Discovery]:
    """Those whose trajectories stand in their parent's; what they were asked is nobody's word, and is not shown."""
    with open_stored(file.path, reading=reading) as text:
        every = documents.elements(text, ("subagent_trajectories",), max_line_bytes=max_line_bytes, reading=reading)
        for number, line in enumerate(islice(every, _MAX_SUB_AGENTS)):
            if line != documents.TORN:
                traits = _traits_in(BytesIO(line), (), reading)
                place = _Place(file.path, number)
                yield _described(file, place, traits, Asked("", None), parent.thread_id, parent.updated_at_ms)


def _traits(place: _Place, reading: Reading) -> _Traits:
    with open_stored(place.file, reading=reading) as file:
        return _traits_in(file, place.inside, reading)


def _traits_in(file: BinaryIO, path: documents.Path, reading: Reading) -> _Traits:
    found = documents.fields(
        file,
        _Traits.__struct_fields__,
        path=path,
        max_bytes=_MAX_FIELD_BYTES,
        stop_after_bytes=reading.long_head_bytes,
        reading=reading,
    )
    traits = _Traits()
    for name, raw in found.items():
        try:
            traits = msgspec.structs.replace(traits, **{name: getattr(_alone(name, raw), name)})
        except UNREADABLE:
            continue
    return traits


def _alone(name: str, raw: msgspec.Raw) -> _Traits:
    return msgspec.json.decode(b'{"%s":%s}' % (name.encode(), bytes(raw)), type=_Traits)


def _parent_of(traits: _Traits) -> str | None:
    """The thread of which a file of its own is a part."""
    split_off = _SUB_AGENT.fullmatch(text_of(traits.session_id))
    return f"atif-{split_off[1]}" if split_off else None


def _last_ms(file: File, reading: Reading) -> int | None:
    """When the last step was written, as far as the end of the file tells."""
    with open_stored(file.path, reading=reading) as text:
        text.seek(max(file.size - reading.tail_window_bytes, 0))
        found = _TIME.findall(text.read(reading.tail_window_bytes))
    return max((at for time in found if (at := parse_timestamp(time)) is not None), default=None)


def _described(file: File, place: _Place, traits: _Traits, asked: Asked, parent: str | None, ended: int) -> Discovery:
    thread_id = traits.thread_id
    if parent is not None and thread_id in (_NO_ID, parent):
        thread_id = f"{parent}-{place.number}"
    if _ID.fullmatch(thread_id) is None or thread_id == _NO_ID:
        return Broken(str(place.rollout), f"`{place.rollout}` can't be used: it has no id")
    parent = parent or _parent_of(traits)
    extra = traits.extra or _Extra()
    thread = Thread(
        thread_id=thread_id,
        agent=AGENT,
        rollout_path=str(place.rollout),
        source='{"subagent":"other"}' if parent else "cli",
        cwd=text_of(extra.cwd),
        created_at_ms=min(asked.at_ms or ended, ended),
        updated_at_ms=ended,
        preview="" if parent else asked.words,
        parent_thread_id=parent,
        git_branch=text_of(extra.git_branch) or None,
        cli_version=text_of(traits.agent.version) or None,
    )
    return Found(thread, file.stamp(0))
