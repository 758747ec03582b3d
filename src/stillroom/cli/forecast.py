"""What a pass would cost, in a few lines, and whether a person agrees to it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from stillroom.cli.output import console
from stillroom.config import OFFLINE
from stillroom.forecast import Forecast, PhaseForecast
from stillroom.wording import many, plain


def forecast_lines(forecast: Forecast) -> Iterator[tuple[str | None, str]]:
    """One line a phase, and the sum."""
    unreadable = f"; {forecast.unreadable:,} can't be read" if forecast.unreadable else ""
    yield None, f"would extract {many(forecast.threads, 'session')}{unreadable}"
    yield None, f"              {_phase(forecast.extract)}"
    if forecast.consolidate is None:
        yield None, "consolidate   nothing new"
    else:
        yield None, f"consolidate   {many(forecast.consolidate.inputs, 'memory', 'memories')}"
        yield None, f"              {_phase(forecast.consolidate)}"
    if any(phase.model != OFFLINE for phase in forecast.phases):
        yield "bold", f"in all        {_cost(forecast.cost_usd)}, {forecast.weighted_tokens:,} weighted tokens"
    if forecast.weighted_tokens > forecast.run_cap:
        yield "yellow", f"              `memories.max_weighted_tokens_per_run` stops it at {forecast.run_cap:,}"


def agrees(forecast: Forecast) -> bool | None:
    """Show it and ask; None where nobody can answer."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return None
    out = console()
    for style, line in forecast_lines(forecast):
        out.print(plain(line), style=style, markup=False)
    out.print("This model was never called before. Go on? [y/N] ", end="", markup=False)
    agreed = sys.stdin.readline().strip().lower() in ("y", "yes")
    if not agreed:
        out.print("nothing was sent", markup=False)
    return agreed


def _phase(phase: PhaseForecast) -> str:
    if phase.model == OFFLINE:
        return "by the offline engine: nothing is sent"
    usage = phase.usage
    cached = f" ({usage.cached_input_tokens:,} of it cached)" if usage.cached_input_tokens else ""
    tokens = f"about {usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out"
    return f"{phase.model}: {tokens}, {_cost(phase.cost_usd)}"


def _cost(cost_usd: float | None) -> str:
    if cost_usd is None:
        return "price not known"
    return f"about ${cost_usd:,.2f} at list price" if cost_usd >= 0.005 or not cost_usd else "less than a cent"
