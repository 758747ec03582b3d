"""An OpenHands conversation on disk: a folder with `base_state.json`, and one file of JSON an event."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.documents import fields
from stillroom.rollouts.agents.ends import read_small
from stillroom.rollouts.agents.tree import Tree
from stillroom.rollouts.item import UNREADABLE
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.timestamps import parse_local_time

STATE = "base_state.json"
_NAME = re.compile(r"event-(\d{5,18})-([0-9a-fA-F-]{8,80})\.json", re.ASCII)
# What is looked for stands in the first fields of an event.
_HEAD_BYTES = 1024
_TIME = re.compile(rb'"timestamp"\s*:\s*"([\d:.T+Z-]{10,40})"')
_PARENT = re.compile(rb'"parent_id"\s*:\s*"([\w-]{1,100})"')
_OF_USER = re.compile(rb'"source"\s*:\s*"user"')
#: The parent of an event that begins anew.
_ROOT = "__root__"
_MAX_FIELD_BYTES = 64 * 1024


class Event(NamedTuple):
    """A file. They are ordered by their numbers."""

    number: int
    event_id: str
    path: Path

    def time_ms(self) -> int | None:
        """When it happened. The client writes the local time, without a zone."""
        match = _TIME.search(read_small(self.path, max_bytes=_HEAD_BYTES))
        return parse_local_time(match[1].decode()) if match else None


class _Workspace(msgspec.Struct):
    working_dir: Any = None


class State(msgspec.Struct):
    """What is used of a conversation's state."""

    id: Any = None
    workspace: _Workspace = msgspec.field(default_factory=_Workspace)
    #: Where the talk stands: its user may have gone back. Older versions have none.
    leaf_event_id: Any = None
    head_is_empty: Any = None


def read_state(path: Path) -> State:
    """The state at `path`; one that can't be read tells nothing. Raises `OSError` or `RolloutError`."""
    with open_stored(path) as file:
        found = fields(file, State.__struct_fields__, max_bytes=_MAX_FIELD_BYTES)
    try:
        return msgspec.json.decode(msgspec.json.encode(found), type=State)
    except UNREADABLE:
        return State()


def events_of(state: Path) -> list[Event]:
    """The events of the conversation whose state is at `state`. Raises `OSError`."""
    folder = state.with_name("events")
    if not folder.is_dir():
        return []
    names = (match for path in folder.iterdir() if (match := _NAME.fullmatch(path.name)))
    return sorted(Event(int(match[1]), match[2], folder / match[0]) for match in names)


def lines(events: Sequence[Event], *, reading: Reading = READING) -> Generator[bytes, None, None]:
    """Each event as a line, in pieces. Raises `OSError`."""
    for event in events:
        try:
            with open_stored(event.path, reading=reading) as file:
                while piece := file.read(reading.chunk_bytes):
                    # In JSON a newline can only stand between two tokens.
                    yield piece.replace(b"\n", b" ")
        except (FileNotFoundError, RolloutError):  # gone since it was listed, or no file
            continue
        yield b"\n"


def superseded(events: Sequence[Event], state: State, *, reading: Reading = READING) -> frozenset[int]:
    """The ids of the prompts that were left behind, as hashes. Raises `OSError`."""
    if not isinstance(state.leaf_event_id, str) and state.head_is_empty is not True:
        return frozenset()
    tree = Tree(max_records=reading.remembered_records)
    tree.add(_ROOT, None, is_prompt=False)
    before = _ROOT
    for event in events:
        head = read_small(event.path, max_bytes=_HEAD_BYTES)
        parent = match[1].decode() if (match := _PARENT.search(head)) else before
        tree.add(event.event_id, parent, is_prompt=_OF_USER.search(head) is not None)
        before = event.event_id
    leaf = state.leaf_event_id if isinstance(state.leaf_event_id, str) else _ROOT
    tree.add("", leaf, is_prompt=False)
    return tree.left()


def inherited(state: Path, events: Sequence[Event]) -> frozenset[int]:
    """The ids of the events that an earlier conversation beside this one holds too, as hashes: a fork copies them.

    Of two that begin alike the earlier one is that whose first file was written first. Raises `OSError`.
    """
    if not events:
        return frozenset()
    first = events[0].path
    own = (first.stat().st_mtime_ns, first)
    taken: set[int] = set()
    for other in state.parent.parent.glob(f"*/events/{first.name}"):
        if (other.stat().st_mtime_ns, other) < own:
            taken |= {hash(event.event_id) for event in events_of(other.parents[1] / STATE)}
    return frozenset(taken)
