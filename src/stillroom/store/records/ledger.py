"""What passes did, and what they spent."""

from __future__ import annotations

import msgspec

from stillroom.spending import Usage


class SpendingTotal(msgspec.Struct, frozen=True, kw_only=True):
    """What one model was used for on one day, in one phase."""

    day: str  #: `2026-05-01`, UTC
    phase: str
    model: str
    calls: int
    failed_calls: int
    unpriced_calls: int  #: calls whose price is not known: `cost_usd` is without them
    cost_usd: float
    usage: Usage


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What was used since a moment, as far as the calls were counted."""

    since: int = 0  #: seconds
    last_id: int = 0  #: the last call that was counted
    usage: Usage = Usage()


class RateLimitSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider last said about its limits, as it was saved."""

    provider: str
    snapshot_json: bytes
    at: int  #: seconds


class PassRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a finished pass, as it was saved."""

    at: int  #: seconds
    report_json: bytes
