"""How threads stand: each with the rule that decides about it, or one of them with every rule.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import msgspec

from stillroom.store import contents, leases
from stillroom.store.leases import STAGE1
from stillroom.store.records import Job, Told
from stillroom.store.rules import (
    ExtractionRule,
    Facts,
    Output,
    Question,
    Ruling,
    State,
    cutoff,
    deciding_rule,
    is_claimable,
    is_scanned,
    rule_on_extraction,
    rule_on_retention,
    rule_on_selection,
    ruling,
    state_of,
)
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql, to_sql
from stillroom.store.threads import read_thread
from stillroom.thread import Thread

#: Of a thread's row in `list_facts`, which has the fields of `Facts` ahead, in their order.
_ID, _UPDATED, _AGENT, _SIZE = 0, 3, 10, 11
_JOB_FIELDS = (
    "status", "retry_remaining", "worker_id", "leased_at", "lease_until", "finished_at", "retry_at", "last_error",
    "input_watermark", "last_success_watermark", "reopened", "engine",
)  # fmt: skip


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A thread, and how it stands."""

    thread: Thread
    #: Of its file, when it was last seen; None for one of a database, or of many files.
    size_bytes: int | None
    #: Its file was gone at the last scan.
    missing: bool
    state: State
    #: The rule that decided; None: the next pass takes it.
    decided: Ruling | None
    has_output: bool
    #: Its remote; without one the folder of the work tree.
    repository: str | None = None
    #: As of the last time that its file was read as a whole; None: it never was.
    messages: int | None = None
    tokens: int | None = None
    #: The file went on since then.
    grown: bool = False


class StandingCount(msgspec.Struct, frozen=True, kw_only=True):
    """Threads of one agent that stand alike."""

    agent: str
    state: State
    #: The rule that decided; None: the next pass takes them.
    rule: ExtractionRule | None
    threads: int
    bytes: int  #: of their files


