"""Why a thread is extracted, selected and kept, or is not: every rule as a value.

The claim decides by an index and a few queries (`claims.scan`, `claims.claim_first`, `selection.select`), so that
it stays quick among 100,000 threads. These rules say the same of one thread in words that a person can be shown; a test
compares both on random stores.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import msgspec

from stillroom.config import OFFLINE, Memories, StageOne
from stillroom.store import leases
from stillroom.store.claims import is_done, is_newer, retries_left
from stillroom.store.records import Job, Told

_DAY = 24 * 3600
_HOUR = 3600
_BACKFILL = "stillroom run --backfill"
_RETRY = "stillroom run --retry"

SOURCES = frozenset({"cli", "vscode", "atlas", "chatgpt", '{"custom":"atlas"}', '{"custom":"chatgpt"}'})
"""How sessions with a person at the other end are started; the schema has the same list."""

Verdict = Literal["passes", "refuses", "waits", "done", "not_reached"]
"""`waits`: time, or another process, lifts it. `done`: nothing to do. `not_reached`: an earlier rule refuses."""

ExtractionRule = Literal[
    "enabled", "mode", "project", "watermark", "missing", "archived", "preview", "memory_worker", "source", "current",
    "cwd", "idle", "age", "scan_limit", "lease", "retries", "backoff", "paused", "cap",
]  # fmt: skip
SelectionRule = Literal["output", "remembered", "words", "undone", "used", "rank"]
RetentionRule = Literal["kept"]
RuleName = ExtractionRule | SelectionRule | RetentionRule

State = Literal["extracted", "no_output", "next", "waiting", "running", "failed", "excluded"]
"""How a thread stands. `next`: the next pass takes it."""


Values = dict[str, str | int | bool | None]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The pass that the rules are asked for; without more than the settings, one that a hook starts."""

    memories: Memories
    stage: StageOne
    now_ms: int
    current_thread_id: str | None = None
    cwd: str | None = None
    backfill: bool = False
    #: Whoever was reopened is taken, however old, as in a backfill.
    upgrade: bool = False
    #: Takes the place of `max_rollouts_per_startup`.
    max_threads: int | None = None
    #: When a person paused all passes, as it was written down; None: they are not.
    paused_since: str | None = None

    @property
    def now(self) -> int:
        return self.now_ms // 1000

    @property
    def cap(self) -> int | None:
        """Threads that the pass may take; None: all."""
        if self.max_threads is not None:
            return self.max_threads
        return None if self.backfill or self.upgrade else self.memories.max_rollouts_per_startup


class Output(NamedTuple):
    """What was extracted of a thread, without its texts. Times in seconds."""

    source_updated_at: int
    generated_at: int
    usage_count: int
    last_usage: int | None
    is_blank: bool
    #: Whether the last successful consolidation drew on it, and on which version.
    selected: bool
    selected_source_updated_at: int | None
    #: What an undo decided of it: `out` of the folder, or `in` it however old it is.
    held: str | None
    #: Among all that may be selected, from 0; None: it may not.
    rank: int | None

    @property
    def last_used(self) -> int:
        return self.source_updated_at if self.last_usage is None else self.last_usage


class Facts(msgspec.Struct):
    """What the database says of a thread, as far as a rule asks for it; what comes before it is counted meanwhile."""

    thread_id: str
    source: str
    cwd: str
    updated_at_ms: int
    has_words: bool
    recorded_mode: str
    chosen_mode: str | None
    #: It ran in a project whose memory is switched off.
    switched_off: bool
    archived: bool
    missing: bool
    job: Job | None
    #: Up to which activity its output goes; None: there is none.
    output_watermark: int | None
    #: Newer threads that the scan looks at before it; None: it does not look at this one.
    scanned_before: int | None = None
    #: Newer threads that a pass takes before it; None: this one can't be taken.
    claimed_before: int | None = None
    #: Threads that other processes hold.
    running: int = 0
    #: The thread that tells what it begins with.
    told: Told | None = None

    @property
    def watermark(self) -> int:
        return self.updated_at_ms // 1000

    @property
    def mode(self) -> str:
        return self.recorded_mode if self.chosen_mode is None else self.chosen_mode


