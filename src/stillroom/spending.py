"""What a call of a language model used. The door to the models writes it, the store keeps it."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

Phase = Literal["extract", "consolidate", "doctor"]
CallOutcome = Literal["ok", "invalid", "refused", "rate_limited", "context_too_long", "unavailable", "cancelled"]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of one call. `cached` is part of `input`, `reasoning` is part of `output`."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """Of both together: `sum(usages, Usage())`."""
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})

    @property
    def weighted_tokens(self) -> int:
        """Output, and input that does not come from the prompt cache: what the caps count."""
        return self.input_tokens - self.cached_input_tokens + self.output_tokens

    def by_type(self) -> tuple[tuple[str, int], ...]:
        """The values of the `token_usage` metrics, by Codex's `token_type`."""
        return (
            ("total", self.input_tokens + self.output_tokens),
            ("input", self.input_tokens),
            ("cached_input", self.cached_input_tokens),
            ("cache_write_input", self.cache_write_tokens),
            ("output", self.output_tokens),
            ("reasoning_output", self.reasoning_tokens),
        )


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a model, failed ones too: a row of the spending table."""

    at: int  #: seconds, when the call ended
    phase: Phase
    model: str  #: `provider:name`
    outcome: CallOutcome
    usage: Usage
    thread_id: str | None = None
    duration_ms: int = 0
    cost_usd: float | None = None  #: None when the price is not known
    error: str | None = None  #: redacted


class SpendingLedger(Protocol):
    """Who is told of every call."""

    def record_call(self, call: ModelCall) -> None: ...
