"""One call: up to N attempts with growing pauses, each attempt a row of the spending table."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import assert_never

import msgspec

from stillroom.budget.config import MAX_LIMIT_TOKENS
from stillroom.clock import Clock
from stillroom.config import StageOne
from stillroom.errors import (
    ContextTooLong,
    InvalidReply,
    ModelError,
    ModelRefused,
    RateLimited,
)
from stillroom.models.allowance import Allowance
from stillroom.spending import CallOutcome, ModelCall, Phase, SpendingLedger, Usage

Redact = Callable[[str], str]

_MAX_ERROR_CHARS = 600
"""A provider's error may quote the whole request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The model said something."""

    text: str
    usage: Usage
    cost_usd: float | None = None  #: None when the price is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The attempt came to nothing; its tokens count all the same."""

    error: ModelError
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    #: Another try may help.
    retryable: bool = False
    #: Seconds that the provider asked us to wait.
    retry_after: float | None = None


Attempt = Answered | Failed


def outcome_of(error: ModelError) -> CallOutcome:
    """The word of the spending table for an error."""
    match error:
        case ContextTooLong():
            return "context_too_long"
        case RateLimited():
            return "rate_limited"
        case ModelRefused():
            return "refused"
        case InvalidReply():
            return "invalid"
        case _:
            return "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorder:
    """Writes the rows of one model in one phase."""

    ledger: SpendingLedger
    clock: Clock
    model: str
    phase: Phase
    redact: Redact
    #: What may be spent; None: as much as is asked for.
    allowance: Allowance | None = None

    async def check(self) -> None:
        """Raise `SpendingCapped` if nothing more may be sent. Off the event loop, as `ended`."""
        if self.allowance is not None:
            await asyncio.to_thread(self.allowance.check)

    async def ended(self, attempt: Attempt, *, started: float, thread_id: str | None) -> None:
        """Record an attempt that ended by itself. Off the event loop: the ledger is a database."""
        await asyncio.to_thread(self.record, attempt, started=started, thread_id=thread_id)

    def record(self, attempt: Attempt, *, started: float, thread_id: str | None) -> None:
        """The same for who is in a thread already. Blocking."""
        call = self._call(attempt, started=started, thread_id=thread_id)
        if self.allowance is not None:
            self.allowance.charge(self.phase, call.usage)
        self.ledger.record_call(call)

    def cancelled(self, *, started: float, thread_id: str | None) -> None:
        """Record an attempt that somebody stopped. Without an await: a cancelled task can't wait."""
        self.ledger.record_call(self._call(None, started=started, thread_id=thread_id))

    def _call(self, attempt: Attempt | None, *, started: float, thread_id: str | None) -> ModelCall:
        outcome: CallOutcome
        error = None
        match attempt:
            case None:
                outcome = "cancelled"
            case Answered():
                outcome = "ok"
            case Failed():
                outcome, error = outcome_of(attempt.error), str(attempt.error)
            case _:
                assert_never(attempt)
        return ModelCall(
            at=self.clock.now(),
            phase=self.phase,
            model=self.model,
            outcome=outcome,
            usage=_counted(attempt.usage) if attempt else Usage(),
            thread_id=thread_id,
            duration_ms=round((time.perf_counter() - started) * 1000),
            cost_usd=attempt.cost_usd if attempt else None,
            error=self.redact(error)[:_MAX_ERROR_CHARS] if error else None,
        )


def _counted(usage: Usage) -> Usage:
    """The counts that a provider gave, within what a column can hold; none may hide those of another call."""
    counts = {name: min(max(int(count), 0), MAX_LIMIT_TOKENS) for name, count in msgspec.structs.asdict(usage).items()}
    counts["cached_input_tokens"] = min(counts["cached_input_tokens"], counts["input_tokens"])
    return Usage(**counts)


class Booking:
    """One attempt in the books, whichever thread it is made in. Its first end is the one that counts."""

    def __init__(self, recorder: Recorder, *, thread_id: str | None) -> None:
        self._recorder = recorder
        self._thread_id = thread_id
        self._lock = threading.Lock()  #: of the two fields below
        self._started: float | None = None
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    def begin(self) -> None:
        """Blocking. Raises `SpendingCapped` if nothing more may be sent."""
        if self._recorder.allowance is not None:
            self._recorder.allowance.check()
        with self._lock:
            self._started = self._started or time.perf_counter()

    def end(self, attempt: Attempt) -> None:
        """Blocking."""
        if (started := self._close()) is not None:
            self._recorder.record(attempt, started=started, thread_id=self._thread_id)

    def cancel(self) -> None:
        """Somebody stopped it."""
        if (started := self._close()) is not None:
            self._recorder.cancelled(started=started, thread_id=self._thread_id)

    def _close(self) -> float | None:
        """When it began; None: it has not, or it is closed."""
        with self._lock:
            started = None if self._ended else self._started
            self._ended = self._ended or started is not None
            return started


async def call_with_retries(
    send: Callable[[], Awaitable[Attempt]], *, recorder: Recorder, stage: StageOne, thread_id: str | None
) -> Answered:
    """Try until it is answered, refused, or `request_attempts` are used up. Raises the last attempt's `ModelError`.

    Raises `SpendingCapped` instead of an attempt that may not be paid for.
    """

    async def booked(booking: Booking) -> Attempt:
        await asyncio.to_thread(booking.begin)
        return await send()

    return await call_booked(booked, recorder=recorder, stage=stage, thread_id=thread_id)


async def call_booked(
    send: Callable[[Booking], Awaitable[Attempt]], *, recorder: Recorder, stage: StageOne, thread_id: str | None
) -> Answered:
    """The same for a `send` that begins its booking itself, and may end it: who works in a thread needs no trip to
    another for either."""
    attempt_no = 0
    while True:
        attempt_no += 1
        booking = Booking(recorder, thread_id=thread_id)
        try:
            attempt = await send(booking)
        except asyncio.CancelledError:
            booking.cancel()
            raise
        if not booking.ended:
            await asyncio.to_thread(booking.end, attempt)
        match attempt:
            case Answered():
                return attempt
            case Failed(retryable=True) if attempt_no < stage.request_attempts:
                await asyncio.sleep(pause_seconds(attempt, attempt_no, stage, jitter=random.random()))
            case Failed():
                raise attempt.error
            case _:
                assert_never(attempt)


def pause_seconds(failed: Failed, attempt_no: int, stage: StageOne, *, jitter: float) -> float:
    """How long to wait after attempt `attempt_no`; `jitter` in [0, 1) keeps callers from coming back together."""
    grown = stage.retry_pause_seconds * 2.0 ** (attempt_no - 1) * (0.5 + jitter)
    asked = failed.retry_after or 0.0
    # A little more than asked, never less.
    return float(min(max(grown, asked * (1 + jitter / 10)), stage.max_retry_pause_seconds))
