"""Which agents' sessions can be read: one module of `agents/` each, met by everybody else through this file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.discovery import Discovery
from stillroom.sessions.stream import Decoder, ItemStream
from stillroom.thread import FileStamp, Rest, Thread

#: The module of `agents/` that reads a format.
_MODULES: Mapping[str, str] = {
    "aider": "aider",
    "atif": "atif",
    "chat-messages": "chat",
    "claude-code": "claude_code.reader",
    "cline": "cline",
    "codex": "codex",
    "continue": "continue_dev",
    "copilot-cli": "copilot",
    "cursor": "cursor",
    "gemini-cli": "gemini",
    "inspect-ai": "inspect_ai",
    "kimi-code": "kimi_code.reader",
    "langchain": "langchain",
    "letta-code": "letta_code",
    "openai-agents": "openai_agents",
    "opencode": "opencode.reader",
    "openhands": "openhands",
    "otel-genai": "otel",
    "pi": "pi",
    "pydantic-ai": "pydantic_ai",
    "qwen-code": "qwen",
    "stillroom": "stillroom",
    "swe-agent": "swe_agent",
}


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


def reader_of(agent: str) -> Reader:
    """The reader of an agent's sessions. Raises `RolloutError` for an agent that this version does not know.

    Imported when it is asked for: nobody has sessions of all of them, and together they take as long as a small pass.
    """
    module = _MODULES.get(agent)
    if module is None:
        raise RolloutError(f"sessions of `{agent}` can't be read by this version")
    return cast("Reader", import_module(f"stillroom.sessions.agents.{module}"))


def open_thread(
    thread: Thread, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Decoder]:
    """The items of a thread, whichever agent recorded it. Raises `RolloutError` if it can't be opened."""
    items = reader_of(thread.agent).open_items(
        Path(thread.rollout_path), max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading
    )
    return items.after(thread.told_items) if isinstance(thread, Rest) else items
