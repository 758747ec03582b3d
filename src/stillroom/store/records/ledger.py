"""What passes did, what they spent, and how the memory was used."""

from __future__ import annotations

from typing import Literal

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


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A message that cites memory, or a command that reads it."""

    kind: Literal["citation", "command"]
    #: Tells what is said or run: two that are equal have the same.
    digest: bytes
    #: Of those in the session that are equal, from 1; None: it is one more.
    nth: int | None
    at: int  #: seconds
    #: The threads whose memory is cited, each once; of a command the kinds of memory that it reads.
    used: tuple[str, ...]
    #: The digest by which the same is known if it came another way; of the two only the first counts.
    twin: bytes | None = None

    @property
    def key(self) -> tuple[bytes, int | None]:
        """By which it is known in its session."""
        return self.digest, self.nth


class RecordedUse(msgspec.Struct, frozen=True, kw_only=True):
    """A use that was not known before."""

    use: Use
    #: Of what was used: what is there to be counted.
    counted: tuple[str, ...]
    #: Its twin was counted, and it was not.
    again: bool = False
