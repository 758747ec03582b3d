"""The rules about extracting a thread: what each compares, and what would change its mind."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import NamedTuple

from stillroom.store import leases
from stillroom.store.claims import is_done, is_newer, retries_left
from stillroom.store.rules.values import (
    SOURCES,
    Change,
    ExtractionRule,
    Facts,
    Question,
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


class Rule(NamedTuple):
    """One rule. Its parts are apart, because a list of 20,000 threads asks for verdicts only."""

    name: ExtractionRule
    judge: Callable[[Facts, Question], Verdict]
    #: What was compared, and when it lifts by itself.
    tell: Callable[[Facts, Question], tuple[Values, int | None]]
    change: Callable[[Facts, Question], Change]


def _changed_by(
    setting: str | None = None, *, command: str | None = None, otherwise: str | None = None
) -> Callable[[Facts, Question], Change]:
    """The same of every thread."""
    change = Change(setting, command, otherwise)
    return lambda facts, question: change


def _of_thread(change: Callable[[Facts], Change]) -> Callable[[Facts, Question], Change]:
    """The same of every pass."""
    return lambda facts, question: change(facts)


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
        "expired_at": job.expired_at if job and facts.output_watermark is None else None,
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


def _session(facts: Facts, question: Question) -> Verdict:
    return "passes" if not question.sessions or facts.thread_id in question.sessions else "refuses"


def _idle(facts: Facts, question: Question) -> Verdict:
    is_over = facts.ended or bool(question.sessions) or facts.updated_at_ms <= newest_ms(question)
    return "passes" if is_over else "waits"


def _tell_idle(facts: Facts, question: Question) -> tuple[Values, int | None]:
    # Rounded up: at that very second it is over.
    until = -(-(facts.updated_at_ms + question.now_ms - newest_ms(question)) // 1000)
    values: Values = {"updated_at": facts.watermark, "idle_seconds": question.memories.idle_seconds}
    return {**values, "ended": facts.ended}, until


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


EXTRACTION: tuple[Rule, ...] = (
    Rule(
        "enabled",
        lambda facts, question: "passes" if question.memories.enabled else "refuses",
        lambda facts, question: ({"enabled": question.memories.enabled}, None),
        _changed_by("memories.enabled"),
    ),
    Rule(
        "mode",
        lambda facts, question: "passes" if facts.mode == "enabled" else "refuses",
        lambda facts, question: ({"recorded": facts.recorded_mode, "chosen": facts.chosen_mode}, None),
        _of_thread(remember_thread),
    ),
    Rule(
        "project",
        lambda facts, question: "refuses" if facts.switched_off else "passes",
        lambda facts, question: ({"cwd": facts.cwd, "switched_off": facts.switched_off}, None),
        _of_thread(remember_project),
    ),
    # What is done is done, whatever would refuse it today.
    Rule("watermark", _watermark, _tell_watermark, _of_thread(extract_again)),
    Rule(
        "missing",
        lambda facts, question: "refuses" if facts.missing else "passes",
        lambda facts, question: ({"missing": facts.missing}, None),
        _changed_by("sources", otherwise="its file, back in one of them"),
    ),
    Rule(
        "archived",
        lambda facts, question: "refuses" if facts.archived else "passes",
        lambda facts, question: ({"archived": facts.archived}, None),
        _changed_by(otherwise="its agent, which archived it"),
    ),
    Rule(
        "preview",
        lambda facts, question: "passes" if facts.has_words else "refuses",
        lambda facts, question: ({"has_words": facts.has_words}, None),
        _changed_by(otherwise="a person's words in it"),
    ),
    Rule(
        "memory_worker",
        _memory_worker,
        lambda facts, question: ({"source": facts.source}, None),
        _changed_by(otherwise="nothing: a memory learns nothing of itself"),
    ),
    Rule(
        "source",
        lambda facts, question: "passes" if facts.source in SOURCES else "refuses",
        lambda facts, question: ({"source": facts.source}, None),
        _changed_by(otherwise="nothing: only what people took part in is learnt from"),
    ),
    Rule(
        "current",
        lambda facts, question: "waits" if facts.thread_id == question.current_thread_id else "passes",
        lambda facts, question: ({"current_thread_id": question.current_thread_id}, None),
        _changed_by(otherwise="a pass that another session starts, or a person"),
    ),
    Rule(
        "cwd",
        _cwd,
        lambda facts, question: ({"cwd": facts.cwd, "asked": question.cwd}, None),
        _changed_by(otherwise="a pass without `--cwd`"),
    ),
    Rule(
        "session",
        _session,
        lambda facts, question: ({"asked": bool(question.sessions)}, None),
        _changed_by(otherwise="a pass without `--session`"),
    ),
    Rule(
        "idle",
        _idle,
        _tell_idle,
        lambda facts, question: Change(
            question.memories.idle_setting, f"stillroom run --session {shlex.quote(facts.thread_id)}"
        ),
    ),
    Rule(
        "age",
        _age,
        lambda facts, question: (
            {"updated_at": facts.watermark, "max_rollout_age_days": question.memories.max_rollout_age_days},
            None,
        ),
        _changed_by("memories.max_rollout_age_days", command=_BACKFILL),
    ),
    Rule(
        "scan_limit",
        _scan_limit,
        lambda facts, question: (
            {"newer_threads": facts.scanned_before, "thread_scan_limit": question.stage.thread_scan_limit},
            None,
        ),
        _changed_by(command=_BACKFILL),
    ),
    # Of a process that is gone; one that is at work ends by itself.
    Rule("lease", _lease, _tell_lease, _changed_by(command="stillroom doctor --fix")),
    Rule("retries", _retries, _tell_retries, _changed_by(command=_RETRY)),
    Rule("backoff", _backoff, _tell_backoff, _changed_by(command=_RETRY)),
    Rule(
        "paused",
        lambda facts, question: "waits" if question.paused_since else "passes",
        lambda facts, question: ({"paused_since": question.paused_since}, None),
        _changed_by(command="stillroom resume"),
    ),
    Rule("cap", _cap, _tell_cap, _changed_by("memories.max_rollouts_per_startup", command=_BACKFILL)),
)
"""The rules about extracting a thread, in the order in which they are told."""
