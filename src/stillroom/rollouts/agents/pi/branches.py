"""What a session of the pi agent took over from another one, and which prompts its user went back behind."""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.decoder import UNREADABLE, text_of
from stillroom.rollouts.agents.pi.records import Entry, entry_of, key_of
from stillroom.rollouts.agents.talk import lines_of
from stillroom.rollouts.agents.tree import Tree
from stillroom.rollouts.lines import open_stored

#: The name of a session's file: when it began, and its id.
NAME = re.compile(r"\d{4}-\d\d-\d\dT[\d-]{6,20}Z?_[\w.-]{1,120}\.jsonl", re.ASCII)


_START = re.compile(
    rb'\{"type":"message","id":"([\w-]{1,80})","parentId":(?:null|"([\w-]{1,80})"),"timestamp":"([\w:.+-]{1,40})"'
    rb',"message":\{"role":"(\w{1,40})"'
)


class _Header(msgspec.Struct, rename="camel"):
    parent_session: Any = None
    branched_from: Any = None


def superseded(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The ids of the prompts that were left behind, as hashes. Raises `OSError` or `RolloutError`."""
    tree = Tree(max_records=reading.remembered_records)
    for line in lines_of(path, max_line_bytes=max_line_bytes, reading=reading):
        if (start := _START.match(line)) is not None:
            # As the client writes it: nothing else of an entry has to be decoded.
            is_prompt = start[4] == b"user"
            tree.add(start[1].decode(), start[2].decode() if start[2] else None, is_prompt=is_prompt)
            continue
        entry = _entry(line)
        if isinstance(entry.id, str) and entry.type != "session":
            parent = entry.parent_id if isinstance(entry.parent_id, str) else None
            tree.add(entry.id, parent, is_prompt=entry.message is not None and entry.message.role == "user")
    return tree.left()


def inherited(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The keys of the entries that the session holds from which this one was forked, as hashes; none if that is gone.

    A fork copies entries as they are, and its header names where they come from. Raises `OSError` or `RolloutError`.
    """
    origin = _origin(path)
    if origin is None:
        return frozenset()
    lines = islice(lines_of(origin, max_line_bytes=max_line_bytes, reading=reading), reading.remembered_records)
    return frozenset(hash(_key(line)) for line in lines)


def _origin(path: Path) -> Path | None:
    """The named file: in the same folder, or in that of another project. Nothing outside of the sessions is opened."""
    with open_stored(path) as file:
        first = file.readline(READING.head_bytes)
    try:
        header = msgspec.json.decode(first, type=_Header)
    except UNREADABLE:
        return None
    named = re.split(r"[/\\]", text_of(header.parent_session) or text_of(header.branched_from))[-1]
    if NAME.fullmatch(named) is None or named == path.name:
        return None
    places = [path.with_name(named), *path.parent.parent.glob(f"*/{named}")]
    return next((place for place in places if place.is_file()), None)


def _key(line: bytes) -> str:
    start = _START.match(line)
    return key_of(_entry(line), line) if start is None else f"{start[1].decode()} {start[3].decode()}"


def _entry(line: bytes) -> Entry:
    try:
        return entry_of(line)
    except UNREADABLE:
        return Entry()
