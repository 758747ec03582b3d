"""What models cost, what providers say of their limits, what passes reported.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from stillroom.spending import ModelCall, Usage
from stillroom.store.records import PassRecord, RateLimitSnapshot, SpendingTotal, Spent
from stillroom.store.sql import execute
from stillroom.store.texts import columns, to_sql, values

#: After every call: totals without an end.
FOREVER = 2**62

_USAGE = Usage.__struct_fields__


def record_call(db: sqlite3.Connection, call: ModelCall) -> None:
    fields = msgspec.structs.asdict(call)
    usage = msgspec.structs.asdict(fields.pop("usage"))
    execute(db, "save_call", **columns(fields), **usage)


def calls(db: sqlite3.Connection, *, thread_id: str | None, limit: int) -> list[ModelCall]:
    rows = execute(db, "list_calls", thread_id=thread_id and to_sql(thread_id), limit=limit).fetchall()
    return [ModelCall(**_without_usage(row), usage=_usage(row)) for row in rows]


def totals(db: sqlite3.Connection, *, since: int, until: int) -> list[SpendingTotal]:
    rows = execute(db, "total_calls", since=since, until=until).fetchall()
    return [SpendingTotal(**_without_usage(row), usage=_usage(row)) for row in rows]


def count_on(db: sqlite3.Connection, counted: Spent) -> Spent:
    """With the calls that were recorded since it was counted."""
    row = execute(db, "sum_new_calls", since=counted.since, after=counted.last_id).fetchone()
    usage = Usage(**{name: getattr(counted.usage, name) + row[name] for name in _USAGE})
    return Spent(since=counted.since, last_id=row["last_id"], usage=usage)


def save_rate_limits(db: sqlite3.Connection, provider: str, snapshot_json: bytes, *, at: int, now: int) -> None:
    execute(db, "save_rate_limits", provider=provider, snapshot_json=snapshot_json, at=at, now=now)


def rate_limits(db: sqlite3.Connection, provider: str) -> RateLimitSnapshot | None:
    row = execute(db, "get_rate_limits", provider=provider).fetchone()
    return RateLimitSnapshot(**dict(row)) if row else None


def record_pass(db: sqlite3.Connection, *, at: int, report_json: bytes, kept: int) -> None:
    execute(db, "save_pass", at=at, report_json=report_json)
    execute(db, "drop_old_passes", kept=kept)


def last_passes(db: sqlite3.Connection, *, limit: int) -> list[PassRecord]:
    return [PassRecord(**dict(row)) for row in execute(db, "list_passes", limit=limit)]


def newest_moment(db: sqlite3.Connection) -> int:
    return int(execute(db, "newest_moment").fetchone()["at"])


def _without_usage(row: sqlite3.Row) -> dict[str, Any]:  # Any: as `values`
    return {name: value for name, value in values(row).items() if name not in _USAGE}


def _usage(row: sqlite3.Row) -> Usage:
    return Usage(**{name: row[name] for name in _USAGE})
