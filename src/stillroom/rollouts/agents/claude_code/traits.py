"""What the lines at both ends of a Claude Code file tell of the session: where, when, how it was started, its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.ends import read_tail as read_last_lines
from stillroom.rollouts.item import UNREADABLE
from stillroom.rollouts.timestamps import parse_timestamp

# How the client names the ways to start it. A way that is not here is taken as it is, and nobody's memory is fed by it.
_SOURCES = {"cli": "cli", "claude-vscode": "vscode", "claude-desktop": "vscode"}
_HEADLESS = "sdk-"
# Names of sessions, the user's own first. A `summary` names another session more often than its own.
_TITLES = ("custom-title", "ai-title")
_TITLED = b'-title"'


class _Line(msgspec.Struct, rename="camel"):
    """Every field is looked at alone, so that one of a strange type spoils no other."""

    type: Any = None
    timestamp: Any = None
    session_id: Any = None
    cwd: Any = None
    git_branch: Any = None
    version: Any = None
    entrypoint: Any = None
    operation: Any = None
    custom_title: Any = None
    ai_title: Any = None


_line = msgspec.json.Decoder(_Line)


@dataclass(slots=True)
class Traits:
    """Learned line by line; None where no line said anything."""

    #: Whether the first line is the first of the file.
    from_start: bool = True
    session_id: str | None = None
    cwd: str | None = None
    branch: str | None = None
    version: str | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    #: `cli`, `vscode`, `exec`, or the client's own word.
    source: str | None = None
    #: Of the lines, in their order, without repetition.
    kinds: list[str] = field(default_factory=list)
    _titles: dict[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The best name of the session."""
        return next((self._titles[kind] for kind in _TITLES if kind in self._titles), "")

    def learn(self, line: bytes) -> None:
        """Take in a line; one that can't be read tells nothing."""
        try:
            told = _line.decode(line)
        except UNREADABLE:
            return
        if not isinstance(told.type, str):
            return
        # Without an entrypoint: versions that put every prompt of a script into a queue, and none of a person at rest.
        if told.type == "queue-operation" and told.operation == "enqueue" and self.from_start and not self.kinds:
            self.source = "exec"
        if told.type not in self.kinds and len(self.kinds) < 100:
            self.kinds.append(told.type)
        self.session_id = self.session_id or _text(told.session_id)
        self.cwd = self.cwd or _text(told.cwd)
        self.branch = _text(told.git_branch) or self.branch
        self.version = _text(told.version) or self.version
        if entrypoint := _text(told.entrypoint):
            self.source = "exec" if entrypoint.startswith(_HEADLESS) else _SOURCES.get(entrypoint, entrypoint)
        time = parse_timestamp(told.timestamp.encode()) if isinstance(told.timestamp, str) else None
        if time is not None:
            self.first_ms = self.first_ms or time
            self.last_ms = time
        title = {"custom-title": told.custom_title, "ai-title": told.ai_title}.get(told.type)
        if text := _text(title):
            self._titles[told.type] = text


def read_tail(path: Path, *, size: int, reading: Reading = READING) -> tuple[Traits, int]:
    """What the last lines tell, and where the last whole line ends.

    However much was appended, a window is enough: the client repeats its titles.
    """
    traits = Traits(from_start=False)
    return traits, read_last_lines(path, traits.learn, size=size, telling=(_TITLED,), reading=reading)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
