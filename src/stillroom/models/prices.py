"""List prices and windows, from the table that comes with Pydantic AI (imported when first asked)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial

from stillroom.config import OFFLINE, Settings
from stillroom.models.names import Endpoint, resolve
from stillroom.spending import Usage

Price = Callable[[Usage], float | None]
"""US dollars for what calls used; None when the table doesn't know the model."""

# Pydantic AI's names of providers where the table has another.
_IN_TABLE = {
    "bedrock": "aws",
    "gateway/openai": "openai",
    "google-cloud": "google",
    "google-gla": "google",
    "google-vertex": "google",
    "grok": "x-ai",
    "xai": "x-ai",
}


def price_of(name: str, settings: Settings, *, environ: Mapping[str, str] = os.environ) -> Price:
    """The price list of a model by its name in the settings. Raises `ConfigError` for a name that can't be used.

    Rules cost nothing, and neither does a server on this machine. Of any other server than the provider's own the
    prices are not known.
    """
    if name == OFFLINE:
        return lambda usage: 0.0
    resolved = resolve(name, settings, environ)
    if not isinstance(resolved, Endpoint):
        return partial(_list_price, resolved.provider, name.partition(":")[2])
    if resolved.official:
        return partial(openai_price, resolved.model)
    return lambda usage: 0.0 if resolved.loopback else None


def openai_price(model: str, usage: Usage) -> float | None:
    """US dollars for one call; None when the table doesn't know the model."""
    return _list_price("openai", model, usage)


def openai_context_window(model: str) -> int | None:
    """Tokens; None when the table doesn't know the model."""
    return _window("openai", model)


def context_window_of(name: str, settings: Settings, *, environ: Mapping[str, str] = os.environ) -> int | None:
    """Tokens that a model takes, as far as it can be known without asking it."""
    if name == OFFLINE:
        return None
    resolved = resolve(name, settings, environ)
    if isinstance(resolved, Endpoint):
        return resolved.context_window or (openai_context_window(resolved.model) if resolved.official else None)
    return _window(resolved.provider, name.partition(":")[2])


def reply_tokens_of(name: str, settings: Settings, *, environ: Mapping[str, str] = os.environ) -> int | None:
    """The longest answer to ask for at a server of the user's, which may have no limit of its own; None: another's."""
    resolved = resolve(name, settings, environ)
    if not isinstance(resolved, Endpoint) or resolved.official:
        return None
    stage, window = settings.stage_one, resolved.context_window
    return min(stage.max_reply_tokens, window * stage.reply_window_percent // 100) if window else stage.max_reply_tokens


def _list_price(provider: str, model: str, usage: Usage) -> float | None:
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )
    try:
        return float(genai_prices.calc_price(counted, model, provider_id=_in_table(provider)).total_price)
    except (LookupError, ValueError):
        return None


def _window(provider: str, model: str) -> int | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, found = get_snapshot().find_provider_model(model, None, _in_table(provider), None)
    except LookupError:
        return None
    return found.context_window


def _in_table(provider: str) -> str:
    return _IN_TABLE.get(provider, provider)