class Troubled(msgspec.Struct, frozen=True, kw_only=True):
    """A thread that failed, or that a process holds."""

    thread_id: str
    agent: str
    decided: Ruling


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """How all threads stand."""

    counts: tuple[StandingCount, ...]
    #: Newest first.
    failed: tuple[Troubled, ...]
    running: tuple[Troubled, ...]
    #: When the first thread that was active too recently no longer is, in seconds.
    waiting_until: int | None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Every rule about a thread, in order."""

    standing: Standing
    extraction: tuple[Ruling, ...]
    selection: tuple[Ruling, ...]
    #: None: there is nothing to keep.
    retention: Ruling | None

    @property
    def selected(self) -> bool:
        """Whether the next consolidation rests on it."""
        return all(ruling.verdict == "passes" for ruling in self.selection)


def standings(db: sqlite3.Connection, question: Question) -> list[Standing]:
    """Of all threads, newest first."""
    shown = {row[0]: row for row in execute(db, "list_shown", thread_id=None)}
    return [_standing(shown[row[_ID]], facts, rule, question) for row, facts, rule in _walk(db, question)]


def survey(db: sqlite3.Connection, question: Question) -> Survey:
    """All threads, without a list of them: at a third of its cost."""
    counts: defaultdict[tuple[str, State, ExtractionRule | None], list[int]] = defaultdict(lambda: [0, 0])
    troubled: dict[State, list[Troubled]] = {"failed": [], "running": []}
    quietest: Facts | None = None
    for row, facts, rule in _walk(db, question):
        agent = row[_AGENT]
        state = state_of(rule, has_output=facts.output_watermark is not None)
        count = counts[agent, state, rule]
        count[0] += 1
        count[1] += max(row[_SIZE], 0)
        if rule == "idle":
            quietest = facts
        elif rule and state in troubled:
            decided = ruling(rule, facts, question)
            troubled[state].append(Troubled(thread_id=facts.thread_id, agent=agent, decided=decided))
    return Survey(
        counts=tuple(
            StandingCount(agent=key[0], state=key[1], rule=key[2], threads=counts[key][0], bytes=counts[key][1])
            for key in sorted(counts, key=str)
        ),
        failed=tuple(troubled["failed"]),
        running=tuple(troubled["running"]),
        waiting_until=ruling("idle", quietest, question).until if quietest else None,
    )


def explain(db: sqlite3.Connection, thread_id: str, question: Question) -> Explanation | None:
    """Every rule about one thread; None: it is not known."""
    key = to_sql(thread_id)
    shown = execute(db, "list_shown", thread_id=key).fetchone()
    if shown is None:
        return None
    facts, rule = next((facts, rule) for row, facts, rule in _walk(db, question) if row[_ID] == key)
    output = _output(db, thread_id, question)
    return Explanation(
        standing=_standing(shown, facts, rule, question),
        extraction=tuple(rule_on_extraction(facts, question)),
        selection=tuple(rule_on_selection(facts, output, question)),
        retention=rule_on_retention(output, question) if output else None,
    )


def _walk(
    db: sqlite3.Connection, question: Question
) -> Iterator[tuple[tuple[Any, ...], Facts, ExtractionRule | None]]:  # Any: the schema says what a column holds
    """Every thread with the rule that decides, newest first as the claim goes, counting those that come before it."""
    running = leases.count_leased(db, STAGE1, now=question.now)
    jobs = {row[0]: _job(row) for row in _tuples(db, "list_jobs", kind=STAGE1)}
    watermarks = dict(_tuples(db, "list_output_watermarks"))
    told = contents.told_elsewhere(db)
    scanned = claimed = 0
    # SQLite would carry every column through its sort.
    for row in sorted(_tuples(db, "list_facts"), key=itemgetter(_UPDATED, _ID), reverse=True):
        facts = _facts(row, jobs.get(row[_ID]), watermarks.get(row[_ID]), running, told.get(row[_ID]))
        # A thread that has no place in the scan or the claim is decided of ahead of the rule that asks for it.
        facts.scanned_before, facts.claimed_before = scanned, claimed
        rule = deciding_rule(facts, question)
        if not is_scanned(facts, question, rule):
            facts.scanned_before = facts.claimed_before = None
        else:
            scanned += 1
            if is_claimable(facts, question, rule):
                claimed += 1
            else:
                facts.claimed_before = None
        yield row, facts, rule


def _tuples(db: sqlite3.Connection, query: str, **values: object) -> sqlite3.Cursor:
    """Rows without names: there are many."""
    cursor = execute(db, query, **values)
    cursor.row_factory = None
    return cursor


def _facts(
    row: tuple[Any, ...], job: Job | None, output_watermark: int | None, running: int, told: Told | None
) -> Facts:
    thread_id, source, cwd, updated_at_ms, has_words, recorded, chosen, switched_off, archived, missing, _, _ = row
    return Facts(
        from_sql(thread_id),
        from_sql(source),
        from_sql(cwd),
        updated_at_ms,
        has_words == 1,
        recorded,
        chosen,
        switched_off == 1,
        archived == 1,
        missing == 1,
        job,
        output_watermark,
        running=running,
        told=told,
    )


def _job(row: tuple[Any, ...]) -> Job:
    values = dict(zip(_JOB_FIELDS, row[1:], strict=True))
    return Job(**{**values, "reopened": values["reopened"] == 1})


def _standing(shown: sqlite3.Row, facts: Facts, rule: ExtractionRule | None, question: Question) -> Standing:
    has_output = facts.output_watermark is not None
    repository, size, messages, tokens, seen_size = shown[-5:]
    return Standing(
        thread=read_thread(shown),
        size_bytes=size if size >= 0 else None,
        missing=facts.missing,
        state=state_of(rule, has_output=has_output),
        decided=ruling(rule, facts, question) if rule else None,
        has_output=has_output,
        repository=None if repository is None else from_sql(repository),
        messages=messages,
        tokens=tokens,
        grown=seen_size is not None and seen_size != size,
    )


def _output(db: sqlite3.Connection, thread_id: str, question: Question) -> Output | None:
    row = execute(db, "get_ranked_output", thread_id=to_sql(thread_id), cutoff=cutoff(question)).fetchone()
    if row is None:
        return None
    return Output(**{**dict(row), "is_blank": bool(row["is_blank"]), "selected": bool(row["selected"])})
