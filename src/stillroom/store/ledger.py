"""What models cost, what providers say of their limits, what passes reported.

Each method of `Ledger` is one transaction.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from stillroom.clock import Clock
from stillroom.spending import ModelCall, Usage
from stillroom.store.database import Database
from stillroom.store.records import PassRecord, RateLimitSnapshot, SpendingTotal, Spent
from stillroom.store.sql import execute
from stillroom.store.texts import columns, to_sql, values

#: After every call: totals without an end.
FOREVER = 2**62

_USAGE = Usage.__struct_fields__


class Ledger:
    """Every request to a model, what each provider last said of its limits, and the reports of passes."""

    def __init__(self, database: Database, *, clock: Clock, passes_kept: int) -> None:
        self._database = database
        self._clock = clock
        self._passes_kept = passes_kept
        #: Looked at and changed inside of a transaction only, and there is one at a time.
        self._spent = Spent()

    def record_call(self, call: ModelCall) -> None:
        """Keep one request to a model, failed ones too."""
        fields = msgspec.structs.asdict(call)
        usage = msgspec.structs.asdict(fields.pop("usage"))
        with self._database.write() as db:
            execute(db, "save_call", **columns(fields), **usage)

    def calls(self, *, thread_id: str | None = None, limit: int = 100) -> list[ModelCall]:
        """The latest calls, of one thread or of all, newest first."""
        with self._database.read() as db:
            rows = execute(db, "list_calls", thread_id=thread_id and to_sql(thread_id), limit=limit).fetchall()
        return [ModelCall(**_without_usage(row), usage=_usage(row)) for row in rows]

    def spending(self, *, since: int = 0, until: int = FOREVER) -> list[SpendingTotal]:
        """What calls that ended in `[since, until)` used, by day (UTC), phase and model."""
        with self._database.read() as db:
            rows = execute(db, "total_calls", since=since, until=until).fetchall()
        return [SpendingTotal(**_without_usage(row), usage=_usage(row)) for row in rows]

    def spent_since(self, since: int) -> Usage:
        """What all calls that ended since then used.

        It is asked ahead of every call: as long as `since` stays, only calls that are new since the last time are
        looked at. None is ever taken out, nor are its tokens changed.
        """
        with self._database.read() as db:
            counted = self._spent if self._spent.since == since else Spent(since=since)
            self._spent = _count_on(db, counted)
            return self._spent.usage

    def save_rate_limits(self, provider: str, snapshot_json: bytes, at: int) -> None:
        """Keep what the provider said of its limits, unless something newer is known."""
        now = self._clock.now()
        with self._database.write() as db:
            execute(db, "save_rate_limits", provider=provider, snapshot_json=snapshot_json, at=at, now=now)

    def rate_limits(self, provider: str) -> RateLimitSnapshot | None:
        """What the provider last said of its limits."""
        with self._database.read() as db:
            row = execute(db, "get_rate_limits", provider=provider).fetchone()
        return RateLimitSnapshot(**dict(row)) if row else None

    def record_pass(self, at: int, report_json: bytes) -> None:
        """Keep the report of a finished pass, and drop the oldest."""
        with self._database.write() as db:
            execute(db, "save_pass", at=at, report_json=report_json)
            execute(db, "drop_old_passes", kept=self._passes_kept)

    def last_passes(self, limit: int = 10) -> list[PassRecord]:
        """The newest reports, newest first."""
        with self._database.read() as db:
            return [PassRecord(**dict(row)) for row in execute(db, "list_passes", limit=limit)]


def _count_on(db: sqlite3.Connection, counted: Spent) -> Spent:
    """With the calls that were recorded since it was counted."""
    row = execute(db, "sum_new_calls", since=counted.since, after=counted.last_id).fetchone()
    return Spent(since=counted.since, last_id=row["last_id"], usage=counted.usage + _usage(row))


def _without_usage(row: sqlite3.Row) -> dict[str, Any]:  # Any: as `values`
    return {name: value for name, value in values(row).items() if name not in _USAGE}


def _usage(row: sqlite3.Row) -> Usage:
    return Usage(**{name: row[name] for name in _USAGE})
