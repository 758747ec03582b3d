"""What the store hands out: values and closed unions of outcomes."""

from __future__ import annotations

import msgspec


class Stage1Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What extraction makes of a thread. Both texts non-empty, already redacted."""

    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None = None


class Stage1Output(msgspec.Struct, frozen=True, kw_only=True):
    """A stored draft with what is known of its thread: the input of phase 2."""

    thread_id: str
    source_updated_at: int  #: seconds; the thread's `updated_at` that was extracted
    raw_memory: str
    rollout_summary: str
    rollout_slug: str | None
    rollout_path: str
    cwd: str
    git_branch: str | None
    git_origin_url: str | None
    generated_at: int  #: seconds
    engine: str  #: `offline`, or the model's `provider:name`
    usage_count: int = 0
    last_usage: int | None = None  #: seconds


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


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of phase 2 (spec §4.8, with the union that the seeds describe)."""

    #: The top N, in rank order.
    selected: tuple[Stage1Output, ...]
    #: `selected` and those of the previous selection that are still allowed, ascending by thread id: the files on disk.
    on_disk: tuple[Stage1Output, ...]
