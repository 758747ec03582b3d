"""Find Qwen Code's threads: one file a session, one a sub-agent."""

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
from stillroom.rollouts.agents.ends import Times, read_description, read_head, read_tail
from stillroom.rollouts.agents.qwen.branches import inherited, superseded
from stillroom.rollouts.agents.qwen.records import Records
from stillroom.rollouts.agents.scan import File, scan
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.agents.talk import NOTHING, past_of
from stillroom.rollouts.found import Discovery, Found
from stillroom.rollouts.speech import preview_text
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream, open_stream
from stillroom.thread import FileStamp, Thread

AGENT = "qwen-code"
COPIES = True
_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")
_SUB_AGENT = re.compile(r"agent-[\w-]{1,160}\.jsonl", re.ASCII)


class _Payload(msgspec.Struct, rename="camel"):
    custom_title: Any = None
    title: Any = None


class _Line(msgspec.Struct, rename="camel"):
    uuid: Any = None
    session_id: Any = None
    timestamp: Any = None
    cwd: Any = None
    git_branch: Any = None
    version: Any = None
    subtype: Any = None
    system_payload: msgspec.Raw = msgspec.Raw(b"null")


class _Described(msgspec.Struct, rename="camel"):
    agent_type: Any = None
    description: Any = None
    parent_session_id: Any = None


_line = msgspec.json.Decoder(_Line)


@dataclass(slots=True)
class _Traits(Times):
    """What the lines at both ends tell."""

    some: bool = False
    cwd: str = ""
    branch: str = ""
    version: str = ""
    title: str = ""

    def learn(self, line: bytes) -> None:
        try:
            told = _line.decode(line)
        except UNREADABLE:
            return
        self.some = self.some or isinstance(told.uuid, str)
        self.cwd = self.cwd or text_of(told.cwd)
        self.branch = text_of(told.git_branch) or self.branch
        self.version = text_of(told.version) or self.version
        self.saw(time_of(told.timestamp))
        if told.subtype == "custom_title":
            try:
                payload = msgspec.json.decode(told.system_payload, type=_Payload)
            except UNREADABLE:
                return
            self.title = text_of(payload.custom_title) or text_of(payload.title) or self.title


def discover(
    home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every session and sub-agent under `home`, oldest first."""
    yield from scan(_files(home.absolute()), known, lambda file: _look(file, max_line_bytes, reading))


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a session or a sub-agent's file. Raises `RolloutError` if it can't be opened.

    What an earlier session holds too is left out, and what its user left behind is marked; with `stop_after_bytes`
    neither is looked for.
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
    yield from (path for path in home.glob("projects/*/chats/*.jsonl") if _SESSION.fullmatch(path.name))
    yield from (path for path in home.glob("projects/*/subagents/*/*.jsonl") if _is_sub_agent(path))


def _is_sub_agent(path: Path) -> bool:
    return _SUB_AGENT.fullmatch(path.name) is not None


def _look(file: File, max_line_bytes: int, reading: Reading) -> Discovery:
    path = file.path
    is_agent = _is_sub_agent(path)
    traits = _Traits()
    records = Records(ReadStats(), of_agent=is_agent, reading=reading)
    preview = read_head(path, records, traits.learn, max_line_bytes=max_line_bytes, reading=reading)
    offset = read_tail(path, traits.learn, size=file.size, telling=(b"custom_title",), reading=reading)
    if not traits.some:
        raise RolloutError(f"`{path}` can't be used: it has no complete record")
    described = read_description(path.with_suffix(".meta.json"), _Described) if is_agent else _Described()
    parent = (text_of(described.parent_session_id) or path.parent.name) if is_agent else None
    agent = {"subagent": text_of(described.agent_type) or "other"}
    span = traits.span(file)
    thread = Thread(
        thread_id=f"{parent}:{path.stem}" if is_agent else path.stem,
        agent=AGENT,
        rollout_path=str(path),
        source=msgspec.json.encode(agent).decode() if is_agent else "cli",
        cwd=traits.cwd,
        created_at_ms=span.began,
        updated_at_ms=span.went_on,
        title=preview_text(text_of(described.description) or traits.title, max_chars=reading.preview_chars),
        preview=preview,
        parent_thread_id=parent,
        git_branch=traits.branch or None,
        cli_version=traits.version or None,
    )
    return Found(thread, file.stamp(offset))
