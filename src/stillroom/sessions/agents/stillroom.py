"""Find what was recorded or ingested here: rollouts as Codex writes them, in Stillroom's own home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from stillroom.sessions.agents import codex
from stillroom.sessions.agents.codex import State
from stillroom.sessions.discovery import Discovery
from stillroom.sessions.discovery import refreshed as refreshed
from stillroom.sessions.stream import open_items as open_items
from stillroom.thread import FileStamp

AGENT = "stillroom"
COPIES = False
# No client keeps a table of threads here.
_NO_TABLE = State(None, {})


def discover(home: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int) -> Iterator[Discovery]:
    """Look at every rollout under `home`, oldest first; `known` are the stamps by rollout path."""
    return codex.discover(home, known, agent=AGENT, state=_NO_TABLE, max_line_bytes=max_line_bytes)
