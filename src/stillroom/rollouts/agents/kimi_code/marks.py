"""Which prompts of a Kimi Code session were undone, and where a fork begins; it shows only in the whole wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.decoder import UNREADABLE, number_of
from stillroom.rollouts.agents.kimi_code.messages import is_prompt
from stillroom.rollouts.agents.kimi_code.records import key_of
from stillroom.rollouts.agents.kimi_code.wire import appended_of, head_of
from stillroom.rollouts.agents.talk import lines_of

_MATTERS = (
    *(b'"context.append_message"', b'"context.undo"', b'"context.clear"', b'"context.apply_compaction"'),
    b'"forked"',
)


class Marks(NamedTuple):
    """What the whole of a wire tells."""

    #: The keys of the prompts that were undone, as hashes.
    undone: frozenset[int]
    #: How often the session was forked. What stands ahead of the last mark is the origin's.
    forks: int


class _Undo(msgspec.Struct):
    count: Any = None


_undo = msgspec.json.Decoder(_Undo)


def marks_of(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> Marks:
    """Read a wire for its marks. Raises `OSError` or `RolloutError`."""
    talk = _Talk(reading.remembered_records)
    for line in lines_of(path, max_line_bytes=max_line_bytes, reading=reading):
        if any(mark in line[:200] for mark in _MATTERS):
            try:
                talk.follow(line)
            except UNREADABLE:
                continue
    return Marks(frozenset(talk.undone), talk.forks)


class _Talk:
    """The prompts that can still be undone: none from before the context was cleared or compacted."""

    def __init__(self, limit: int) -> None:
        self.undone: set[int] = set()
        self.forks = 0
        self._limit = limit
        self._prompts: list[int] = []

    def follow(self, line: bytes) -> None:
        match head_of(line).type:
            case "context.append_message":
                message = appended_of(line).message
                if message.role == "user" and is_prompt(message.origin) and len(self._prompts) < self._limit:
                    self._prompts.append(hash(key_of(message, line)))
            case "context.undo":
                count = min(number_of(_undo.decode(line).count) or 0, len(self._prompts))
                if count > 0:
                    self.undone.update(self._prompts[-count:])
                    del self._prompts[-count:]
            case "forked":
                self.forks += 1
            case "context.clear" | "context.apply_compaction":
                self._prompts.clear()
