"""One call: up to N attempts with growing pauses, each attempt a row of the spending table."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
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
    QuotaExhausted,
    RateLimited,
)
from stillroom.models.allowance import Allowance
from stillroom.spending import CallOutcome, ModelCall, Phase, SpendingLedger, Usage
from stillroom.stopping import Stop, Stopped

Redact = Callable[[str], str]

_MAX_ERROR_CHARS = 600
"""A provider's error may quote the whole request."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The model said something."""

    text: str
    usage: Usage
    cost_usd: float | None = None  #: None when the price is not known


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """The attempt came to nothing; its tokens count all the same."""

    error: ModelError
    usage: Usage = Usage()
    cost_usd: float | None = None
    #: Another try may help.
    retryable: bool = False
    #: Seconds that the provider asked us to wait.
    retry_after: float | None = None


Attempt = Answered | Failed


def after_trying(failed: Failed, forms: Sequence[str]) -> Failed:
    """The same failure, saying in which ways an answer was asked for."""
    error = type(failed.error)(f"{failed.error} (tried: {', '.join(forms)})", hint=failed.error.hint)
    return msgspec.structs.replace(failed, error=error)


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


class Recorder(msgspec.Struct, frozen=True, kw_only=True):
    """Writes the rows of one model in one phase."""

    ledger: SpendingLedger
    clock: Clock
    model: str
    phase: Phase
    redact: Redact
    #: What may be spent; None: as much as is asked for.
    allowance: Allowance | None = None

    def check(self) -> None:
        """Raise `SpendingCapped` if nothing more may be sent. Blocking: it reads a database."""
        if self.allowance is not None:
            self.allowance.check()

    def record(self, attempt: Attempt | None, *, started: float, thread_id: str | None = None) -> None:
        """Keep an attempt that began at `started` (`time.perf_counter`); None: somebody stopped it. Blocking."""
        call = self._call(attempt, started=started, thread_id=thread_id)
        if self.allowance is not None and attempt is not None:
            self.allowance.charge(self.phase, call.usage)
        self.ledger.record_call(call)

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


def call_with_retries(
    send: Callable[[], Attempt], *, recorder: Recorder, stage: StageOne, thread_id: str | None, stop: Stop
) -> Answered:
    """Try until it is answered, refused, or `request_attempts` are used up. Blocking.

    Raises the last attempt's `ModelError`; `SpendingCapped` instead of an attempt that may not be paid for; `Stopped`.
    """
    number = 0
    while True:
        number += 1
        recorder.check()
        started = time.perf_counter()
        try:
            attempt = send()
        except Stopped:
            recorder.record(None, started=started, thread_id=thread_id)
            raise
        recorder.record(attempt, started=started, thread_id=thread_id)
        if isinstance(attempt, Answered):
            return attempt
        stop.sleep(pause_after(attempt, number, stage))


async def await_with_retries(
    send: Callable[[], Awaitable[Attempt]], *, recorder: Recorder, stage: StageOne
) -> Answered:
    """The same of a call that is awaited: an agent's."""
    number = 0
    while True:
        number += 1
        await asyncio.to_thread(recorder.check)
        started = time.perf_counter()
        try:
            attempt = await send()
        except asyncio.CancelledError:
            recorder.record(None, started=started)  # without an await: a cancelled task can't wait
            raise
        await asyncio.to_thread(recorder.record, attempt, started=started)
        if isinstance(attempt, Answered):
            return attempt
        await asyncio.sleep(pause_after(attempt, number, stage))


def pause_after(failed: Failed, number: int, stage: StageOne) -> float:
    """The seconds until the next attempt; `number` counts from 1. Raises the error if there is none."""
    if failed.retryable and failed.retry_after is not None and failed.retry_after > stage.max_retry_pause_seconds:
        raise QuotaExhausted(
            f"{failed.error}; it asks to wait {failed.retry_after:,.0f} s",
            hint="the next pass tries again; another model can be set in `memories.extract_model`",
        )
    if not failed.retryable or number >= stage.request_attempts:
        raise failed.error
    return pause_seconds(failed, number, stage, jitter=random.random())


def pause_seconds(failed: Failed, attempt_no: int, stage: StageOne, *, jitter: float) -> float:
    """How long to wait after attempt `attempt_no`; `jitter` in [0, 1) keeps callers from coming back together."""
    grown = stage.retry_pause_seconds * 2.0 ** (attempt_no - 1) * (0.5 + jitter)
    asked = failed.retry_after or 0.0
    # A little more than asked, never less.
    return float(min(max(grown, asked * (1 + jitter / 10)), stage.max_retry_pause_seconds))
