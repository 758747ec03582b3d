"""Which agents' sessions can be read: one module of `agents/` each, met by everybody else through this file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.aider import reader as aider
from stillroom.rollouts.agents.atif import reader as atif
from stillroom.rollouts.agents.chat import reader as chat
from stillroom.rollouts.agents.claude_code import reader as claude_code
from stillroom.rollouts.agents.cline import reader as cline
from stillroom.rollouts.agents.codex import reader as codex
from stillroom.rollouts.agents.continue_dev import reader as continue_dev
from stillroom.rollouts.agents.copilot import reader as copilot
from stillroom.rollouts.agents.cursor import reader as cursor
from stillroom.rollouts.agents.gemini import reader as gemini
from stillroom.rollouts.agents.inspect_ai import reader as inspect_ai
from stillroom.rollouts.agents.kimi_code import reader as kimi_code
from stillroom.rollouts.agents.langchain import reader as langchain
from stillroom.rollouts.agents.letta_code import reader as letta_code
from stillroom.rollouts.agents.openai_agents import reader as openai_agents
from stillroom.rollouts.agents.opencode import reader as opencode
from stillroom.rollouts.agents.openhands import reader as openhands
from stillroom.rollouts.agents.otel import reader as otel
from stillroom.rollouts.agents.pi import reader as pi
from stillroom.rollouts.agents.pydantic_ai import reader as pydantic_ai
from stillroom.rollouts.agents.qwen import reader as qwen
from stillroom.rollouts.agents.stillroom import reader as stillroom
from stillroom.rollouts.agents.swe_agent import reader as swe_agent
from stillroom.rollouts.found import Discovery
from stillroom.rollouts.stream import Decoder, ItemStream
from stillroom.thread import FileStamp, Thread


class Reader(Protocol):
    """What a module of `agents/` has: how sessions of one format are found and read."""

    #: The format, as in `[[sources]]`, and the `agent` of its threads.
    AGENT: str
    #: Whether a session's file may begin with records of another, which `open_items` leaves out only if it may read
    #: the whole file, and others beside it: without `stop_after_bytes`.
    COPIES: bool

    def discover(self, root: Path, known: Mapping[str, FileStamp], /, *, max_line_bytes: int) -> Iterator[Discovery]:
        """Look at every session under `root`; `known` are the stamps by rollout path. One that has not changed since
        is not opened; one that can't be understood fails alone."""

    def refreshed(self, root: Path, stored: Iterable[Thread], /) -> Iterator[Thread]:
        """Those of the `stored` threads that the agent now describes otherwise although their files are unchanged."""

    def open_items(
        self, path: Path, /, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
    ) -> ItemStream[Decoder]:
        """The items of the session stored at `path`. Raises `RolloutError` if it can't be opened."""


READERS: Mapping[str, Reader] = MappingProxyType(
    {
        reader.AGENT: reader
        for reader in (
            codex,
            claude_code,
            opencode,
            gemini,
            qwen,
            copilot,
            pi,
            aider,
            openhands,
            continue_dev,
            cline,
            letta_code,
            kimi_code,
            cursor,
            stillroom,
            openai_agents,
            langchain,
            chat,
            atif,
            pydantic_ai,
            otel,
            swe_agent,
            inspect_ai,
        )
    }
)
"""By agent."""


def reader_of(agent: str) -> Reader:
    """The reader of an agent's sessions. Raises `RolloutError` for an agent that this version does not know."""
    if (reader := READERS.get(agent)) is None:
        raise RolloutError(f"sessions of `{agent}` can't be read by this version")
    return reader


def open_thread(
    thread: Thread, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Decoder]:
    """The items of a thread, whichever agent recorded it. Raises `RolloutError` if it can't be opened."""
    return reader_of(thread.agent).open_items(
        Path(thread.rollout_path), max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading
    )
