"""The rules about extracting a thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from stillroom.store import leases
from stillroom.store.claims import is_done, is_newer, retries_left
from stillroom.store.rules.values import (
    SOURCES,
    Change,
    ExtractionRule,
    Facts,
    Question,
    RuleName,
    Ruling,
    State,
    Values,
    Verdict,
    extract_again,
    newest_ms,
    oldest_ms,
    remember_project,
    remember_thread,
    room_in_claim,
    room_in_scan,
)

_BACKFILL = "stillroom run --backfill"
_RETRY = "stillroom run --retry"


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
    job = facts.job
    reopened = job is not None and job.reopened and (question.upgrade or (question.retry and job.status != "done"))
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
        remember_thread,
    ),
    _Rule(
        "project",
        lambda facts, question: "refuses" if facts.switched_off else "passes",
        lambda facts, question: ({"cwd": facts.cwd, "switched_off": facts.switched_off}, None),
        remember_project,
    ),
    # What is done is done, whatever would refuse it today.
    _Rule("watermark", _watermark, _tell_watermark, extract_again),
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
