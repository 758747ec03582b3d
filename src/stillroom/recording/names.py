"""Where a thread's rollout lies, and under which name (spec §5.1)."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from stillroom.clock import Clock
from stillroom.errors import RecordingError

SESSIONS = "sessions"
# sessions/YYYY/MM/DD
_DEPTH = 3
# A UUID and `.jsonl`.
_END_CHARS = 36 + 6
_ID = re.compile(r"[\w.:-]{1,128}", re.ASCII)
# File names hold a UUID; threads of other agents have ids of other forms, and each always becomes the same UUID.
_NAMESPACE = uuid.UUID("6f0c2a4e-8d0b-4f0e-9a63-0e1f5b7c9d11")


def new_thread_id(clock: Clock) -> str:
    """A UUID of version 7, as Codex's: ids of later threads sort behind."""
    random = int.from_bytes(os.urandom(10), "big")
    value = (clock.now_ms() << 80) | random
    value = value & ~(0xF << 76) | (0x7 << 76)
    value = value & ~(0x3 << 62) | (0x2 << 62)
    return str(uuid.UUID(int=value))


def check_thread_id(thread_id: str) -> str:
    """The id itself. Raises `RecordingError` for one that no reader takes."""
    if _ID.fullmatch(thread_id) is None:
        raise RecordingError(
            f"{thread_id[:80]!r} is no thread id", hint="up to 128 letters, digits, and any of `_`, `.`, `:`, `-`"
        )
    return thread_id


def rollout_path(home: Path, thread_id: str, *, created_at_ms: int) -> Path:
    """Where a new rollout goes; the day and the time are local, as in Codex's."""
    created = datetime.fromtimestamp(created_at_ms / 1000).astimezone()
    name = f"rollout-{created:%Y-%m-%dT%H-%M-%S}-{file_id(thread_id)}.jsonl"
    return home / SESSIONS / f"{created:%Y}" / f"{created:%m}" / f"{created:%d}" / name


def find_rollouts(home: Path) -> dict[str, Path]:
    """The rollouts that there are by `file_id`; the newest where a crash at the wrong moment left two."""
    return {name[-_END_CHARS:-6]: Path(path) for path, name in sorted(_rollouts(str(home / SESSIONS), _DEPTH))}


def private_folders(folder: Path) -> None:
    """Make the folder, and those above it that are missing, for their owner only. Raises `OSError`."""
    if not folder.is_dir():
        private_folders(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def file_id(thread_id: str) -> str:
    """The UUID in the name of the thread's rollout: its id, or what always stands for it."""
    try:
        if str(uuid.UUID(thread_id)) == thread_id:
            return thread_id
    except ValueError:
        pass
    return str(uuid.uuid5(_NAMESPACE, thread_id))


def _rollouts(folder: str, depth: int) -> Iterator[tuple[str, str]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if depth:
            if entry.name.isdigit():
                yield from _rollouts(entry.path, depth - 1)
        elif entry.name.startswith("rollout-") and entry.is_file(follow_symlinks=False):
            yield entry.path, entry.name
