"""Find Aider's threads: a file may hold many, one behind the other.

Aider keeps its history in the repository that it works in, and has no list of those. So it is read where it is named:
a file, or a folder with one in it or in one of the folders right below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from stat import S_ISREG

from stillroom.config import READING, Reading
from stillroom.errors import RolloutError
from stillroom.rollouts.agents.aider.blocks import lines
from stillroom.rollouts.agents.aider.chats import Chat, Section, find, parse_path, sections, stands
from stillroom.rollouts.agents.aider.inputs import Inputs, inputs_since
from stillroom.rollouts.agents.aider.records import Records
from stillroom.rollouts.agents.chunks import stream_chunks
from stillroom.rollouts.agents.ends import preview_of
from stillroom.rollouts.agents.scan import File
from stillroom.rollouts.agents.scan import refreshed as refreshed
from stillroom.rollouts.found import Broken, Discovery, Found, Unchanged
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream
from stillroom.rollouts.timestamps import parse_local_time
from stillroom.thread import FileStamp, Thread

AGENT = "aider"
COPIES = False
_NAME = ".aider.chat.history.md"


def discover(
    root: Path, known: Mapping[str, FileStamp], *, max_line_bytes: int, reading: Reading = READING
) -> Iterator[Discovery]:
    """Look at every chat of the history that `root` is, or of those in it."""
    root = root.absolute()
    before: dict[Path, list[Chat]] = {}
    for parsed in filter(None, map(parse_path, known)):
        before.setdefault(parsed[0], []).append(parsed[1])
    for path in _files(root):
        chats = sorted(before.get(path, ()))
        try:
            yield from _history(path, chats, known, max_line_bytes, reading)
        except (OSError, RolloutError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            yield Broken(str(path), f"`{path}` can't be read: {reason}")
            yield from (Unchanged(chat.path(path)) for chat in chats)


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a chat. Raises `RolloutError` if it can't be opened, or is no more in its file."""
    parsed = parse_path(str(path))
    if parsed is None:
        raise RolloutError(f"`{path}` names no chat")
    history, chat = parsed
    try:
        file = open_stored(history, reading=reading)
    except OSError as error:
        raise RolloutError(f"`{path}` can't be opened: {error.strerror}") from error
    try:
        found = find(file, chat)
    except OSError as error:
        file.close()
        raise RolloutError(f"`{path}` can't be read: {error.strerror}") from error
    if not found:
        file.close()
        raise RolloutError(f"`{path}` can't be opened: the chat is gone")
    started = parse_local_time(chat.started)
    inputs = inputs_since(history, started or 0)
    return stream_chunks(
        lines(file),
        path,
        Records(ReadStats(), started_ms=started, cwd=_cwd(history), inputs=inputs, reading=reading),
        max_line_bytes=max_line_bytes,
        stop_after_bytes=stop_after_bytes,
        reading=reading,
    )


def _files(root: Path) -> list[Path]:
    """A folder is never searched for more than this: it may be a whole disk."""
    return sorted([*root.glob(_NAME), *root.glob(f"*/{_NAME}")]) if root.is_dir() else [root]


def _history(
    path: Path, chats: list[Chat], known: Mapping[str, FileStamp], max_line_bytes: int, reading: Reading
) -> Iterator[Discovery]:
    """The chats of a file. What was known of it is not read again, but for the last chat, which may have grown."""
    try:
        status = path.stat()
    except OSError:  # gone since it was listed, or not there yet
        return
    if not S_ISREG(status.st_mode):
        return
    file = File(status.st_mtime_ns, status.st_size, path)
    last = known[chats[-1].path(path)] if chats else None
    if last is not None and (last.offset + last.size, last.mtime_ns) == (file.size, file.mtime_ns):
        yield from (Unchanged(chat.path(path)) for chat in chats)
        return
    found = 0
    with open_stored(path, reading=reading) as stored:
        first = chats[-1] if last is not None and last.offset + last.size <= file.size else None
        if first is not None and stands(stored, first):
            yield from (Unchanged(chat.path(path)) for chat in chats[:-1])
        else:
            first = None
            stored.seek(0)
        for section in sections(stored, first):
            found += 1
            yield _look(file, section, known, max_line_bytes, reading)
    if not found and file.size:
        raise RolloutError("it holds no chat")


def _look(
    file: File, section: Section, known: Mapping[str, FileStamp], max_line_bytes: int, reading: Reading
) -> Discovery:
    chat = section.chat
    rollout = chat.path(file.path)
    stamp = known.get(rollout)
    if stamp is not None and stamp.size == section.size:
        return Unchanged(rollout)
    with open_items(
        Path(rollout), max_line_bytes=max_line_bytes, stop_after_bytes=reading.long_head_bytes, reading=reading
    ) as items:
        preview = preview_of(items, reading=reading)
        records = items.decoder
    modified = file.mtime_ns // 1_000_000
    created = parse_local_time(chat.started) or modified
    thread = Thread(
        thread_id=chat.thread_id(file.path),
        agent=AGENT,
        rollout_path=rollout,
        source="exec" if records.scripted else "cli",
        cwd=_cwd(file.path),
        created_at_ms=created,
        updated_at_ms=max(_ended_ms(section, stamp, records.inputs) or modified, created),
        preview=preview,
        cli_version=records.version,
    )
    return Found(thread, FileStamp(size=section.size, mtime_ns=file.mtime_ns, offset=chat.offset))


def _ended_ms(section: Section, stamp: FileStamp | None, inputs: Inputs) -> int | None:
    """The time of the last prompt, or of the beginning; None: of the last chat the file tells it.

    A chat that went on since the last look did so before the next one began.
    """
    if section.next_started is None:
        return None
    following = parse_local_time(section.next_started)
    if stamp is not None or following is None:
        return following
    return inputs.last_before(following) or parse_local_time(section.chat.started)


def _cwd(path: Path) -> str:
    """By default the history lies at the root of its repository; elsewhere it tells of no folder."""
    return str(path.parent) if path.name == _NAME else ""
