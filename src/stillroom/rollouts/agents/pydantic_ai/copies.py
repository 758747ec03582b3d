"""Histories that hold all of an earlier one: a program that stores the whole history after each run writes such."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.ends import read_small
from stillroom.rollouts.agents.lists import list_files, raw_lines
from stillroom.rollouts.agents.pydantic_ai.records import messages_of
from stillroom.rollouts.item import UNREADABLE

# Quotes inside of strings are escaped: nothing that was said can pose as this key.
_CONVERSATION = re.compile(rb'"conversation_id":\s*"([^"\\]{1,200})"')


def inherited(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The keys of messages that an earlier file of the folder holds too: all of it stands in this one.

    Of two equal files the one that comes first by its name is the earlier. Raises `OSError` or `RolloutError`.
    """
    conversation = _conversation(path)
    if not conversation:
        return frozenset()
    others = (other for other in list_files(path.parent, deep=False) if other != path)
    same = islice((other for other in others if _conversation(other) == conversation), reading.copies_looked_at)
    own: frozenset[int] | None = None
    taken: set[int] = set()
    for other in same:
        own = own if own is not None else _keys(path, max_line_bytes, reading)
        try:
            theirs = _keys(other, max_line_bytes, reading)
        except (OSError, RolloutError):
            continue  # it fails alone
        if theirs < own or (theirs == own and other.name < path.name):
            taken |= theirs
    return frozenset(taken)


def _conversation(path: Path) -> bytes:
    found = _CONVERSATION.search(read_small(path))
    return found[1] if found else b""


def _keys(path: Path, max_line_bytes: int, reading: Reading) -> frozenset[int]:
    keys: set[int] = set()
    for line in raw_lines(path, max_line_bytes=max_line_bytes, reading=reading):
        try:
            keys.update(message.key for message in messages_of(line))
        except UNREADABLE:
            continue
        if len(keys) > reading.remembered_records:
            break
    return frozenset(keys)
