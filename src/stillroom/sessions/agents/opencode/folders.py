"""OpenCode's folders of JSON files, up to 1.1: one a session, one a message, one a part."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import msgspec

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.sessions.agents.opencode.records import Session, Stored, message_of
from stillroom.sessions.item import UNREADABLE
from stillroom.sessions.jsonl import open_stored
from stillroom.sessions.stream import enclosed
from stillroom.thread import FileStamp

SUFFIX = ".json"
# Of files that are held whole: sessions, and messages without their parts.
_MAX_BYTES = 4 * 1024 * 1024
_session = msgspec.json.Decoder(Session)
_stored = msgspec.json.Decoder(Stored)


def session_files(root: Path) -> Iterator[Path]:
    """The files of all sessions under the client's folder; `root` may be one of them."""
    if root.is_file():
        yield from [root] if root.suffix == SUFFIX else []
    yield from sorted((root / "storage" / "session").glob("*/ses_*.json"))


def read_session(path: Path) -> Session:
    """Raises `OSError` or `RolloutError`."""
    try:
        return _session.decode(_read(path))
    except UNREADABLE as error:
        raise RolloutError(f"`{path}` can't be used: it holds no session") from error


def stamp_of(path: Path) -> FileStamp:
    """How a session looks now. The file itself changes with every prompt, the last message as long as it grows."""
    messages = _files(_store(path) / "message" / path.stem)
    parts = _files(_parts(path, messages[-1].stem)) if messages else []
    newest = [path, *messages[-1:], *parts]
    return FileStamp(size=-len(messages), mtime_ns=max(file.stat().st_mtime_ns for file in newest))


def lines(path: Path, session: Session, *, reading: Reading = READING) -> Generator[bytes, None, None]:
    """The lines of the session whose file is `path`, in pieces. Raises `OSError`."""
    origin = _has_origin(path, session)
    for file in _files(_store(path) / "message" / path.stem):
        try:
            stored = _stored.decode(_read(file))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, RolloutError, FileNotFoundError):
            stored = Stored()  # whoever spoke: its parts are counted, and nothing is made of them
        message = message_of(stored, session, message_id=file.stem, origin=origin)
        for part in _files(_parts(path, file.stem)):
            yield from enclosed("part", _pieces(part, reading), message)


def _has_origin(path: Path, session: Session) -> bool:
    """Whether a fork's first message still stands in another session of the project."""
    first = _first_ms(path)
    if first is None or first >= session.created_ms:
        return False
    return any(_first_ms(other) == first for other in path.parent.glob("ses_*.json") if other != path)


def _first_ms(path: Path) -> int | None:
    for file in _files(_store(path) / "message" / path.stem)[:1]:
        try:
            created: object = _stored.decode(_read(file)).time.created
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OSError, RolloutError):
            return None
        return created if isinstance(created, int) else None
    return None


def _store(path: Path) -> Path:
    """The folder of all sessions, messages and parts; of a file that was taken out of it, one that holds none."""
    return path.parents[2] if len(path.parents) > 2 else path / "nowhere"


def _parts(path: Path, message_id: str) -> Path:
    return _store(path) / "part" / message_id


def _files(folder: Path) -> list[Path]:
    """Ids are ordered by time. What is no folder has no files."""
    return sorted(folder.glob("*.json"))


def _read(path: Path) -> bytes:
    with open_stored(path) as file:
        return file.read(_MAX_BYTES)


def _pieces(path: Path, reading: Reading) -> Iterator[bytes]:
    with open_stored(path, reading=reading) as file:
        while piece := file.read(reading.chunk_bytes):
            yield piece
