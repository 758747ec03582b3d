"""Find Codex's threads by the heads and tails of their files; one that has not changed is not opened (spec §5.1)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from stillroom.config import READING, Reading, StageOne
from stillroom.errors import RolloutError
from stillroom.pattern import late
from stillroom.rollouts.agents.codex.forks import Fork, keys_of, origin_of
from stillroom.rollouts.agents.codex.source import source_text
from stillroom.rollouts.agents.codex.state import State, state_threads
from stillroom.rollouts.agents.codex.state import refreshed as refreshed_by
from stillroom.rollouts.agents.codex.tail import Tail, read_tail
from stillroom.rollouts.batches import read_batches
from stillroom.rollouts.found import Broken, Discovery, Found, Unchanged
from stillroom.rollouts.lines import open_stored
from stillroom.rollouts.meta import SessionMeta
from stillroom.rollouts.records import Records
from stillroom.rollouts.speech import first_words, preview_text
from stillroom.rollouts.stats import ReadStats
from stillroom.rollouts.stream import ItemStream, open_stream
from stillroom.rollouts.stream import open_items as open_rollout
from stillroom.rollouts.timestamps import parse_timestamp
from stillroom.thread import FileStamp, Thread

__all__ = ["AGENT", "COPIES", "discover", "open_items", "refreshed"]

AGENT = "codex"
COPIES = True
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NAME = late(rf"rollout-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-({_UUID})(?:_{_UUID})?\.jsonl(\.zst)?", re.IGNORECASE)
_ID = late(r"[\w.:-]{1,128}", re.ASCII)
# sessions/YYYY/MM/DD
_DEPTH = 3
# The role of a message stands ahead of its content.
_ROLE_WITHIN_BYTES = 400


class _File(NamedTuple):
    mtime_ns: int
    size: int
    #: Logical: without `.zst`.
    path: Path
    compressed: bool
    archived: bool


def discover(
    home: Path,
    known: Mapping[str, FileStamp],
    *,
    agent: str = AGENT,
    state: State | None = None,
    max_line_bytes: int = StageOne().max_line_bytes,
    reading: Reading = READING,
) -> Iterator[Discovery]:
    """Look at every rollout under `home`, oldest first; `known` are the stamps by rollout path. `agent` keeps them.

    Of a thread with several files (it was reverted, or archived while we look) only the newest counts. A state
    database that can't be read is reported as `Broken`, and the rollouts are taken as they are.
    """
    home = home.absolute()
    state = state or state_threads(home)
    if state.problem is not None:
        yield Broken(str(state.path), state.problem)
    files, unusable = _files(home)
    yield from unusable
    for file in sorted(files):
        path = str(file.path)
        stamp = known.get(path)
        if stamp is not None and (stamp.size, stamp.mtime_ns) == (file.size, file.mtime_ns):
            yield Unchanged(path)
            continue
        try:
            yield _look(file, stamp, agent, state, max_line_bytes, reading)
        except RolloutError as error:
            yield Broken(path, str(error))
        except OSError as error:
            yield Broken(path, f"`{path}` can't be read: {error.strerror}")


def open_items(
    path: Path, *, max_line_bytes: int, stop_after_bytes: int | None = None, reading: Reading = READING
) -> ItemStream[Records]:
    """Open a rollout. Raises `RolloutError` if it can't be opened, or is no file.

    What a fork copied is left out if the rollout that it was made from is still there; with `stop_after_bytes` that is
    not looked for, and the iteration ends after the line that passes that mark.
    """
    if stop_after_bytes is not None:
        return open_rollout(path, max_line_bytes=max_line_bytes, stop_after_bytes=stop_after_bytes, reading=reading)

    def copied_from(thread_id: str) -> list[int]:
        origin = origin_of(path, thread_id)
        return [] if origin is None else keys_of(origin, max_line_bytes=max_line_bytes, reading=reading)

    fork = Fork(ReadStats(), copied_from=copied_from)
    return open_stream(path, fork, max_line_bytes=max_line_bytes, reading=reading)


def refreshed(home: Path, stored: Iterable[Thread]) -> Iterator[Thread]:
    """Codex may change its table of threads (mode, title, archived) without touching a rollout."""
    return refreshed_by(state_threads(home.absolute()), stored)


def _files(home: Path) -> tuple[list[_File], list[Broken]]:
    """The rollouts, one a thread, and what is named like one but can't be looked at."""
    newest: dict[str, _File] = {}
    broken: list[Broken] = []
    if home.is_file():
        status = home.stat()
        compressed = home.suffix == ".zst"
        path = home.with_suffix("") if compressed else home
        return [_File(status.st_mtime_ns, status.st_size, path, compressed, archived=False)], []
    for folder, depth, archived in ((home / "sessions", _DEPTH, False), (home / "archived_sessions", 0, True)):
        for entry, match in _entries(str(folder), depth):
            path = Path(entry.path.removesuffix(".zst"))
            try:
                if not entry.is_file():
                    continue
                status = entry.stat()
            except FileNotFoundError:  # gone since it was listed
                continue
            except OSError as error:  # e.g. a link that leads to itself
                broken.append(Broken(str(path), f"`{path}` can't be looked at: {error.strerror}"))
                continue
            compressed = match[2] is not None
            file = _File(status.st_mtime_ns, status.st_size, path, compressed, archived)
            before = newest.get(match[1])
            # The plain form of the same rollout wins whatever its time: the archive is made from it.
            if before is not None and before.path == path:
                newest[match[1]] = before if compressed else file
            elif before is None or file > before:
                newest[match[1]] = file
    return list(newest.values()), broken


