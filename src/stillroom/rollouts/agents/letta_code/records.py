"""The messages of Letta Code's local backend as the items that memory keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from stillroom.rollouts.agents.decoder import text_of, time_of
from stillroom.rollouts.agents.made import Made
from stillroom.rollouts.agents.pi_messages import Message, MessageDecoder, Shell, sent_at, texts_of

# The client used to give messages times of its own, a second apart from the first one of 2026 on.
_INVENTED_MS = range(1_767_225_600_000, 1_767_225_600_000 + 24 * 3600 * 1000)
_EXITED = re.compile(r"Exit code: (-?\d{1,10})(?:\n|\Z)")
_IN_BACKGROUND = "Command running in background"
_REMINDER = "<system-reminder>"
_CWD = re.compile(r"^- \*\*Current working directory\*\*: ([^\n]{1,4096})$", re.MULTILINE)
_VERSION = re.compile(r"^- \*\*Letta Code version\*\*: (\S{1,40})$", re.MULTILINE)
_BRANCH = re.compile(r"^- \*\*Git repository\*\*: Yes \(branch: ([^)\n]{1,200})\)", re.MULTILINE)


class _Metadata(msgspec.Struct):
    created_at: Any = None
    agent_id: Any = None
    conversation_id: Any = None
    compaction: Any = None


class Line(Message, rename="camel"):
    """A line: a message with an id."""

    id: Any = None
    metadata: _Metadata | None = None


class Place(NamedTuple):
    """What the client tells its model of where it is; "" where it doesn't."""

    cwd: str
    branch: str
    version: str


line_of = msgspec.json.Decoder(Line).decode


class Records(MessageDecoder):
    """Decodes the lines of one conversation."""

    scaffolding = "system-reminder"
    _at: int | None = None

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of a message, at its own time, or at the last one known."""
        read = line_of(line)
        if isinstance(read.id, str) and not self.is_new(f"message {read.id}"):
            return None, ()
        self._at = time_of_line(read) or self._at
        if read.metadata is not None and read.metadata.compaction is not None:
            self.stats.drop("compaction summary")
            return None, ()
        self.cwd = place_of(read).cwd or self.cwd
        return self._at, self.of_message(read, text_of(read.id))

    def shell(self, text: str, *, failed: bool) -> Shell:
        """The exit code of a command that failed stands in the first line, although nothing is marked as an error."""
        if (match := _EXITED.match(text)) is not None:
            return Shell(text[match.end() :], int(match[1]))
        return Shell(text, None if failed or text.startswith(_IN_BACKGROUND) else 0)


def time_of_line(line: Line) -> int | None:
    """When a message was sent, as far as that is no time that the client made up."""
    created = line.metadata.created_at if line.metadata is not None else None
    times = (sent_at(line), time_of(created))
    return next((time for time in times if time is not None and time not in _INVENTED_MS), None)


def place_of(line: Line) -> Place:
    """What the reminders of a user's message tell."""
    reminders = [text for text in texts_of(line) if text.startswith(_REMINDER)] if line.role == "user" else []
    found = [
        next((m[1] for text in reminders if (m := pattern.search(text))), "") for pattern in (_CWD, _BRANCH, _VERSION)
    ]
    return Place(*(text_of(value) for value in found))
