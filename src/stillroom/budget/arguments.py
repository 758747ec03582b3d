"""What callers pass in, checked before a ledger changes."""

from __future__ import annotations

import math

from stillroom.budget.charges import units_of
from stillroom.budget.config import MAX_LIMIT_TOKENS
from stillroom.config import BUDGET
from stillroom.errors import BudgetError


def checked_thread_id(thread_id: str) -> str:
    """Raises `BudgetError` for what can't name a thread."""
    if not isinstance(thread_id, str) or not thread_id:
        raise BudgetError(f"a thread id must be a string that is not empty, not `{thread_id!r:.40}`")
    return thread_id


def limit_units(tokens: float) -> int:
    """A thread's own limit in millionths. Raises `BudgetError` unless it is finite and positive."""
    if not _is_number(tokens) or not 0 < tokens < math.inf:
        raise BudgetError(f"a thread's limit must be finite and positive, not `{tokens!r:.40}`")
    return units_of(min(tokens, MAX_LIMIT_TOKENS))


def reserved_units(tokens: float) -> int:
    """Tokens to hold in millionths. Raises `BudgetError` unless they are finite and not negative."""
    if not _is_number(tokens) or not 0 <= tokens < math.inf:
        raise BudgetError(f"reserved tokens must be finite and not negative, not `{tokens!r:.40}`")
    return units_of(min(tokens, MAX_LIMIT_TOKENS))


def lease_ms_of(seconds: float | None) -> int:
    """How long a reservation counts. Raises `BudgetError` unless it is finite and positive."""
    if seconds is None:
        return BUDGET.reservation_lease_seconds * 1000
    if not _is_number(seconds) or not 0 < seconds < math.inf:
        raise BudgetError(f"`lease_seconds` must be finite and positive, not `{seconds!r:.40}`")
    return round(min(seconds, BUDGET.max_lease_seconds) * 1000)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
