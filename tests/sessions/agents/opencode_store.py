"""Stores as OpenCode writes them, for tests that need what no sample has."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from golden import DATA, LIMIT

from stillroom.sessions.agents.opencode.reader import discover, open_items
from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.stats import ReadStats
from stillroom.thread import FileStamp, Thread

DUMP = DATA / "opencode" / "1.18.33-sqlite" / "opencode.sql"
FOLDERS = DATA / "opencode" / "1.1.65-json"
ROW = {"project_id": "p", "slug": "s", "directory": "/w", "title": "t", "version": "1.18.33", "time_created": 1000}


def database(home: Path, *, empty: bool = False) -> Path:
    """The sample as the client leaves it; or only its tables."""
    path = home / "opencode.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript("PRAGMA journal_mode = WAL;" + DUMP.read_text(encoding="utf-8"))
        if empty:
            for table in ("session", "message", "part", "session_message"):
                db.execute(f"DELETE FROM {table}")
            db.commit()
    return path


def session(path: Path, number: int = 1, **fields: object) -> str:
    name = f"ses_{number}"
    put(path, "session", {"id": name, **ROW, "time_updated": 1000, **fields})
    return name


def message(path: Path, number: int, role: str, *parts: object, of: str = "ses_1", **fields: object) -> None:
    """A message with its parts; its id and its time follow from its number."""
    at = 2000 + number
    data = {"role": role, "time": {"created": at}, **fields}
    times = {"time_created": at, "time_updated": at}
    put(path, "message", {"id": f"msg_{number:04}", "session_id": of, **times, "data": json.dumps(data)})
    for index, part in enumerate(parts):
        text = part if isinstance(part, str | bytes) else json.dumps(part)
        ids = {"id": f"prt_{number:04}_{index}", "message_id": f"msg_{number:04}", "session_id": of}
        put(path, "part", {**ids, **times, "data": text})


def text(words: str, **fields: object) -> dict[str, object]:
    return {"type": "text", "text": words, **fields}


def tool(name: str, call: str = "c1", **state: object) -> dict[str, object]:
    return {"type": "tool", "tool": name, "callID": call, "state": {"status": "completed", **state}}


def put(path: Path, table: str, row: dict[str, object]) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        places = ", ".join("?" * len(row))
        db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", list(row.values()))


def read(path: Path, name: str = "ses_1", *, limit: int = LIMIT) -> tuple[list[Said | Ran], ReadStats]:
    with open_items(path.with_name(f"{path.name}#{name}"), max_line_bytes=limit) as items:
        return read_events(items), items.stats


def talk(events: list[Said | Ran]) -> list[tuple[str, str]]:
    return [(event.who, event.text) for event in events if isinstance(event, Said)]


def look(home: Path) -> dict[str, tuple[Thread, FileStamp]]:
    found = [each for each in discover(home, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]
    return {each.thread.thread_id: (each.thread, each.stamp) for each in found}
