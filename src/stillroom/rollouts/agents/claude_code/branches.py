"""What a Claude Code session took over from others, and what its user took back; both show only in whole files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.claude_code.items import spoken
from stillroom.rollouts.agents.claude_code.record import Record, parse_record
from stillroom.rollouts.agents.claude_code.speech import is_typed
from stillroom.rollouts.batches import read_batches
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.stats import ReadStats

_USER = b'"user"'
_RESULT = b'"tool_result"'
_ROOT = b'"parentUuid":null'
_CHILD = b'{"parentUuid":"'
# All stand ahead of what a message says, and behind a few fields of which one is a path.
_WITHIN_BYTES = 8192
_UUID = re.compile(rb'"uuid": ?"([\w-]{1,80})"')
_REQUESTED_BY = re.compile(rb'"requestSessionId": ?"([\w-]{1,80})"')
_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl")
# The first message of a session, and the session that it was forked from, stand in the first bytes.
_HEAD_BYTES = 256 * 1024


def superseded(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The prompts that the user went back behind, as hashes of their ids.

    Whoever goes back writes a second prompt under the same parent, or under none if it is the first one that is taken
    back; what was said from the first one on is left behind.
    """
    seen: set[int] = set()
    branch: list[int] = []
    under: dict[str, int] = {}
    left: set[int] = set()
    for line in _where_a_branch_may_begin(path, max_line_bytes, reading):
        if (record := parse_record(line)) is None:
            continue
        parent = record.parent_uuid or f"none in {record.session_id}"
        if not _is_prompt(record):
            # A compaction begins a new tree: what comes under none from here on takes back nothing of the old one.
            if record.parent_uuid is None and not record.is_sidechain:
                under[parent] = len(branch)
            continue
        if hash(record.uuid) in seen:
            continue
        if len(seen) == reading.remembered_records:
            break
        # Where the branch went on from this parent before; past its end if that was left already.
        before = under.get(parent, len(branch))
        left.update(branch[before:])
        del branch[before:]
        under[parent] = len(branch)
        branch.append(hash(record.uuid))
        seen.add(hash(record.uuid))
    return frozenset(left)


def inherited(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The records that an earlier session holds too, as hashes of their ids.

    A fork names the session that it came from in the answers that it copied. Older clients copy the whole session when
    it is resumed, and say nothing: all of the earlier file then stands in the later one.
    """
    origin = _origin(path)
    if origin is not None:
        return _uuids(origin, max_line_bytes, reading)
    family = _family(path, reading)
    if not family:
        return frozenset()
    own = _uuids(path, max_line_bytes, reading)
    taken: set[int] = set()
    for other in family:
        try:
            theirs = _uuids(other, max_line_bytes, reading)
        except (OSError, RolloutError):  # gone, or nobody's to read
            continue
        # Of two equal files the one that comes first by its name keeps what both hold.
        if theirs < own or (theirs == own and other.name < path.name):
            taken |= theirs
    return frozenset(taken)


def _is_prompt(record: Record) -> bool:
    if record.type != "user" or record.message is None or record.is_sidechain or not is_typed(record):
        return False
    if not isinstance(record.uuid, str) or not isinstance(record.parent_uuid, str | None):
        return False
    return any(words.who == "user" for words in spoken(record.message.content))


def _where_a_branch_may_begin(path: Path, max_line_bytes: int, reading: Reading) -> Iterator[bytes]:
    """The lines with prompts and roots, and a few others."""
    for lines in _batches(path, max_line_bytes, reading):
        # Of every line of the file: a loop that calls nothing else.
        yield from [
            line
            for line in lines
            if (line.find(_USER, 0, _WITHIN_BYTES) >= 0 and line.find(_RESULT, 0, _WITHIN_BYTES) < 0)
            or (not line.startswith(_CHILD) and line.find(_ROOT, 0, _WITHIN_BYTES) >= 0)
        ]


def _batches(path: Path, max_line_bytes: int, reading: Reading) -> Iterator[list[bytes]]:
    with open_stored(path, reading=reading) as file:
        yield from read_batches(file, ReadStats(), max_line_bytes=max_line_bytes, reading=reading)


def _uuids(path: Path, max_line_bytes: int, reading: Reading) -> frozenset[int]:
    """The ids in a file, as far as they are remembered; a few stand in what tools said."""
    batches = _batches(path, max_line_bytes, reading)
    found = (hash(uuid.decode()) for lines in batches for line in lines for uuid in _UUID.findall(line))
    return frozenset(islice(found, reading.remembered_records))


def _family(path: Path, reading: Reading) -> list[Path]:
    """Other sessions of the folder that begin with the same prompt: first those that are a little smaller."""
    first = _first_prompt(path)
    if not first:
        return []
    try:
        names = _by_first_prompt(path.parent, path.parent.stat().st_mtime_ns).get(first, ())
    except OSError:
        return []
    at = names.index(path.name) if path.name in names else -1
    near = [*names[at + 1 :], *reversed(names[: max(at, 0)])]
    return [path.with_name(name) for name in near[: reading.copies_looked_at]]


# A backfill asks it for every session of a folder, and goes from folder to folder.
@lru_cache(maxsize=1000)
def _by_first_prompt(folder: Path, mtime_ns: int) -> dict[str, list[str]]:
    """The names of a folder's sessions, the largest first, by the id of the prompt that they begin with.

    `mtime_ns` is the folder's: a copy is a new name in it, and its origin has begun before.
    """
    del mtime_ns
    with os.scandir(folder) as entries:
        sizes = {entry.name: _size(entry) for entry in entries if _SESSION.fullmatch(entry.name)}
    found: dict[str, list[str]] = {}
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        if first := _first_prompt(folder / name):
            found.setdefault(first, []).append(name)
    return {first: names for first, names in found.items() if len(names) > 1}


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat().st_size
    except OSError:
        return 0


def _origin(path: Path) -> Path | None:
    match = _REQUESTED_BY.search(_head(path))
    if match is None or match[1].decode() == path.stem:
        return None
    origin = path.with_name(match[1].decode() + ".jsonl")
    return origin if _SESSION.fullmatch(origin.name) and origin.is_file() else None


def _first_prompt(path: Path) -> str:
    """The id of the first user record; "" where there is none in the first bytes."""
    try:
        with open_stored(path) as file:
            while file.tell() < _HEAD_BYTES and (line := file.readline(_HEAD_BYTES)):
                if _USER in line and (record := parse_record(line)) is not None and record.type == "user":
                    return record.uuid if isinstance(record.uuid, str) else ""
    except (OSError, RolloutError):
        pass
    return ""


def _head(path: Path) -> bytes:
    try:
        with open_stored(path) as file:
            return file.read(_HEAD_BYTES)
    except (OSError, RolloutError):
        return b""
