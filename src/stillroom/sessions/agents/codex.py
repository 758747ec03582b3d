"""Find Codex's threads by the heads and tails of their files; one that has not changed is not opened (spec §5.1)."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from stillroom.config import READING, Reading, StageOne
from stillroom.errors import RolloutError
from stillroom.pattern import late
from stillroom.sessions.dedup import told_by
from stillroom.sessions.discovery import Broken, Discovery, Found, Unchanged
from stillroom.sessions.item import MESSAGES, Item
from stillroom.sessions.jsonl import open_stored, read_batches, stored_path
from stillroom.sessions.meta import Git, SessionMeta, parse_meta, recorded_mode
from stillroom.sessions.records import Records
from stillroom.sessions.speech import first_words, preview_text
from stillroom.sessions.stats import ReadStats
from stillroom.sessions.stream import ItemStream, open_stream
from stillroom.sessions.stream import open_items as open_rollout
from stillroom.sessions.timestamps import parse_timestamp
from stillroom.thread import FileStamp, MemoryMode, Thread

# --- How a session was started, as one text that an allow-list can be held against.


def source_text(source: object, *, thread_source: str | None = None, is_agent: bool = False) -> str:
    """`cli`, `vscode`, `exec`, … as they are; anything structured as its JSON text (spec §5.3).

    Sub-agents and Codex's memory worker are told by their JSON, also when only `thread_source` gives them away.
    """
    if source is None:
        source = "vscode"  # Codex's own default
    text = source if isinstance(source, str) else msgspec.json.encode(source).decode()
    if text.startswith("{"):
        return text
    if thread_source == "memory_consolidation":
        return '{"internal":"memory_consolidation"}'
    if is_agent or (thread_source or "").startswith("subagent"):
        return '{"subagent":"other"}'
    return text


# --- Codex's own table of threads, read only: it knows what a rollout does not say, or says later.

_STATE_NAME = late(r"state_(\d{1,6})\.sqlite")
_WANTED = (
    "id",
    "source",
    "thread_source",
    "cwd",
    "title",
    "preview",
    "first_user_message",
    "memory_mode",
    "archived",
    "git_branch",
    "git_sha",
    "git_origin_url",
    "created_at",
    "created_at_ms",
    "updated_at",
    "updated_at_ms",
)
# Longer texts are only shown as titles and previews.
_TEXT_CHARS = 4000
# A client that writes holds the lock for milliseconds.
_TIMEOUT_SECONDS = 2.0


class State(msgspec.Struct, frozen=True):
    """Rows by thread id. `problem` tells why there are none although there is a database."""

    path: str | None
    rows: dict[str, dict[str, str | int]]
    problem: str | None = None

    def has_preview(self, thread_id: str) -> bool:
        """Whether the table knows the thread's first words."""
        return _preview(self.rows.get(thread_id, {})) is not None

    def applied(self, thread: Thread, *, reading: Reading = READING) -> Thread:
        """`thread` with what the table knows better; itself if the table does not know it."""
        row = self.rows.get(thread.thread_id)
        if row is None:
            return thread
        changes: dict[str, object] = {}
        if source := _text(row, "source"):
            changes["source"] = source_text(source, thread_source=_text(row, "thread_source"))
        if (mode := recorded_mode(row.get("memory_mode"))) is not None:
            changes["memory_mode"] = mode
        if (preview := _preview(row)) and preview != thread.preview:
            changes["preview"] = preview_text(preview, max_chars=reading.preview_chars)
        if (title := _text(row, "title")) and title != thread.title:
            changes["title"] = preview_text(title, max_chars=reading.preview_chars)
        for name in ("git_branch", "git_sha", "git_origin_url"):
            if value := _text(row, name):
                changes[name] = value
        if updated := _milliseconds(row, "updated_at"):
            changes["updated_at_ms"] = updated
        if "archived" in row:
            changes["archived"] = bool(row["archived"])
        if all(getattr(thread, name) == value for name, value in changes.items()):
            return thread
        return msgspec.structs.replace(thread, **changes)


def state_threads(home: Path) -> State:
    """Read the newest `state_N.sqlite` under `home`; a database that can't be read is a `problem`, never an error."""
    path = _newest(home)
    if path is None:
        return State(None, {})
    log = path.with_name(path.name + "-wal")
    if not log.exists():
        # Nobody has it open. An ordinary reader would leave `-wal` and `-shm` files in a folder that is not ours.
        try:
            rows = _rows(path, "immutable=1")
        except (sqlite3.Error, OSError):
            pass  # somebody has begun to write, or it is damaged: the ordinary reader says
        else:
            if not log.exists():
                return State(str(path), rows)
    try:
        return State(str(path), _rows(path, "mode=ro"))
    except (sqlite3.Error, OSError) as error:
        return State(str(path), {}, f"{error}")