def _entries(folder: str, depth: int) -> Iterator[tuple[os.DirEntry[str], re.Match[str]]]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        match = _NAME.fullmatch(entry.name)
        if match is not None:
            yield entry, match
        elif depth and entry.name.isdigit():
            # What is no folder, or can't be listed, has no entries.
            yield from _entries(entry.path, depth - 1)


def _look(
    file: _File, stamp: FileStamp | None, agent: str, state: State, max_line_bytes: int, reading: Reading
) -> Discovery:
    path = str(file.path)
    stream, preview = _read_head(file.path, reading.head_bytes, max_line_bytes, reading)
    records, stats = stream.decoder, stream.stats
    meta = records.meta
    if meta is None:
        torn = "its first line is not complete" if stats.torn and stats.lines == 1 else "it has no `session_meta` line"
        return Broken(path, f"`{path}` can't be used: {stats.broken or torn}")
    if _ID.fullmatch(meta.id) is None:
        return Broken(path, f"`{path}` can't be used: {meta.id[:80]!r} is no thread id")
    if not preview and stats.bytes > reading.head_bytes and not state.has_preview(meta.id):
        preview = _late_words(file.path, max_line_bytes, reading)
    tail = read_tail(
        file.path, thread_id=meta.id, size=file.size, stamp=stamp, max_line_bytes=max_line_bytes, reading=reading
    )
    git = tail.git or records.git
    created = parse_timestamp(meta.timestamp.encode()) or records.first_ms or file.mtime_ns // 1_000_000
    thread = Thread(
        thread_id=meta.id,
        agent=agent,
        rollout_path=path,
        source=source_text(meta.source, thread_source=meta.thread_source, is_agent=meta.is_agent),
        cwd=meta.cwd or stats.last_cwd or "",
        created_at_ms=created,
        updated_at_ms=max(tail.last_ms or file.mtime_ns // 1_000_000, created),
        preview=preview
        or ("" if agent == AGENT else preview_text(meta.preview or "", max_chars=reading.preview_chars)),
        memory_mode=tail.memory_mode or stats.memory_mode or "enabled",
        archived=file.archived,
        parent_thread_id=meta.parent_thread_id,
        git_branch=git.branch if git is not None else None,
        git_sha=git.commit_hash if git is not None else None,
        git_origin_url=git.repository_url if git is not None else None,
        cli_version=meta.cli_version if agent == AGENT else _program(meta),
        model_provider=meta.model_provider,
    )
    return Found(state.applied(thread, reading=reading), _stamp(file, tail))


def _program(meta: SessionMeta) -> str | None:
    """Whose version it is, where that is not the client's whose format it is."""
    return " ".join(filter(None, (meta.originator, meta.cli_version))) or None


def _read_head(path: Path, head_bytes: int, max_line_bytes: int, reading: Reading) -> tuple[ItemStream[Records], str]:
    """What is known after so many bytes, or with the first words of the user, which come with it."""
    with open_rollout(path, max_line_bytes=max_line_bytes, stop_after_bytes=head_bytes, reading=reading) as stream:
        words = (first_words(item, max_chars=reading.preview_chars) for item in stream)
        return stream, next(filter(None, words), "")


def _late_words(path: Path, max_line_bytes: int, reading: Reading) -> str:
    """The first words of the user in a long head; no other line is decoded, as there may be millions."""
    stats = ReadStats()
    records = Records(stats)
    with open_stored(path, reading=reading) as file:
        for lines in read_batches(
            file,
            stats,
            max_line_bytes=max_line_bytes,
            stop_after_bytes=reading.long_head_bytes,
            wanted=_may_be_user,
            reading=reading,
        ):
            for item in records.items([line for line in lines if _may_be_user(line)], 0):
                if words := first_words(item, max_chars=reading.preview_chars):
                    return words
    return ""


def _may_be_user(line: bytes) -> bool:
    return line.find(b'"user"', 0, _ROLE_WITHIN_BYTES) >= 0


def _stamp(file: _File, tail: Tail) -> FileStamp:
    return FileStamp(size=file.size, mtime_ns=file.mtime_ns, offset=0 if file.compressed else tail.offset)
