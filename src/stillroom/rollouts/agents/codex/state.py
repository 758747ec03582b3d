"""Codex's own table of threads, read only: it knows what a rollout does not say, or says later."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from stillroom.config import READING, Reading
from stillroom.pattern import late
from stillroom.rollouts.agents.codex.source import source_text
from stillroom.rollouts.meta import recorded_mode
from stillroom.rollouts.speech import preview_text
from stillroom.thread import Thread

_NAME = late(r"state_(\d{1,6})\.sqlite")
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


def refreshed(state: State, stored: Iterable[Thread]) -> Iterator[Thread]:
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
            if (match := _NAME.fullmatch(path.name)) is not None and path.is_file()
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
