"""How threads stand: each with the rule that decides about it, or one of them with every rule.

Each method of `Standings` is one transaction.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping

import msgspec

from stillroom.store.database import Database
from stillroom.store.quarantine import without_quarantined
from stillroom.store.records import Withheld
from stillroom.store.rules import (
    ExtractionRule,
    Facts,
    Output,
    Question,
    Ruling,
    State,
    cutoff,
    rule_on_extraction,
    rule_on_retention,
    rule_on_selection,
    ruling,
)
from stillroom.store.selection import select
from stillroom.store.sql import execute
from stillroom.store.texts import from_sql, to_sql
from stillroom.store.threads import read_thread
from stillroom.store.walk import ID, SIZE, Judged, Met, walk
from stillroom.thread import Thread


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
    #: Lines of what was extracted that stay out of the memory, because only a tool or the web says them.
    withheld: tuple[Withheld, ...] = ()

    @property
    def selected(self) -> bool:
        """Whether the next consolidation rests on it."""
        return all(ruling.verdict == "passes" for ruling in self.selection)


class Standings:
    """How threads stand before a pass."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_all(self, question: Question) -> list[Standing]:
        """Of every thread, newest first: the rule that decides about it."""
        with self._database.read() as db:
            shown = {row[0]: row for row in execute(db, "list_shown", thread_id=None)}
            known, met = walk(db, question)
            return [_standing(shown[each[0][ID]], known.facts(each), each[1], question) for each in met]

    def survey(self, question: Question) -> Survey:
        """All threads, without a list of them: at a tenth of its cost."""
        alike: defaultdict[Judged, list[int]] = defaultdict(lambda: [0, 0])
        troubled: dict[State, list[Troubled]] = {"failed": [], "running": []}
        quietest: Met | None = None
        with self._database.read() as db:
            known, met = walk(db, question)
            for each in met:
                row, judged, _, _ = each
                count = alike[judged]
                count[0] += 1
                count[1] += max(row[SIZE], 0)
                if judged.rule == "idle":
                    quietest = each
                elif judged.rule and judged.state in troubled:
                    decided = ruling(judged.rule, known.facts(each), question)
                    of_state = troubled[judged.state]
                    of_state.append(Troubled(thread_id=from_sql(row[ID]), agent=judged.agent, decided=decided))
        return Survey(
            counts=_counts(alike),
            failed=tuple(troubled["failed"]),
            running=tuple(troubled["running"]),
            waiting_until=ruling("idle", known.facts(quietest), question).until if quietest else None,
        )

    def explain(self, thread_id: str, question: Question) -> Explanation | None:
        """Every rule about one thread, in order. None: it is not known."""
        key = to_sql(thread_id)
        with self._database.read() as db:
            shown = execute(db, "list_shown", thread_id=key).fetchone()
            if shown is None:
                return None
            known, met = walk(db, question)
            found = next(each for each in met if each[0][ID] == key)
            facts = known.facts(found)
            output = _output(db, thread_id, question)
            explained = Explanation(
                standing=_standing(shown, facts, found[1], question),
                extraction=tuple(rule_on_extraction(facts, question)),
                selection=tuple(rule_on_selection(facts, output, question)),
                retention=rule_on_retention(output, question) if output else None,
            )
            withheld = _withheld(db, thread_id, question) if explained.selected else ()
        return msgspec.structs.replace(explained, withheld=withheld)


def _counts(alike: Mapping[Judged, list[int]]) -> tuple[StandingCount, ...]:
    counts: defaultdict[tuple[str, State, ExtractionRule | None], list[int]] = defaultdict(lambda: [0, 0])
    for judged, (threads, size) in alike.items():
        count = counts[judged.agent, judged.state, judged.rule]
        count[0] += threads
        count[1] += size
    return tuple(
        StandingCount(agent=key[0], state=key[1], rule=key[2], threads=counts[key][0], bytes=counts[key][1])
        for key in sorted(counts, key=str)
    )


def _standing(shown: sqlite3.Row, facts: Facts, judged: Judged, question: Question) -> Standing:
    repository, size, messages, tokens, seen_size = shown[-5:]
    return Standing(
        thread=read_thread(shown),
        size_bytes=size if size >= 0 else None,
        missing=facts.missing,
        state=judged.state,
        decided=ruling(judged.rule, facts, question) if judged.rule else None,
        has_output=facts.output_watermark is not None,
        repository=None if repository is None else from_sql(repository),
        messages=messages,
        tokens=tokens,
        grown=seen_size is not None and seen_size != size,
    )


def _output(db: sqlite3.Connection, thread_id: str, question: Question) -> Output | None:
    row = execute(db, "get_ranked_output", thread_id=to_sql(thread_id), cutoff=cutoff(question)).fetchone()
    if row is None:
        return None
    flags = {name: bool(row[name]) for name in ("is_blank", "selected", "holds_preferences")}
    return Output(**{**dict(row), **flags})


def _withheld(db: sqlite3.Connection, thread_id: str, question: Question) -> tuple[Withheld, ...]:
    memories = question.memories
    limit, days = memories.max_raw_memories_for_consolidation, memories.max_unused_days
    selection = select(db, limit=limit, max_unused_days=days, now=question.now)
    return tuple(line for line in without_quarantined(db, selection).withheld if line.thread_id == thread_id)
