"""Every thread with the rule that decides about it, newest first.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import msgspec

from stillroom.store import contents, leases
from stillroom.store.claims import ENDED_SLACK_MS
from stillroom.store.leases import STAGE1
from stillroom.store.records import Job, Told
from stillroom.store.rules import (
    ExtractionRule,
    Facts,
    Question,
    State,
    deciding_rule,
    is_claimable,
    is_scanned,
    newest_ms,
    oldest_ms,
    room_in_claim,
    room_in_scan,
    state_of,
)
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql

Row = tuple[Any, ...]  # Any: the schema says what a column holds
"""A thread's row of `list_facts`, or a job's of `list_jobs`."""

Work = Literal["all", "no_output", "expired", "extracted"]
"""All of it, or nothing any more."""

ID, UPDATED, SIZE = 0, 1, 2
_CWD, _KIND = 3, 4
_JOB_FIELDS = (
    "status", "retry_remaining", "worker_id", "leased_at", "lease_until", "finished_at", "retry_at", "last_error",
    "input_watermark", "last_success_watermark", "reopened", "engine", "expired_at",
)  # fmt: skip
_SUCCEEDED, _REOPENED, _EXPIRED = 10, 11, 13


class Judged(msgspec.Struct, frozen=True, eq=False):
    """What is the same of all threads that are alike. Compared by identity: there are many threads."""

    agent: str
    #: Of extraction; None: all let them pass.
    rule: ExtractionRule | None
    state: State
    #: Whether the scan looks at them, and a pass takes them, as far as its limit lets it.
    scanned: bool
    claimed: bool


Met = tuple[Row, Judged, int, int]
"""A thread on the way, with the number of newer ones that the scan looks at, and that a pass takes, before it."""


class Known(NamedTuple):
    """What is known of threads beside their rows, by their ids as SQLite has them."""

    jobs: dict[str | bytes, Row]
    watermarks: dict[str | bytes, int]
    told: Mapping[str | bytes, Told]
    #: Threads that other processes hold.
    running: int

    def facts(self, met: Met) -> Facts:
        """What the rules ask for."""
        row, judged, scanned, claimed = met
        facts = self._facts(row)
        # A thread that has no place in the scan or the claim is decided of ahead of the rule that asks for it.
        facts.scanned_before = scanned if judged.scanned else None
        facts.claimed_before = claimed if judged.claimed else None
        return facts

    def judge(self, row: Row, scanned: int, claimed: int, question: Question) -> Judged:
        """The thread by itself."""
        facts = self._facts(row)
        facts.scanned_before, facts.claimed_before = scanned, claimed
        rule = deciding_rule(facts, question)
        is_seen = is_scanned(facts, question, rule)
        return Judged(
            agent=row[_KIND],
            rule=rule,
            state=state_of(rule, facts),
            scanned=is_seen,
            claimed=is_seen and is_claimable(facts, question, rule),
        )

    def work(self, row: Row) -> Work | None:
        """What there is to extract of it; None: a rule may ask for more of its job than that."""
        watermark, output = row[UPDATED] // 1000, self.watermarks.get(row[ID])
        if (job := self.jobs.get(row[ID])) is not None:
            if job[_REOPENED] or job[_SUCCEEDED] is None or job[_SUCCEEDED] < watermark:
                return None
        elif output is None:
            return "all"
        elif output < watermark:
            return None
        if output is None:
            return "no_output" if job is None or job[_EXPIRED] is None else "expired"
        return "extracted"

    def _facts(self, row: Row) -> Facts:
        thread_id, updated_at_ms, _, cwd, _, source, has_words, recorded, chosen, *flags = row
        switched_off, archived, missing, ended = (flag == 1 for flag in flags)
        job = self.jobs.get(thread_id)
        return Facts(
            from_sql(thread_id),
            from_sql(source),
            from_sql(cwd),
            updated_at_ms,
            has_words == 1,
            recorded,
            chosen,
            switched_off,
            archived,
            missing,
            ended,
            None if job is None else _job(job),
            self.watermarks.get(thread_id),
            running=self.running,
            told=self.told.get(thread_id),
        )


def walk(db: sqlite3.Connection, question: Question) -> tuple[Known, Iterator[Met]]:
    """All threads as the claim goes through them, each with the rule that decides."""
    known = Known(
        jobs={row[0]: row for row in _tuples(db, "list_jobs", kind=STAGE1)},
        watermarks=dict(_tuples(db, "list_output_watermarks")),
        told=contents.told_elsewhere(db),
        running=leases.count_leased(db, STAGE1, now=question.now),
    )
    # SQLite would carry every column through its sort.
    rows = sorted(_tuples(db, "list_facts", slack_ms=ENDED_SLACK_MS), key=itemgetter(UPDATED, ID), reverse=True)
    return known, _judged(rows, known, question)


def _judged(rows: list[Row], known: Known, question: Question) -> Iterator[Met]:
    """Most threads are like many others: whatever a rule asks for is the same of them, so one of them is judged."""
    judged: dict[tuple[object, ...], Judged] = {}
    newest, oldest = newest_ms(question), oldest_ms(question)
    scan, claim = room_in_scan(question), room_in_claim(question, known.running)
    scanned = claimed = 0
    for row in rows:
        found = alike = None
        if (work := known.work(row)) and row[ID] != question.current_thread_id:
            updated = row[UPDATED]
            asked = None if question.cwd is None else row[_CWD], from_sql(row[ID]) in question.sessions
            alike = (work, row[_KIND:], asked, updated <= newest, updated >= oldest, scanned < scan, claimed < claim)
            found = judged.get(alike)
        if found is None:
            found = known.judge(row, scanned, claimed, question)
            if alike:
                judged[alike] = found
        yield row, found, scanned, claimed
        scanned += found.scanned
        claimed += found.claimed


def _tuples(db: sqlite3.Connection, query: str, **values: object) -> sqlite3.Cursor:
    """Rows without names: there are many."""
    cursor = execute(db, query, **values)
    cursor.row_factory = None
    return cursor


def _job(row: Row) -> Job:
    values = dict(zip(_JOB_FIELDS, row[1:], strict=True))
    return Job(**{**values, "reopened": values["reopened"] == 1})
