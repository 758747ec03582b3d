"""Which agents' sessions can be read: one module of `agents/` each, met by everybody else through this file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.found import Discovery
from stillroom.rollouts.stream import Decoder, ItemStream
from stillroom.thread import FileStamp, Rest, Thread


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
    match agent:
        case "aider":
            from stillroom.rollouts.agents.aider import reader as aider

            return aider
        case "atif":
            from stillroom.rollouts.agents.atif import reader as atif

            return atif
        case "chat-messages":
            from stillroom.rollouts.agents.chat import reader as chat

            return chat
        case "claude-code":
            from stillroom.rollouts.agents.claude_code import reader as claude_code

            return claude_code
        case "cline":
            from stillroom.rollouts.agents.cline import reader as cline

            return cline
        case "codex":
            from stillroom.rollouts.agents.codex import reader as codex

            return codex
        case "continue":
            from stillroom.rollouts.agents.continue_dev import reader as continue_dev

            return continue_dev
        case "copilot-cli":
            from stillroom.rollouts.agents.copilot import reader as copilot

            return copilot
        case "cursor":
            from stillroom.rollouts.agents.cursor import reader as cursor

            return cursor
        case "gemini-cli":
            from stillroom.rollouts.agents.gemini import reader as gemini

            return gemini
        case "inspect-ai":
            from stillroom.rollouts.agents.inspect_ai import reader as inspect_ai

            return inspect_ai
        case "kimi-code":
            from stillroom.rollouts.agents.kimi_code import reader as kimi_code

            return kimi_code
        case "langchain":
            from stillroom.rollouts.agents.langchain import reader as langchain

            return langchain
        case "letta-code":
            from stillroom.rollouts.agents.letta_code import reader as letta_code

            return letta_code
        case "openai-agents":
            from stillroom.rollouts.agents.openai_agents import reader as openai_agents

            return openai_agents
        case "opencode":
            from stillroom.rollouts.agents.opencode import reader as opencode

            return opencode
        case "openhands":
            from stillroom.rollouts.agents.openhands import reader as openhands

            return openhands
        case "otel-genai":
            from stillroom.rollouts.agents.otel import reader as otel

            return otel
        case "pi":
            from stillroom.rollouts.agents.pi import reader as pi

            return pi
        case "pydantic-ai":
            from stillroom.rollouts.agents.pydantic_ai import reader as pydantic_ai

            return pydantic_ai
        case "qwen-code":
            from stillroom.rollouts.agents.qwen import reader as qwen

            return qwen
        case "stillroom":
            from stillroom.rollouts.agents.stillroom import reader as stillroom

            return stillroom
        case "swe-agent":
            from stillroom.rollouts.agents.swe_agent import reader as swe_agent

            return swe_agent
        case _:
            raise RolloutError(f"sessions of `{agent}` can't be read by this version")


def open_thread(
    thread: Thread, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Decoder]:
    """The items of a thread, whichever agent recorded it. Raises `RolloutError` if it can't be opened."""
    items = reader_of(thread.agent).open_items(
        Path(thread.rollout_path), max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading
    )
    return items.after(thread.told_items) if isinstance(thread, Rest) else items
