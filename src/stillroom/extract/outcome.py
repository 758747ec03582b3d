"""How the extraction of a thread can end: a closed union; and the report of a whole phase 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from stillroom.spending import Usage
from stillroom.store.records import ThreadsLeft

_Counts = TypeVar("_Counts", bound=msgspec.Struct)


class ReadTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of one session, or of all."""

    bytes: int = 0
    items: int = 0
    #: Of the items: what people, the assistant and other agents said.
    messages: int = 0
    #: Of the items as JSON, four bytes to a token.
    tokens: int = 0
    #: Lines that could not be parsed, and were skipped.
    bad_lines: int = 0
    #: Lines over the limit, which were cut.
    long_lines: int = 0
    cut_bytes: int = 0

    def __add__(self, other: ReadTotals) -> ReadTotals:
        return _sum(self, other)


class WithOutput(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="with_output"):
    """A memory was stored."""

    thread_id: str
    usage: Usage | None = None  #: None: no model was called
    read: ReadTotals = ReadTotals()
    #: The input did not fit and its middle was left out.
    cut: bool = False


class NoOutput(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="no_output"):
    """The session holds nothing durable: a success without a row."""

    thread_id: str
    usage: Usage | None = None
    read: ReadTotals = ReadTotals()
    cut: bool = False


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="failed"):
    """It did not work; the thread is tried again after a pause, as long as it has retries."""

    thread_id: str
    reason: str  #: redacted
    #: The offline engine's result is used until a model answers.
    fallback: bool = False
    #: The provider refused the key or the model: no try was spent, and no other thread is asked about in this pass.
    refused: bool = False


class LostLease(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="lost_lease"):
    """Another process has taken the thread over; what was extracted here is dropped."""

    thread_id: str


class Capped(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="capped"):
    """Nothing more may be spent, or passes were paused: handed back with all its retries, for a later pass."""

    thread_id: str
    reason: str


class Busy(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="busy"):
    """Its client was writing where the session stands: handed back with all its retries, for the next pass."""

    thread_id: str
    reason: str  #: redacted


class Skipped(msgspec.Struct, frozen=True, kw_only=True, tag_field="outcome", tag="skipped"):
    """The session itself says that it must not be remembered."""

    thread_id: str
    reason: str


ThreadOutcome = WithOutput | NoOutput | Failed | LostLease | Skipped | Capped | Busy


class Phase1Report(msgspec.Struct, frozen=True, kw_only=True):
    """What phase 1 did."""

    engine: str  #: `offline`, or the model's name
    claimed: int = 0
    with_output: int = 0
    no_output: int = 0
    failed: int = 0
    #: Of these, how many have the offline engine's result until a model answers.
    fallbacks: int = 0
    lost_lease: int = 0
    skipped: int = 0
    #: Left to a later pass, because this one, or today's, may spend nothing more, or because passes were paused.
    capped: int = 0
    #: Left to the next pass, because their clients were writing where they stand.
    busy: int = 0
    #: Of the calls whose answers were used; the spending table has all calls. None: no model was called.
    usage: Usage | None = None
    read: ReadTotals = ReadTotals()
    duration_ms: int = 0
    #: Why the others were left.
    left: ThreadsLeft = ThreadsLeft()
    outcomes: tuple[ThreadOutcome, ...] = ()


def make_report(outcomes: Sequence[ThreadOutcome], *, engine: str, duration_ms: int, left: ThreadsLeft) -> Phase1Report:
    """Add the outcomes of the threads up."""
    done = [outcome for outcome in outcomes if isinstance(outcome, WithOutput | NoOutput)]
    return Phase1Report(
        engine=engine,
        claimed=len(outcomes),
        with_output=_count(outcomes, WithOutput),
        no_output=_count(outcomes, NoOutput),
        failed=_count(outcomes, Failed),
        fallbacks=sum(isinstance(outcome, Failed) and outcome.fallback for outcome in outcomes),
        lost_lease=_count(outcomes, LostLease),
        skipped=_count(outcomes, Skipped),
        capped=_count(outcomes, Capped),
        busy=_count(outcomes, Busy),
        usage=add_usages([outcome.usage for outcome in done if outcome.usage is not None]),
        read=sum((outcome.read for outcome in done), ReadTotals()),
        duration_ms=duration_ms,
        left=left,
        outcomes=tuple(outcomes),
    )


def add_usages(usages: Sequence[Usage]) -> Usage | None:
    """The sum; None of none, so that "not reported" and "zero" stay apart."""
    total = None
    for usage in usages:
        total = usage if total is None else _sum(total, usage)
    return total


def _count(outcomes: Sequence[ThreadOutcome], kind: type[ThreadOutcome]) -> int:
    return sum(isinstance(outcome, kind) for outcome in outcomes)


def _sum(left: _Counts, right: _Counts) -> _Counts:
    return type(left)(**{name: getattr(left, name) + getattr(right, name) for name in left.__struct_fields__})
