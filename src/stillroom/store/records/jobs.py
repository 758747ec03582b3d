"""Who may do a job, and how jobs stand."""

from __future__ import annotations

from typing import Literal

import msgspec


class Stage1Claim(msgspec.Struct, frozen=True, kw_only=True):
    """The right to extract one thread, until the lease ends."""

    thread_id: str
    ownership_token: str
    source_updated_at: int  #: seconds; becomes the watermark


class UpToDate(msgspec.Struct, frozen=True):
    """The thread was extracted at this watermark, or later."""


class Running(msgspec.Struct, frozen=True):
    """Somebody holds a fresh lease, or the cap of running jobs is reached."""


class RetryBackoff(msgspec.Struct, frozen=True):
    """A failure is too recent."""

    retry_at: int


class RetryExhausted(msgspec.Struct, frozen=True):
    """It failed too often; only new activity in the thread revives it."""


Stage1ClaimOutcome = Stage1Claim | UpToDate | Running | RetryBackoff | RetryExhausted


class ConsolidationClaim(msgspec.Struct, frozen=True, kw_only=True):
    """The global lock of phase 2."""

    ownership_token: str
    input_watermark: int


class Cooldown(msgspec.Struct, frozen=True):
    """A success is too recent."""

    until: int


ConsolidationClaimOutcome = ConsolidationClaim | Running | RetryBackoff | Cooldown

JobStatus = Literal["pending", "running", "done", "error"]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as the database has it. All times in seconds."""

    status: JobStatus
    retry_remaining: int
    worker_id: str | None = None
    ownership_token: str | None = None
    started_at: int | None = None
    leased_at: int | None = None  #: when the lease was given or last renewed
    lease_until: int | None = None
    finished_at: int | None = None
    retry_at: int | None = None
    last_error: str | None = None
    input_watermark: int | None = None
    last_success_watermark: int | None = None
    reopened: bool = False  #: to be done again although its watermark is reached
    #: Who did a job of phase 1 last: `offline`, or a model.
    engine: str | None = None
    #: What it gave was removed then, because nobody used it.
    expired_at: int | None = None


class ThreadsLeft(msgspec.Struct, frozen=True, kw_only=True):
    """Threads that are not extracted, by the first reason that holds."""

    not_idle: int = 0  #: not over, and active a moment ago: `min_rollout_idle_hours`, `offline_idle_minutes`
    too_old: int = 0  #: active longer than `max_rollout_age_days` ago; a backfill takes them
    waiting: int = 0  #: for the next pass
    running: int = 0  #: with another process, or with one that was killed, until its lease ends
    retry_later: int = 0  #: failed, in the pause before the next try
    given_up: int = 0  #: failed too often; only new activity revives them
    current: int = 0  #: the session that the pass is started from
    switched_off: int = 0  #: `disabled` or `polluted`
    archived: int = 0
    not_interactive: int = 0  #: without a person: `exec`, sub-agents, sessions without a word
