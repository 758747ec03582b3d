"""A snapshot of a provider's rate limits in Codex's shape, and the guard's comparison. Every field may be missing."""

from __future__ import annotations

import math
from typing import Any

import msgspec

CODEX_LIMIT_ID = "codex"
#: The longest window that plans have. A snapshot that does not say when its windows end is forgotten after this.
_LONGEST_WINDOW_SECONDS = 7 * 24 * 3600


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One window of a limit."""

    used_percent: float
    #: Seconds since the epoch; None: unknown.
    resets_at: float | None = None


class RateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot."""

    limit_id: str | None = None
    primary: Window | None = None
    secondary: Window | None = None
    #: Which limit was reached; None: none was.
    reached: str | None = None
    #: When it was taken, in seconds; None: unknown.
    at: int | None = None


def allows(limits: RateLimits | None, *, min_remaining_percent: int, now: int) -> bool:
    """The guard's answer (spec §1.3). A window that has passed, or is not known, is no obstacle."""
    if limits is None:
        return True
    windows = [window for window in (limits.primary, limits.secondary) if window is not None]
    still_open = [window for window in windows if _is_open(window.resets_at, limits.at, now)]
    if limits.reached is not None and (still_open or (not windows and _is_open(None, limits.at, now))):
        return False
    max_used = 100 - min(max(min_remaining_percent, 0), 100)
    return all(window.used_percent <= max_used for window in still_open)


def parse_rate_limits(raw: bytes, *, at: int | None) -> RateLimits | None:
    """A `rate_limits` object, or a list of them, as JSON; `at` is when it was written, in seconds. None: it is none."""
    try:
        decoded = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    snapshots = [entry for entry in (decoded if isinstance(decoded, list) else [decoded]) if isinstance(entry, dict)]
    chosen = next((entry for entry in snapshots if entry.get("limit_id") == CODEX_LIMIT_ID), None)
    if chosen is None and not snapshots:
        return None
    table = chosen or snapshots[0]
    return RateLimits(
        limit_id=_text(table.get("limit_id")),
        primary=_window(table.get("primary"), at),
        secondary=_window(table.get("secondary"), at),
        reached=_reached(table.get("rate_limit_reached_type")),
        at=at,
    )


def _is_open(resets_at: float | None, at: int | None, now: int) -> bool:
    if resets_at is not None:
        return resets_at > now
    return at is None or at + _LONGEST_WINDOW_SECONDS > now


def _window(table: Any, at: int | None) -> Window | None:
    if not isinstance(table, dict):
        return None
    used = _number(table.get("used_percent"))
    if used is None:
        return None
    resets_at = _number(table.get("resets_at"))
    resets_in = _number(table.get("resets_in_seconds"))
    minutes = _number(table.get("window_minutes"))
    if resets_at is None and at is not None and resets_in is not None:
        resets_at = at + resets_in
    if resets_at is None and at is not None and minutes is not None and minutes > 0:
        resets_at = at + 60 * minutes
    return Window(used_percent=used, resets_at=resets_at)


def _reached(value: Any) -> str | None:
    """A name, or in some versions an object with one."""
    if isinstance(value, dict):
        value = value.get("type") or "unknown"
    return _text(value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
