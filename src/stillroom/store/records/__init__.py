"""What the store hands out: values and closed unions of outcomes."""

from __future__ import annotations

from stillroom.store.records.jobs import (
    ConsolidationClaim,
    ConsolidationClaimOutcome,
    Cooldown,
    Job,
    RetryBackoff,
    RetryExhausted,
    Running,
    Stage1Claim,
    Stage1ClaimOutcome,
    ThreadsLeft,
    UpToDate,
)
from stillroom.store.records.ledger import (
    PassRecord,
    RateLimitSnapshot,
    SpendingTotal,
    Spent,
)
from stillroom.store.records.outputs import (
    Learnt,
    OutputStamp,
    RawMemory,
    Selection,
    Stage1Draft,
    Stage1Output,
    Stage1Restored,
    Withheld,
    Worth,
)
from stillroom.store.records.places import (
    Checkout,
    Folder,
    Place,
    Told,
)
from stillroom.store.records.reads import (
    ReadTotal,
    ThreadRead,
    UnknownField,
    UnknownTotal,
)
from stillroom.store.records.uses import (
    RecordedUse,
    Use,
)

__all__ = [
    "Checkout",
    "ConsolidationClaim",
    "ConsolidationClaimOutcome",
    "Cooldown",
    "Folder",
    "Job",
    "Learnt",
    "OutputStamp",
    "PassRecord",
    "Place",
    "RateLimitSnapshot",
    "RawMemory",
    "ReadTotal",
    "RecordedUse",
    "RetryBackoff",
    "RetryExhausted",
    "Running",
    "Selection",
    "SpendingTotal",
    "Spent",
    "Stage1Claim",
    "Stage1ClaimOutcome",
    "Stage1Draft",
    "Stage1Output",
    "Stage1Restored",
    "ThreadRead",
    "ThreadsLeft",
    "Told",
    "UnknownField",
    "UnknownTotal",
    "UpToDate",
    "Use",
    "Withheld",
    "Worth",
]
