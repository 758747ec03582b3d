"""Continue's files: a document a session, and the index that tells when each began."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.decoder import UNREADABLE, text_of
from stillroom.rollouts.agents.documents import elements, fields
from stillroom.rollouts.lines import open_stored

INDEX = "sessions.json"
HISTORY = ("history",)
_MAX_FIELD_BYTES = 64 * 1024
_MAX_ENTRY_BYTES = 64 * 1024
# Of a session of which only the first element is looked at.
_GLANCE = Reading(chunk_bytes=64 * 1024, batch_bytes=64 * 1024)


class Session(msgspec.Struct, rename="camel"):
    """What a session tells of itself."""

    session_id: Any = None
    title: Any = None
    workspace_directory: Any = None

    @property
    def is_of_editor(self) -> bool:
        """An editor names a folder as it names files."""
        return "://" in text_of(self.workspace_directory)[:32]

    @property
    def cwd(self) -> str:
        given = text_of(self.workspace_directory)
        return unquote(urlsplit(given).path) if given.startswith("file://") else given


class _Entry(msgspec.Struct, rename="camel"):
    session_id: Any = None
    date_created: Any = None


_entry = msgspec.json.Decoder(_Entry)


def read_session(path: Path, *, reading: Reading = READING) -> Session:
    """Raises `OSError` or `RolloutError`."""
    with open_stored(path, reading=reading) as file:
        found = fields(file, Session.__struct_encode_fields__, max_bytes=_MAX_FIELD_BYTES, reading=reading)
    try:
        return msgspec.json.decode(msgspec.json.encode(found), type=Session)
    except UNREADABLE:
        return Session()


def read_index(folder: Path) -> dict[str, int]:
    """When each session of a folder began, in milliseconds; empty if the index can't be read."""
    began: dict[str, int] = {}
    try:
        with open_stored(folder / INDEX) as file:
            for line in elements(file, (), max_line_bytes=_MAX_ENTRY_BYTES):
                try:
                    entry = _entry.decode(line)
                    began[text_of(entry.session_id)] = int(str(entry.date_created))
                except (*UNREADABLE, ValueError):
                    continue
    except (OSError, RolloutError):
        pass
    return began


def inherited(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The hashes of the elements that a session begins with and one that began earlier does too: a fork copies them.

    Two sessions may begin with the same prompt. Only one with the same answer is a copy. Raises `OSError` or
    `RolloutError`.
    """
    first = next(_hashes(path, max_line_bytes, _GLANCE), None)
    if first is None:
        return frozenset()
    began = read_index(path.parent)
    taken: list[int] = []
    latest = max(began.values(), default=0) + 1

    def order(file: Path) -> tuple[int, str]:
        """Of two that the index does not tell apart the one that comes first by its name keeps what both hold."""
        return began.get(file.stem, latest), file.name

    others = (other for other in path.parent.glob("*.json") if order(other) < order(path))
    copies = (other for other in others if _first(other, max_line_bytes) == first)
    for other in islice(copies, reading.copies_looked_at):
        both = zip(_hashes(path, max_line_bytes, reading), _hashes(other, max_line_bytes, reading), strict=False)
        common = [own for own, _ in takewhile(lambda pair: pair[0] == pair[1], both)]
        taken = max(taken, common, key=len)
    return frozenset(taken) if len(taken) > 1 else frozenset()


def _first(path: Path, max_line_bytes: int) -> int | None:
    try:
        return next(_hashes(path, max_line_bytes, _GLANCE), None)
    except (OSError, RolloutError):
        return None


def _hashes(path: Path, max_line_bytes: int, reading: Reading) -> Iterator[int]:
    with open_stored(path, reading=reading) as file:
        for line in elements(file, HISTORY, max_line_bytes=max_line_bytes, reading=reading):
            yield hash(line.strip())
