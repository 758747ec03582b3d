"""What Stillroom knows, did, spent and would do next, at a glance. Reads; changes nothing."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from stillroom.clock import DAY_SECONDS, Clock
from stillroom.config import OFFLINE, Settings
from stillroom.insight.facts import Facts, read_facts
from stillroom.insight.obstacles import Obstacle, obstacles
from stillroom.pausing import paused_since
from stillroom.recall.usage.sessions import ToldSession, told_sessions
from stillroom.spending import Usage
from stillroom.store import Question, SpendingTotal, Store, Troubled
from stillroom.store import leases as jobs
from stillroom.store.records import Job, Leaving, PassRecord, ReadTotal, UnknownTotal, Worth
from stillroom.store.rules import State
from stillroom.store.standings import StandingCount
from stillroom.workspace import held

#: Each list shows the newest few; the rest is counted.
PASSES_SHOWN = 5
SESSIONS_SHOWN = 5
FAILURES_SHOWN = 20
#: Memory that was used within so many days is worth its place.
_WORTH_DAYS = 30
#: What leaves within so many days is named: long enough ahead to keep it.
_LEAVING_DAYS = 7

ConsolidationState = Literal["never", "running", "failed", "held", "resting", "due", "up_to_date"]


class AgentThreads(msgspec.Struct, frozen=True, kw_only=True):
    """The threads of one agent."""

    agent: str
    threads: int
    bytes: int
    states: dict[State, int]
    #: Those that are never extracted as things stand, by the rule that decided.
    excluded: dict[str, int]


class Consolidation(msgspec.Struct, frozen=True, kw_only=True):
    """How phase 2 stands."""

    state: ConsolidationState
    #: When that ends by itself, in seconds.
    until: int | None = None
    last_error: str | None = None


class PassLine(msgspec.Struct, frozen=True, kw_only=True):
    """A finished pass in a line."""

    at: int  #: seconds
    skipped: str | None = None
    with_output: int = 0
    no_output: int = 0
    failed: int = 0
    #: Of these, how many have the offline engine's memory until a model answers.
    fallbacks: int = 0
    #: Why the first of them failed.
    failure: str | None = None
    #: How phase 2 ended: `consolidated`, `no_changes`, `skipped`, `failed`; None: it did not begin.
    consolidation: str | None = None
    #: The same more closely, e.g. `skipped_cooldown`, `failed_agent`.
    consolidation_status: str | None = None
    #: What went wrong.
    reason: str | None = None
    #: The offline engine consolidated, because the model failed.
    is_fallback: bool = False


class FolderSize(msgspec.Struct, frozen=True, kw_only=True):
    """The memory folder."""

    path: str
    exists: bool
    files: int
    bytes: int
    handbook_bytes: int
    summary_bytes: int


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What one model was used for in one phase."""

    phase: str
    model: str
    calls: int
    failed_calls: int
    usage: Usage
    cost_usd: float
    unpriced_calls: int  #: calls whose price is not known: `cost_usd` is without them


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that `stillroom status` tells. Times in seconds since 1970."""

    at: int
    home: str
    enabled: bool
    paused_since: str | None
    extract_model: str
    consolidation_model: str
    agents: tuple[AgentThreads, ...]
    #: Threads that are never extracted as things stand, by the rule that decided.
    excluded: dict[str, int]
    failed: tuple[Troubled, ...]
    failed_threads: int
    #: Threads that a process extracts, or was killed over.
    running: tuple[Troubled, ...]
    #: Threads that the next pass takes, and that one after it may.
    next_threads: int
    waiting_threads: int
    #: When the first that was active too recently no longer was.
    waiting_until: int | None
    #: What keeps it from that.
    obstacles: tuple[Obstacle, ...]
    consolidation: Consolidation
    passes: tuple[PassLine, ...]
    folder: FolderSize
    worth: Worth
    #: Whether what memory names is still there, as the last pass found it.
    facts: Facts
    #: What the memory loses within a week unless somebody uses it, first at first.
    leaving: tuple[Leaving, ...]
    #: Sessions that were told memory, newest first.
    told: tuple[ToldSession, ...]
    spent_today: tuple[Spent, ...]
    spent: tuple[Spent, ...]
    reads: tuple[ReadTotal, ...]
    unknown: tuple[UnknownTotal, ...]


def read_status(settings: Settings, store: Store, clock: Clock) -> Status:
    """How everything stands. Looks at no session file. Raises `StoreError`."""
    now = clock.now()
    paused = paused_since(str(settings.home))
    question = Question(
        memories=settings.memories, stage=settings.stage_one, now_ms=clock.now_ms(), paused_since=paused
    )
    survey, spent = store.standings.survey(question), store.ledger.spending()
    return Status(
        at=now,
        home=str(settings.home),
        enabled=settings.memories.enabled,
        paused_since=paused,
        extract_model=settings.memories.extract_model,
        consolidation_model=settings.memories.consolidation_model,
        agents=tuple(_by_agent(survey.counts)),
        excluded=_excluded(survey.counts),
        failed=survey.failed[:FAILURES_SHOWN],
        failed_threads=len(survey.failed),
        running=survey.running,
        next_threads=_count(survey.counts, "next"),
        waiting_threads=_count(survey.counts, "waiting"),
        waiting_until=survey.waiting_until,
        obstacles=obstacles(settings, store, clock, paused_since=paused, spent=spent),
        consolidation=_consolidation(store.consolidation.job(), settings, now),
        passes=tuple(pass_line(record) for record in store.ledger.last_passes(PASSES_SHOWN)),
        folder=measure(settings.root),
        worth=store.uses.worth(since=now - _WORTH_DAYS * DAY_SECONDS),
        facts=read_facts(settings.home),
        leaving=tuple(
            store.outputs.leaving(
                max_unused_days=settings.memories.max_unused_days, before=now + _LEAVING_DAYS * DAY_SECONDS
            )
        ),
        told=told_sessions(settings.home, limit=SESSIONS_SHOWN),
        spent_today=_spent(store.ledger.spending(since=now - now % DAY_SECONDS)),
        spent=_spent(spent),
        reads=tuple(store.reads.totals()),
        unknown=tuple(store.reads.unknown()),
    )


def measure(root: Path) -> FolderSize:
    """How large the memory folder is. Follows no link."""
    files = size = 0
    for place, _, names in os.walk(root):
        for name in names:
            try:
                size += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - paths that are no UTF-8
            except OSError:  # gone since it was listed
                continue
            files += 1
    return FolderSize(
        path=str(root),
        exists=root.is_dir(),
        files=files,
        bytes=size,
        handbook_bytes=_size(root / "MEMORY.md"),
        summary_bytes=_size(root / "memory_summary.md"),
    )


def _by_agent(counts: Sequence[StandingCount]) -> list[AgentThreads]:
    of_agent: defaultdict[str, list[StandingCount]] = defaultdict(list)
    for each in counts:
        of_agent[each.agent].append(each)
    return [_agent_threads(agent, found) for agent, found in sorted(of_agent.items())]


def _agent_threads(agent: str, counts: Sequence[StandingCount]) -> AgentThreads:
    states: Counter[State] = Counter()
    for each in counts:
        states[each.state] += each.threads
    return AgentThreads(
        agent=agent,
        threads=states.total(),
        bytes=sum(each.bytes for each in counts),
        states=dict(states),
        excluded=_excluded(counts),
    )


def _excluded(counts: Sequence[StandingCount]) -> dict[str, int]:
    rules: Counter[str] = Counter()
    for each in counts:
        if each.state == "excluded" and each.rule:
            rules[each.rule] += each.threads
    return dict(rules.most_common())


def _count(counts: Sequence[StandingCount], state: State) -> int:
    return sum(each.threads for each in counts if each.state == state)


def _consolidation(job: Job | None, settings: Settings, now: int) -> Consolidation:
    if job is None:
        return Consolidation(state="never")
    if jobs.is_leased(job, now=now):
        return Consolidation(state="running", until=job.lease_until)
    if held.load(settings.review) is not None:
        return Consolidation(state="held")
    if job.last_error is not None:
        return Consolidation(state="failed", until=job.retry_at, last_error=job.last_error)
    rested = (job.finished_at or 0) + settings.consolidating.success_cooldown_seconds
    if job.finished_at is not None and job.finished_at <= now < rested:
        return Consolidation(state="resting", until=rested)
    behind = (job.input_watermark or 0) > (job.last_success_watermark or 0)
    return Consolidation(state="due" if behind else "up_to_date")


class _Outcome(msgspec.Struct):
    outcome: str = ""
    reason: str | None = None


class _Extracted(msgspec.Struct):
    with_output: int = 0
    no_output: int = 0
    failed: int = 0
    fallbacks: int = 0
    outcomes: tuple[_Outcome, ...] = ()


class _Ended(msgspec.Struct):
    outcome: str | None = None
    status: str | None = None
    reason: str | None = None
    fallback_reason: str | None = None


class _Report(msgspec.Struct):
    skipped: str | None = None
    detail: str = ""
    extract: _Extracted | None = None
    consolidate: _Ended | None = None
    stopped: _Ended | None = None


def pass_line(record: PassRecord) -> PassLine:
    """A pass's report, in short."""
    try:
        report = msgspec.json.decode(record.report_json, type=_Report)
    except (msgspec.DecodeError, UnicodeDecodeError):  # of another version, or with bytes that are no text
        return PassLine(at=record.at, reason="its report can't be read")
    extracted, ended = report.extract or _Extracted(), report.consolidate or _Ended()
    stopped = report.stopped or _Ended()
    return PassLine(
        at=record.at,
        skipped=report.skipped,
        with_output=extracted.with_output,
        no_output=extracted.no_output,
        failed=extracted.failed,
        fallbacks=extracted.fallbacks,
        failure=next((each.reason for each in extracted.outcomes if each.outcome == "failed"), None),
        is_fallback=ended.fallback_reason is not None,
        consolidation=ended.outcome,
        consolidation_status=ended.status,
        reason=stopped.reason or ended.reason or _by_rules(ended) or report.detail or None,
    )


def _by_rules(ended: _Ended) -> str | None:
    reason = ended.fallback_reason
    return f"by the offline engine, as the model failed: {reason}" if reason else None


def _spent(totals: Sequence[SpendingTotal]) -> tuple[Spent, ...]:
    """By phase and model, whatever the day."""
    days: defaultdict[tuple[str, str], list[SpendingTotal]] = defaultdict(list)
    for total in totals:
        days[total.phase, total.model].append(total)
    return tuple(
        Spent(
            phase=phase,
            model=model,
            calls=sum(total.calls for total in each),
            failed_calls=sum(total.failed_calls for total in each),
            usage=sum((total.usage for total in each), Usage()),
            cost_usd=sum(total.cost_usd for total in each),
            unpriced_calls=sum(total.unpriced_calls for total in each),
        )
        for (phase, model), each in sorted(days.items())
        if model != OFFLINE
    )


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