def described_otherwise(state: State, stored: Iterable[Thread]) -> Iterator[Thread]:
    """Those of the `stored` threads that the table now describes otherwise, although their rollouts are unchanged."""
    for thread in stored:
        if thread.thread_id not in state.rows:
            continue
        changed = state.applied(thread)
        if changed is not thread:
            yield changed


def _newest(home: Path) -> Path | None:
    try:
        # Opening a named pipe would block for ever.
        numbered = [
            (int(match[1]), path)
            for path in home.iterdir()
            if (match := _STATE_NAME.fullmatch(path.name)) is not None and path.is_file()
        ]
    except OSError:
        return None
    return max(numbered)[1] if numbered else None


def _rows(path: Path, mode: str) -> dict[str, dict[str, str | int]]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=_TIMEOUT_SECONDS)) as db:
        db.text_factory = lambda data: data.decode("utf-8", "replace")
        there = {row[1] for row in db.execute("PRAGMA table_info(threads)")}
        if "id" not in there:
            return {}
        names = [name for name in _WANTED if name in there]
        short = "CASE typeof({0}) WHEN 'text' THEN substr({0}, 1, {1}) ELSE {0} END"
        columns = ", ".join(short.format(name, _TEXT_CHARS) for name in names)
        rows = {}
        for values in db.execute(f"SELECT {columns} FROM threads"):
            row = {name: value for name, value in zip(names, values, strict=True) if isinstance(value, str | int)}
            if isinstance(row.get("id"), str):
                rows[str(row["id"])] = row
        return rows


def _text(row: dict[str, str | int], name: str) -> str | None:
    value = row.get(name)
    return value if isinstance(value, str) and value else None


def _preview(row: dict[str, str | int]) -> str | None:
    return _text(row, "preview") or _text(row, "first_user_message")


def _milliseconds(row: dict[str, str | int], name: str) -> int | None:
    """The column in milliseconds where there is one, else the one in seconds."""
    exact, seconds = row.get(f"{name}_ms"), row.get(name)
    if isinstance(exact, int) and exact > 0:
        return exact
    return seconds * 1000 if isinstance(seconds, int) and seconds > 0 else None


# --- The end of a rollout: when it was last written to, and what later `session_meta` lines changed.

_TIMESTAMP = b'{"timestamp":"'
_META = b'"session_meta"'
# The type of a line stands in its first bytes.
_START_BYTES = 200


class _Meta(msgspec.Struct):
    type: str
    payload: msgspec.Raw


class _Timed(msgspec.Struct):
    timestamp: str = ""


class Tail(msgspec.Struct):
    """What the end of the file says; None where it says nothing."""

    last_ms: int | None = None
    memory_mode: MemoryMode | None = None
    git: Git | None = None
    #: From here the file is read when it has grown: the end of its last whole line, or the last line that changed
    #: mode or branch, so that its news are never lost.
    offset: int = 0


def read_tail(
    path: Path,
    *,
    thread_id: str,
    size: int,
    stamp: FileStamp | None,
    max_line_bytes: int,
    reading: Reading = READING,
) -> Tail:
    """Read what was appended since `stamp`, or, of a new file, a window at its end. An archive is read whole.

    `session_meta` lines of another thread (a fork carries its parent's) change nothing.
    """
    tail = Tail()
    stats = ReadStats()
    news: int | None = None
    timed = b""
    with open_stored(path, reading=reading) as file:
        end = 0
        if stored_path(path).suffix != ".zst":
            end = _start(size, stamp, reading)
            if end and (stamp is None or end != stamp.offset):
                file.seek(end - 1)
                end += len(file.readline(reading.tail_window_bytes)) - 1
            else:
                file.seek(end)
            if (quick := _quick(file.read(reading.tail_window_bytes + 1), end, reading)) is not None:
                return quick
            file.seek(end)
        start = end
        for lines in read_batches(file, stats, max_line_bytes=max_line_bytes, wanted=_is_meta, reading=reading):
            begin = end
            if not stats.torn:
                end = start + stats.bytes
            if len(lines) > 1:
                begin = end - sum(map(len, lines))  # a mark at the start of the file is in none of them
            timed = _last_timed(lines) or timed or next((line for line in lines if line.strip()), b"")
            for at, meta in _metas(lines, begin):
                if at and meta.id == thread_id:
                    news = at
                    tail.memory_mode = meta.memory_mode or tail.memory_mode
                    tail.git = meta.git or tail.git
    tail.last_ms = _time(timed)
    tail.offset = end if news is None else news
    return tail


