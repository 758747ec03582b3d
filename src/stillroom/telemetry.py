"""Metrics, through the OpenTelemetry API: names as Codex has them, with `stillroom` for `codex` (spec §1.12).

A host program that collects metrics has imported the API, or names a provider in the environment. In any other process
every call is a no-op that does not even import it.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

METER = "stillroom"
_PROVIDER = "OTEL_PYTHON_METER_PROVIDER"


@cache
def _meter() -> Any:  # the OpenTelemetry API is untyped where instruments are created by kind
    from opentelemetry import metrics

    return metrics.get_meter(METER)


@cache
def _instrument(kind: str, name: str, unit: str) -> Any:
    return getattr(_meter(), f"create_{kind}")(name, unit=unit)


def count(name: str, amount: int = 1, /, **tags: str) -> None:
    """Add to a counter. Zero is not reported, as in Codex."""
    if amount and _is_collected():
        _instrument("counter", f"{METER}.{name}", "1").add(amount, tags)


def record(name: str, value: float, /, *, unit: str = "1", **tags: str) -> None:
    """Record one value of a histogram, e.g. a duration in `ms` or a number of tokens."""
    if _is_collected():
        _instrument("histogram", f"{METER}.{name}", unit).record(value, tags)


def _is_collected() -> bool:
    return "opentelemetry.metrics" in sys.modules or _PROVIDER in os.environ
