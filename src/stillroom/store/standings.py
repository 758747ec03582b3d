"""How threads stand: each with the rule that decides about it, or one of them with every rule.

All functions run inside a transaction of the caller.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from operator import itemgetter

import msgspec

from stillroom.store import leases
from stillroom.store.leases import STAGE1
from stillroom.store.records import Job
from stillroom.store.rules import (
    ExtractionRule,
    Facts,
    Output,
    Question,
    Ruling,
    State,
    cutoff,
    deciding,
    deciding_rule,
    is_claimable,
    is_scanned,
    rule_on_extraction,
    rule_on_retention,
    rule_on_selection,
    state_of,
)
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql, to_sql
from stillroom.store.threads import read_thread
from stillroom.thread import Thread

# Of the query, read by their places as there are many rows: those of a thread come first, those of its job last.
_THREAD = len(Thread.__struct_fields__)
_UPDATED, _SIZE = Thread.__struct_fields__.index("updated_at_ms"), -4
_JOB_FIELDS = (
    "status", "retry_remaining", "worker_id", "leased_at", "lease_until", "finished_at", "retry_at", "last_error",
    "input_watermark", "last_success_watermark", "reopened",
)  # fmt: skip


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A thread, and how it stands."""

    thread: Thread
    #: Of its file, when it was last seen.
    size_bytes: int
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
    return [_standing(row, facts, question) for row, facts in _walk(db, question)]


def survey(db: sqlite3.Connection, question: Question) -> Survey:
    """All threads, without a list of them: at a third of its cost."""
    threads: Counter[tuple[str, State, ExtractionRule | None]] = Counter()
    sizes: Counter[tuple[str, State, ExtractionRule | None]] = Counter()
    troubled: dict[State, list[Troubled]] = {"failed": [], "running": []}
    quietest: Facts | None = None
    for row, facts in _walk(db, question):
        rule, agent = deciding_rule(facts, question), row[1]
        state = state_of(rule, has_output=facts.output_watermark is not None)
        threads[agent, state, rule] += 1
        sizes[agent, state, rule] += row[_SIZE]
        if rule == "idle":
            quietest = facts
        elif state in troubled and (decided := deciding(facts, question)):
            troubled[state].append(Troubled(thread_id=facts.thread_id, agent=agent, decided=decided))
    decided = deciding(quietest, question) if quietest else None
    return Survey(
        counts=tuple(
            StandingCount(agent=key[0], state=key[1], rule=key[2], threads=threads[key], bytes=sizes[key])
            for key in sorted(threads, key=str)
        ),
        failed=tuple(troubled["failed"]),
        running=tuple(troubled["running"]),
        waiting_until=decided.until if decided else None,
    )


def explain(db: sqlite3.Connection, thread_id: str, question: Question) -> Explanation | None:
    """Every rule about one thread; None: it is not known."""
    found = next(((row, facts) for row, facts in _walk(db, question) if facts.thread_id == thread_id), None)
    if found is None:
        return None
    row, facts = found
    output = _output(db, thread_id, question)
    return Explanation(
        standing=_standing(row, facts, question),
        extraction=tuple(rule_on_extraction(facts, question)),
        selection=tuple(rule_on_selection(facts, output, question)),
        retention=rule_on_retention(output, question) if output else None,
    )


def _walk(db: sqlite3.Connection, question: Question) -> Iterator[tuple[sqlite3.Row, Facts]]:
    """Every thread, newest first as the claim goes, with how many newer ones come before it in the claim."""
    running = leases.count_leased(db, STAGE1, now=question.now)
    scanned = claimed = 0
    # SQLite would carry every column through its sort.
    for row in sorted(execute(db, "list_standings"), key=itemgetter(_UPDATED, 0), reverse=True):
        facts = _facts(row, running)
        if is_scanned(facts, question):
            facts.scanned_before = scanned
            scanned += 1
            if is_claimable(facts, question):
                facts.claimed_before = claimed
                claimed += 1
        yield row, facts


def _facts(row: sqlite3.Row, running: int) -> Facts:
    thread_id, _, _, source, cwd, _, updated_at_ms, _, preview, _, archived = row[:11]
    recorded_mode, chosen_mode, switched_off, missing, output_watermark, status = row[_THREAD : _THREAD + 6]
    return Facts(
        from_sql(thread_id),
        from_sql(source),
        from_sql(cwd),
        updated_at_ms,
        preview,
        recorded_mode,
        chosen_mode,
        switched_off == 1,
        archived == 1,
        missing == 1,
        None if status is None else _job(row),
        output_watermark,
        running=running,
    )


def _job(row: sqlite3.Row) -> Job:
    values = dict(zip(_JOB_FIELDS, row[_THREAD + 5 :], strict=False))
    return Job(**{**values, "reopened": values["reopened"] == 1})


def _standing(row: sqlite3.Row, facts: Facts, question: Question) -> Standing:
    decided, has_output = deciding(facts, question), facts.output_watermark is not None
    repository, size_bytes, messages, tokens, seen_size = row[-5:]
    return Standing(
        thread=read_thread(row),
        size_bytes=size_bytes,
        missing=facts.missing,
        state=state_of(decided.rule if decided else None, has_output=has_output),
        decided=decided,
        has_output=has_output,
        repository=None if repository is None else from_sql(repository),
        messages=messages,
        tokens=tokens,
        grown=seen_size is not None and seen_size != size_bytes,
    )


def _output(db: sqlite3.Connection, thread_id: str, question: Question) -> Output | None:
    row = execute(db, "get_ranked_output", thread_id=to_sql(thread_id), cutoff=cutoff(question)).fetchone()
    if row is None:
        return None
    return Output(**{**dict(row), "is_blank": bool(row["is_blank"]), "selected": bool(row["selected"])})