def _quick(window: bytes, start: int, reading: Reading) -> Tail | None:
    """The tail, where the rest of the file is one window in which no `session_meta` line stands, as in most."""
    last = window.rfind(b"\n" + _TIMESTAMP)
    if last < 0 or len(window) > reading.tail_window_bytes or _META in window:
        return None
    return Tail(last_ms=_time(window[last + 1 : last + _START_BYTES]), offset=start + window.rfind(b"\n") + 1)


def _start(size: int, stamp: FileStamp | None, reading: Reading) -> int:
    if stamp is not None and 0 < stamp.offset <= size:
        return stamp.offset
    return max(size - reading.tail_window_bytes, 0)


def _last_timed(lines: list[bytes]) -> bytes:
    return next((line[:_START_BYTES] for line in reversed(lines) if line.startswith(_TIMESTAMP)), b"")


def _metas(lines: list[bytes], begin: int) -> Iterator[tuple[int, SessionMeta]]:
    """The `session_meta` lines with their places in the file; the first line stands at `begin`."""
    # They are hardly ever there: one look for all lines is cheaper than one at each.
    for line in lines if _META in b"".join(lines) else ():
        if _is_meta(line) and (meta := _meta(line)) is not None:
            yield begin, meta
        begin += len(line)


def _is_meta(line: bytes) -> bool:
    return _META in line[:_START_BYTES]


def _meta(line: bytes) -> SessionMeta | None:
    try:
        record = msgspec.json.decode(line, type=_Meta)
        return parse_meta(bytes(record.payload)) if record.type == "session_meta" else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _time(line: bytes) -> int | None:
    if line.startswith(_TIMESTAMP):
        return parse_timestamp(line[len(_TIMESTAMP) :].partition(b'"')[0])
    try:
        return parse_timestamp(msgspec.json.decode(line, type=_Timed).timestamp.encode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


# --- What a fork took over: older clients copy the lines of the thread that it was made from to its beginning.

_PLACES = ("sessions/*/*/*", "archived_sessions")


class Fork(Records):
    """Leaves out the items with which a fork begins, as long as they are those of its origin, one after the other.

    `copied_from` is asked for the keys of these, if the first line says that the thread is a fork.
    """

    def __init__(self, stats: ReadStats, *, copied_from: Callable[[str], Sequence[int]]) -> None:
        super().__init__(stats)
        self._copied_from = copied_from
        self._copied: Sequence[int] | None = None  # until the first line is read
        self._at = 0

    def items(self, lines: list[bytes], line_no: int) -> Iterator[Item]:
        """The items of `lines`, of which the first has the number `line_no`."""
        if self._copied is None:
            yield from super().items(lines[:1], line_no)
            self._copied = self._of_origin()
            lines, line_no = lines[1:], line_no + 1
        for item in super().items(lines, line_no):
            if self._at < len(self._copied) and _key(item) == self._copied[self._at]:
                self._at += 1
                self.stats.kept -= 1
                self.stats.messages -= item.type in MESSAGES
                self.stats.drop("seen before")
            else:
                self._at = len(self._copied)
                yield item

    def joined(self, lines: list[bytes]) -> bytes:
        """The same items, but only their `raw`, with commas between."""
        if self._copied is not None and self._at == len(self._copied):
            return super().joined(lines)
        if self._copied is None and len(lines) > 1:  # most sessions are no fork, and are told by their first line
            return b",".join(filter(None, (self.joined(lines[:1]), self.joined(lines[1:]))))
        return b",".join([item.raw for item in self.items(lines, 0)])

    def _of_origin(self) -> Sequence[int]:
        return () if self.stats.copied_from is None else self._copied_from(self.stats.copied_from)


def origin_of(path: Path, copied_from: str) -> Path | None:
    """The rollout of the thread that the one at `path` was made from, if it is still there."""
    home = next((parent.parent for parent in path.parents if parent.name in ("sessions", "archived_sessions")), None)
    if home is None or not copied_from.replace("-", "").isalnum():
        return None
    found = (file for place in _PLACES for file in home.glob(f"{place}/rollout-*-{copied_from}.jsonl*"))
    return next((Path(str(file).removesuffix(".zst")) for file in found if not file.name.startswith(path.name)), None)


def keys_of(origin: Path, *, max_line_bytes: int, reading: Reading = READING) -> list[int]:
    """The keys of a rollout's items, in their order; none if it can't be read."""
    try:
        with open_rollout(origin, max_line_bytes=max_line_bytes, reading=reading) as items:
            return [_key(item) for item in islice(items, reading.remembered_records)]
    except RolloutError:
        return []


def _key(item: Item) -> int:
    return hash(told_by(item))


# --- Sessions

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
    return described_otherwise(state_threads(home.absolute()), stored)


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