class Change(NamedTuple):
    """What would have a rule decide otherwise."""

    #: The key of `config.toml`.
    setting: str | None = None
    #: The command.
    command: str | None = None
    #: Where neither does: what else does, in words.
    otherwise: str | None = None


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What one rule says of one thread."""

    rule: RuleName
    verdict: Verdict
    #: What was compared, e.g. `{"idle_hours": 2, "min_rollout_idle_hours": 6}`. Times in seconds since 1970.
    values: Values
    #: What would change it, as `Change` says; a rule that lets the thread pass says it too.
    setting: str | None = None
    command: str | None = None
    otherwise: str | None = None
    #: When it lifts by itself, in seconds.
    until: int | None = None


class _Rule(NamedTuple):
    """Apart, because a list of 20,000 threads asks for verdicts only."""

    name: ExtractionRule
    judge: Callable[[Facts, Question], Verdict]
    #: What was compared, and when it lifts by itself.
    tell: Callable[[Facts, Question], tuple[Values, int | None]]
    change: Callable[[Facts], Change]


def rule_on_extraction(facts: Facts, question: Question) -> Iterator[Ruling]:
    """Every rule about extracting a thread, in order. The first that does not pass decides."""
    for rule in EXTRACTION:
        yield _ruled(rule, rule.judge(facts, question), facts, question)


def deciding_rule(facts: Facts, question: Question) -> ExtractionRule | None:
    """The first rule on extraction that does not let the thread pass; None: all do."""
    for rule in EXTRACTION:
        if rule.judge(facts, question) != "passes":
            return rule.name
    return None


def ruling(name: ExtractionRule, facts: Facts, question: Question) -> Ruling:
    """What one rule on extraction says of a thread."""
    rule = _BY_NAME[name]
    return _ruled(rule, rule.judge(facts, question), facts, question)


def is_scanned(facts: Facts, question: Question, decided: ExtractionRule | None) -> bool:
    """Whether the scan looks at the thread of which this rule decided, if its limit lets it."""
    return _pass(_SCANNED, facts, question, decided)


def is_claimable(facts: Facts, question: Question, decided: ExtractionRule | None) -> bool:
    """Whether a pass takes a thread that the scan looks at, if its cap lets it."""
    return _pass(_CLAIMED, facts, question, decided)


def state_of(decided: RuleName | None, *, has_output: bool) -> State:
    """How a thread stands of which this rule decided."""
    match decided:
        case None:
            return "next"
        case "watermark":
            return "extracted" if has_output else "no_output"
        case "idle" | "paused" | "cap":
            return "waiting"
        case "lease":
            return "running"
        case "backoff" | "retries":
            return "failed"
        case _:
            return "excluded"


def rule_on_selection(facts: Facts, output: Output | None, question: Question) -> Iterator[Ruling]:
    """Every rule about consolidating what was extracted, in order. The first that does not pass decides."""
    memories = question.memories
    if output is None:
        done = facts.job is not None and facts.job.status == "done"
        change = Change(otherwise="its extraction, of which the rules are above")
        if done:
            change = _extract_again(facts) if facts.mode == "enabled" else _remember_thread(facts)
        values: Values = {"extracted": done, "reason": facts.job.last_error if facts.job else None}
        yield Ruling(rule="output", verdict="refuses", values=values, **change._asdict())
        return
    yield Ruling(rule="output", verdict="passes", values={"generated_at": output.generated_at})
    refused = facts.mode != "enabled" or facts.switched_off
    yield Ruling(
        rule="remembered",
        verdict="refuses" if refused else "passes",
        values={"mode": facts.mode, "project_switched_off": facts.switched_off},
        **(_remember_thread(facts) if facts.mode != "enabled" else _remember_project(facts))._asdict(),
    )
    blank: Verdict = "refuses" if output.is_blank else "passes"
    yield Ruling(rule="words", verdict=blank, values={}, **_extract_again(facts)._asdict())
    yield Ruling(
        rule="undone",
        verdict="refuses" if output.held == "out" else "passes",
        values={"held": output.held},
        command="stillroom redo",
    )
    yield Ruling(
        rule="used",
        verdict="refuses" if _is_unused(output, question) else "passes",
        values={
            "usage_count": output.usage_count,
            "last_used": output.last_used,
            "max_unused_days": memories.max_unused_days,
        },
        setting="memories.max_unused_days",
    )
    limit = memories.max_raw_memories_for_consolidation
    verdict: Verdict = "not_reached" if output.rank is None else "passes" if output.rank < limit else "refuses"
    yield Ruling(
        rule="rank",
        verdict=verdict,
        values={
            "rank": None if output.rank is None else output.rank + 1,
            "max_raw_memories_for_consolidation": limit,
            "in_folder": output.selected,
            "in_folder_as_extracted": output.selected_source_updated_at == output.source_updated_at,
        },
        setting="memories.max_raw_memories_for_consolidation",
    )


def rule_on_retention(output: Output, question: Question) -> Ruling:
    """Whether a pass removes what was extracted. `waits`: it does once no memory file rests on it."""
    unused = _is_unused(output, question)
    return Ruling(
        rule="kept",
        verdict="passes" if not unused else "waits" if output.selected else "refuses",
        values={
            "last_used": output.last_used,
            "max_unused_days": question.memories.max_unused_days,
            "in_folder": output.selected,
        },
        setting="memories.max_unused_days",
        until=None if unused else output.last_used + max(question.memories.max_unused_days, 0) * _DAY,
    )


def _is_unused(output: Output, question: Question) -> bool:
    """For too long; what an undo brought back stays as if it were used."""
    return output.held != "in" and output.last_used < cutoff(question)


def cutoff(question: Question) -> int:
    """Whoever was not used since this second was unused for too long."""
    return question.now - max(question.memories.max_unused_days, 0) * _DAY


def newest_ms(question: Question) -> int:
    """Whoever was active later was so too recently."""
    return question.now_ms - max(question.memories.min_rollout_idle_hours, 0) * _HOUR * 1000


def oldest_ms(question: Question) -> float:
    """Whoever was last active earlier is too old."""
    days = max(question.memories.max_rollout_age_days, 0)
    return -math.inf if question.backfill else question.now_ms - days * _DAY * 1000


def room_in_scan(question: Question) -> float:
    """So many threads the scan looks at."""
    limit = question.stage.thread_scan_limit
    return math.inf if (question.backfill or question.upgrade) and limit > 0 else limit


def room_in_claim(question: Question, running: int) -> float:
    """So many threads a pass takes beside those that others hold."""
    return math.inf if question.cap is None else question.cap - running


def _pass(rules: dict[ExtractionRule, _Rule], facts: Facts, question: Question, decided: ExtractionRule | None) -> bool:
    if decided in rules:
        return False
    # All that stand ahead of the one that decided let the thread pass: mostly nothing is left to judge.
    if decided is None or _ORDER[decided] > _ORDER[next(reversed(rules))]:
        return True
    return all(rule.judge(facts, question) == "passes" for rule in rules.values())


def _ruled(rule: _Rule, verdict: Verdict, facts: Facts, question: Question) -> Ruling:
    values, until = rule.tell(facts, question)
    return Ruling(
        rule=rule.name,
        verdict=verdict,
        values=values,
        **rule.change(facts)._asdict(),
        until=until if verdict == "waits" else None,
    )


def _changed_by(
    setting: str | None = None, *, command: str | None = None, otherwise: str | None = None
) -> Callable[[Facts], Change]:
    """The same of every thread."""
    change = Change(setting, command, otherwise)
    return lambda facts: change


def _remember_thread(facts: Facts) -> Change:
    return Change(command=f"stillroom memories --on --thread {shlex.quote(facts.thread_id)}")


def _remember_project(facts: Facts) -> Change:
    return Change(command=f"stillroom memories --on --cwd {shlex.quote(facts.cwd)}")


def _extract_again(facts: Facts) -> Change:
    """What the rules did may be done again by a model; of what a model did only the session can say more."""
    if facts.job is None or facts.job.engine == OFFLINE:
        return Change(command="stillroom run --upgrade")
    return Change(otherwise="more that is said in it")


def _watermark(facts: Facts, question: Question) -> Verdict:
    job, output = facts.job, facts.output_watermark
    if job is not None and (job.reopened or is_done(job, facts.watermark)):
        return "passes" if job.reopened else "done"
    return "passes" if output is None or output < facts.watermark else "done"


def _tell_watermark(facts: Facts, question: Question) -> tuple[Values, int | None]:
    job = facts.job
    values: Values = {
        "updated_at": facts.watermark,
        "extracted_up_to": job.last_success_watermark if job else facts.output_watermark,
        "engine": job.engine if job else None,
        "reopened": job is not None and job.reopened,
        "told_in": facts.told.thread_id if facts.told else None,
        "told_items": facts.told.items if facts.told else 0,
        "told_whole": facts.told is not None and facts.told.items == facts.told.of,
    }
    return values, None


def _memory_worker(facts: Facts, question: Question) -> Verdict:
    return "refuses" if "internal" in facts.source or "memory_consolidation" in facts.source else "passes"


def _cwd(facts: Facts, question: Question) -> Verdict:
    if question.cwd is None:
        return "passes"
    asked = question.cwd.rstrip("/")
    return "passes" if facts.cwd == asked or facts.cwd.startswith(asked + "/") else "refuses"


def _idle(facts: Facts, question: Question) -> Verdict:
    return "passes" if facts.updated_at_ms <= newest_ms(question) else "waits"


def _tell_idle(facts: Facts, question: Question) -> tuple[Values, int | None]:
    hours = question.memories.min_rollout_idle_hours
    # Rounded up: at that very second it is over.
    until = -(-(facts.updated_at_ms + question.now_ms - newest_ms(question)) // 1000)
    return {"updated_at": facts.watermark, "min_rollout_idle_hours": hours}, until


def _age(facts: Facts, question: Question) -> Verdict:
    reopened = question.upgrade and facts.job is not None and facts.job.reopened
    return "passes" if reopened or facts.updated_at_ms >= oldest_ms(question) else "refuses"


def _scan_limit(facts: Facts, question: Question) -> Verdict:
    if facts.scanned_before is None:
        return "not_reached"
    return "passes" if facts.scanned_before < room_in_scan(question) else "refuses"


def _lease(facts: Facts, question: Question) -> Verdict:
    return "waits" if facts.job is not None and leases.is_leased(facts.job, now=question.now) else "passes"


def _tell_lease(facts: Facts, question: Question) -> tuple[Values, int | None]:
    if (job := facts.job) is None:
        return {"worker": None}, None
    return {"worker": job.worker_id, "lease_until": job.lease_until}, job.lease_until


def _retries(facts: Facts, question: Question) -> Verdict:
    return "passes" if retries_left(facts.job, facts.watermark, stage=question.stage) > 0 else "refuses"


def _tell_retries(facts: Facts, question: Question) -> tuple[Values, int | None]:
    left = max(retries_left(facts.job, facts.watermark, stage=question.stage), 0)
    return {"retries_left": left, "last_error": facts.job.last_error if facts.job else None}, None


def _backoff(facts: Facts, question: Question) -> Verdict:
    job = facts.job
    # New activity lifts the pause after a failure.
    if job is None or is_newer(job, facts.watermark) or not leases.is_paused(job, now=question.now):
        return "passes"
    return "waits"


def _tell_backoff(facts: Facts, question: Question) -> tuple[Values, int | None]:
    if (job := facts.job) is None:
        return {"retry_at": None}, None
    return {"retry_at": job.retry_at, "last_error": job.last_error}, job.retry_at


def _cap(facts: Facts, question: Question) -> Verdict:
    if facts.claimed_before is None:
        return "not_reached"
    return "passes" if facts.claimed_before < room_in_claim(question, facts.running) else "waits"


def _tell_cap(facts: Facts, question: Question) -> tuple[Values, int | None]:
    values: Values = {"newer_threads": facts.claimed_before, "running": facts.running}
    return {**values, "max_rollouts_per_startup": question.cap}, None


EXTRACTION: tuple[_Rule, ...] = (
    _Rule(
        "enabled",
        lambda facts, question: "passes" if question.memories.enabled else "refuses",
        lambda facts, question: ({"enabled": question.memories.enabled}, None),
        _changed_by("memories.enabled"),
    ),
    _Rule(
        "mode",
        lambda facts, question: "passes" if facts.mode == "enabled" else "refuses",
        lambda facts, question: ({"recorded": facts.recorded_mode, "chosen": facts.chosen_mode}, None),
        _remember_thread,
    ),
    _Rule(
        "project",
        lambda facts, question: "refuses" if facts.switched_off else "passes",
        lambda facts, question: ({"cwd": facts.cwd, "switched_off": facts.switched_off}, None),
        _remember_project,
    ),
    # What is done is done, whatever would refuse it today.
    _Rule("watermark", _watermark, _tell_watermark, _extract_again),
    _Rule(
        "missing",
        lambda facts, question: "refuses" if facts.missing else "passes",
        lambda facts, question: ({"missing": facts.missing}, None),
        _changed_by("sources", otherwise="its file, back in one of them"),
    ),
    _Rule(
        "archived",
        lambda facts, question: "refuses" if facts.archived else "passes",
        lambda facts, question: ({"archived": facts.archived}, None),
        _changed_by(otherwise="its agent, which archived it"),
    ),
    _Rule(
        "preview",
        lambda facts, question: "passes" if facts.has_words else "refuses",
        lambda facts, question: ({"has_words": facts.has_words}, None),
        _changed_by(otherwise="a person's words in it"),
    ),
    _Rule(
        "memory_worker",
        _memory_worker,
        lambda facts, question: ({"source": facts.source}, None),
        _changed_by(otherwise="nothing: a memory learns nothing of itself"),
    ),
    _Rule(
        "source",
        lambda facts, question: "passes" if facts.source in SOURCES else "refuses",
        lambda facts, question: ({"source": facts.source}, None),
        _changed_by(otherwise="nothing: only what people took part in is learnt from"),
    ),
    _Rule(
        "current",
        lambda facts, question: "waits" if facts.thread_id == question.current_thread_id else "passes",
        lambda facts, question: ({"current_thread_id": question.current_thread_id}, None),
        _changed_by(otherwise="a pass that another session starts, or a person"),
    ),
    _Rule(
        "cwd",
        _cwd,
        lambda facts, question: ({"cwd": facts.cwd, "asked": question.cwd}, None),
        _changed_by(otherwise="a pass without `--cwd`"),
    ),
    _Rule("idle", _idle, _tell_idle, _changed_by("memories.min_rollout_idle_hours")),
    _Rule(
        "age",
        _age,
        lambda facts, question: (
            {"updated_at": facts.watermark, "max_rollout_age_days": question.memories.max_rollout_age_days},
            None,
        ),
        _changed_by("memories.max_rollout_age_days", command=_BACKFILL),
    ),
    _Rule(
        "scan_limit",
        _scan_limit,
        lambda facts, question: (
            {"newer_threads": facts.scanned_before, "thread_scan_limit": question.stage.thread_scan_limit},
            None,
        ),
        _changed_by(command=_BACKFILL),
    ),
    # Of a process that is gone; one that is at work ends by itself.
    _Rule("lease", _lease, _tell_lease, _changed_by(command="stillroom doctor --fix")),
    _Rule("retries", _retries, _tell_retries, _changed_by(command=_RETRY)),
    _Rule("backoff", _backoff, _tell_backoff, _changed_by(command=_RETRY)),
    _Rule(
        "paused",
        lambda facts, question: "waits" if question.paused_since else "passes",
        lambda facts, question: ({"paused_since": question.paused_since}, None),
        _changed_by(command="stillroom resume"),
    ),
    _Rule("cap", _cap, _tell_cap, _changed_by("memories.max_rollouts_per_startup", command=_BACKFILL)),
)
"""The rules about extracting a thread, in the order in which they are told."""

_BY_NAME = {rule.name: rule for rule in EXTRACTION}
_ORDER = {rule.name: place for place, rule in enumerate(EXTRACTION)}


def _named(*names: ExtractionRule) -> dict[ExtractionRule, _Rule]:
    return {name: _BY_NAME[name] for name in names}


#: What the scan asks of a thread, ahead of its limit; and what a claim asks then, ahead of its cap.
_SCANNED = _named("mode", "project", "missing", "archived", "preview", "source", "current", "cwd", "idle", "age")
_CLAIMED = _named("watermark", "scan_limit", "lease", "retries", "backoff", "paused")
