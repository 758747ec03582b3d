"""What a Qwen Code session took over from another one, and which prompts its user went back behind."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.decoder import UNREADABLE
from stillroom.rollouts.agents.qwen.records import is_typed, line_of, words_of
from stillroom.rollouts.agents.talk import lines_of
from stillroom.rollouts.agents.tree import Tree
from stillroom.rollouts.lines import open_stored

_UUID = re.compile(rb'\{"uuid": ?"([\w-]{1,80})"')
_SESSION = re.compile(rb'"sessionId": ?"([\w-]{1,80})"')
# Both stand in the first fields of the first line.
_HEAD_BYTES = 4096


def superseded(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The ids of the prompts that were left behind, as hashes. Raises `OSError` or `RolloutError`."""
    tree = Tree(max_records=reading.remembered_records)
    for line in lines_of(path, max_line_bytes=max_line_bytes, reading=reading):
        try:
            read = line_of(line)
        except UNREADABLE:
            continue
        if isinstance(read.uuid, str):
            parent = read.parent_uuid if isinstance(read.parent_uuid, str) else None
            is_prompt = read.type == "user" and is_typed(read) and bool(words_of(read))
            tree.add(read.uuid, parent, is_prompt=is_prompt)
    return tree.left()


def inherited(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The ids of the lines that an earlier session of the folder holds too, as hashes: a fork begins with them.

    Its first lines may still name the session that they come from. Where they don't, a file of which all stands in
    the other is the earlier one. Raises `OSError` or `RolloutError`.
    """
    first, origin = _beginning(path)
    if not first:
        return frozenset()
    own: frozenset[int] | None = None
    taken: set[int] = set()
    for other in path.parent.glob("*.jsonl"):
        if other == path or _beginning(other)[0] != first:
            continue
        own = own if own is not None else _uuids(path, max_line_bytes, reading)
        theirs = _uuids(other, max_line_bytes, reading)
        # Of two equal files the one that comes first by its name keeps what both hold.
        if other.stem == origin or theirs < own or (theirs == own and other.name < path.name):
            taken |= theirs
    return frozenset(taken)


def _beginning(path: Path) -> tuple[bytes, str]:
    """The id of the first line, and of the session that it names; both "" where there is none."""
    try:
        with open_stored(path) as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, RolloutError):
        return b"", ""
    match, session = _UUID.match(head), _SESSION.search(head)
    return match[1] if match else b"", session[1].decode() if session else ""


def _uuids(path: Path, max_line_bytes: int, reading: Reading) -> frozenset[int]:
    found = (
        match for line in lines_of(path, max_line_bytes=max_line_bytes, reading=reading) if (match := _UUID.match(line))
    )
    return frozenset(hash(match[1].decode()) for match in islice(found, reading.remembered_records))
