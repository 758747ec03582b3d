"""Every text that is kept of a person's sessions, put through a change.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from stillroom.store.sql import QUERIES, execute
from stillroom.store.texts import from_sql, to_sql

#: Every place where a text of a person's sessions may be kept: the query that lists it, the one that writes it back,
#: the columns that name a row, those that hold text, and those that hold JSON.
_PLACES = (
    ("list_output_texts", "set_output_texts", ("thread_id",), ("raw_memory", "rollout_summary", "rollout_slug"), ()),
    ("list_thread_texts", "set_thread_texts", ("thread_id",), ("title", "preview", "git_branch", "git_origin_url"), ()),
    ("list_job_texts", "set_job_texts", ("kind", "job_key"), ("worker_id", "last_error"), ()),
    ("list_call_texts", "set_call_texts", ("call_id",), ("error",), ()),
    ("list_pass_texts", "set_pass_texts", ("pass_id",), (), ("report_json",)),
    ("list_use_texts", "set_use_texts", ("thread_id", "digest", "nth"), (), ("counted",)),
)

Change = Callable[[str], str]
#: A hundred kilobytes of texts.
_ROWS_AT_ONCE = 16


def rewrite_texts(
    db: sqlite3.Connection, change: Change, may_change: Callable[[str], bool] = lambda texts: True
) -> int:
    """Put every text through `change`; returns how many rows differ by it."""
    changed = 0
    for listing, writing, keys, texts, documents in _PLACES:
        rows: list[dict[str, object]] = []
        listed = execute(db, listing)
        # In JSON a word may be spelled otherwise.
        for row in listed if documents else _touched(listed, texts, may_change):
            new: dict[str, object] = {name: _text(row[name], change) for name in texts}
            new |= {name: _document(row[name], change) for name in documents}
            if any(new[name] != row[name] for name in new):
                rows.append({**{name: row[name] for name in keys}, **new})
        db.executemany(QUERIES[writing], rows)
        changed += len(rows)
    return changed


def _touched(rows: sqlite3.Cursor, texts: Sequence[str], may_change: Callable[[str], bool]) -> Iterator[sqlite3.Row]:
    """Without rows of which no text may change. Some are asked about together: most are shorter than the question."""
    while some := rows.fetchmany(_ROWS_AT_ONCE):
        if may_change("\n".join(from_sql(row[name]) for row in some for name in texts if row[name] is not None)):
            yield from some


def each_text(db: sqlite3.Connection) -> Iterator[str]:
    """Every text that `rewrite_texts` would put through a change."""
    for listing, _, _, texts, documents in _PLACES:
        for row in execute(db, listing):
            yield from (from_sql(row[name]) for name in (*texts, *documents) if row[name] is not None)


def _text(value: str | bytes | None, change: Change) -> str | bytes | None:
    return None if value is None else to_sql(change(from_sql(value)))


def _document(value: str | bytes, change: Change) -> str | bytes:
    """JSON of the same shape, every string in it changed; as it was if nothing differs."""
    import json  # only what forgets needs it

    text = from_sql(value)
    try:
        data = json.loads(text)
    except ValueError:
        return change(text).encode("utf-8", "replace") if isinstance(value, bytes) else to_sql(change(text))
    new = _changed(data, change)
    if new == data:
        return value
    encoded = json.dumps(new)
    return encoded.encode() if isinstance(value, bytes) else encoded


def _changed(data: Any, change: Change) -> Any:  # Any: JSON
    match data:
        case str():
            return change(data)
        case list():
            return [_changed(each, change) for each in data]
        case dict():
            return {change(key): _changed(each, change) for key, each in data.items()}
        case _:
            return data
