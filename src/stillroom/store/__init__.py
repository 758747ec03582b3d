"""The state database: threads, stage-1 outputs, jobs with leases, selection, usage, spending."""

from __future__ import annotations

from stillroom.store.records import (
    ConsolidationClaim,
    ConsolidationClaimOutcome,
    Cooldown,
    Job,
    PassRecord,
    RateLimitSnapshot,
    RecordedUse,
    RetryBackoff,
    RetryExhausted,
    Running,
    Selection,
    SpendingTotal,
    Stage1Claim,
    Stage1ClaimOutcome,
    Stage1Draft,
    Stage1Output,
    UpToDate,
    Use,
)
from stillroom.store.rules import Question, Ruling
from stillroom.store.standings import Explanation, Standing, Survey, Troubled
from stillroom.store.store import Store

__all__ = [
    "ConsolidationClaim",
    "ConsolidationClaimOutcome",
    "Cooldown",
    "Explanation",
    "Job",
    "PassRecord",
    "Question",
    "RateLimitSnapshot",
    "RecordedUse",
    "RetryBackoff",
    "RetryExhausted",
    "Ruling",
    "Running",
    "Selection",
    "SpendingTotal",
    "Stage1Claim",
    "Stage1ClaimOutcome",
    "Stage1Draft",
    "Stage1Output",
    "Standing",
    "Store",
    "Survey",
    "Troubled",
    "UpToDate",
    "Use",
]
