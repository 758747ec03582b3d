"""Prices and windows of OpenAI's own models, from the table that comes with Pydantic AI (imported when first asked)."""

from __future__ import annotations

from stillroom.spending import Usage


def openai_price(model: str, usage: Usage) -> float | None:
    """US dollars for one call; None when the table doesn't know the model."""
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        return float(genai_prices.calc_price(counted, model, provider_id="openai").total_price)
    except (LookupError, ValueError):
        return None


def openai_context_window(model: str) -> int | None:
    """Tokens; None when the table doesn't know the model."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, "openai", None)
    except LookupError:
        return None
    return found.context_window
