"""Opens models by name. SDKs are imported only for the names that need them, and only when one is opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, assert_never

import msgspec

from stillroom.clock import Clock
from stillroom.config import OFFLINE, Settings, StageOne
from stillroom.errors import ConfigError
from stillroom.models.allowance import Allowance
from stillroom.models.attempts import Recorder
from stillroom.models.names import Endpoint, PydanticName, resolve
from stillroom.models.proxies import Proxy, proxy_for
from stillroom.models.rate_limits import RateLimitSink
from stillroom.models.structured import StructuredModel
from stillroom.spending import Phase, SpendingLedger

if TYPE_CHECKING:
    from stillroom.models.agent import RecordingModel

Redact = Callable[[str], str]


def open_structured(
    name: str,
    settings: Settings,
    *,
    ledger: SpendingLedger,
    clock: Clock,
    redact: Redact,
    phase: Phase = "extract",
    rate_limits: RateLimitSink | None = None,
    allowance: Allowance | None = None,
    environ: Mapping[str, str] = os.environ,
) -> StructuredModel:
    """Open the model of phase 1. Every attempt becomes a row of `ledger`, failed ones too; `redact` cleans errors.

    Raises `ConfigError` when the name can't be used; what it opens raises `SpendingCapped` once
    `allowance` is used up. The caller closes the model.
    """
    resolved = resolve(name, settings, environ)
    recorder = Recorder(ledger=ledger, clock=clock, model=name, phase=phase, redact=redact, allowance=allowance)
    sink = rate_limits or RateLimitSink()
    match resolved:
        case Endpoint():
            proxy = None if resolved.loopback else proxy_for(resolved.base_url, environ)
            return _open_wire(resolved, settings, recorder=recorder, clock=clock, rate_limits=sink, proxy=proxy)
        case PydanticName():
            from stillroom.models.pydantic import PydanticModel, open_pydantic

            opened = open_pydantic(resolved, settings, rate_limits=sink, clock=clock)
            return PydanticModel(opened, name=name, recorder=recorder, stage=settings.stage_one)
        case _:
            assert_never(resolved)


def open_agent_model(
    name: str,
    settings: Settings,
    *,
    ledger: SpendingLedger,
    clock: Clock,
    redact: Redact,
    phase: Phase = "consolidate",
    rate_limits: RateLimitSink | None = None,
    allowance: Allowance | None = None,
    environ: Mapping[str, str] = os.environ,
) -> RecordingModel:
    """Open the model of an agent: Pydantic AI's own, each of its requests a row of `ledger`, failed ones too.

    A request raises `SpendingCapped` when `allowance` is used up.
    """
    from stillroom.models.agent import RecordingModel
    from stillroom.models.pydantic import open_pydantic

    resolved = resolve(name, settings, environ)
    if isinstance(resolved, Endpoint):
        settings = msgspec.structs.replace(settings, stage_one=_patient(settings.stage_one, resolved))
    opened = open_pydantic(resolved, settings, rate_limits=rate_limits or RateLimitSink(), clock=clock)
    recorder = Recorder(ledger=ledger, clock=clock, model=name, phase=phase, redact=redact, allowance=allowance)
    return RecordingModel(opened, recorder=recorder, stage=settings.stage_one)


def check_model(name: str, settings: Settings, *, environ: Mapping[str, str] = os.environ) -> None:
    """Say at the start what would only fail in the middle: no such provider, no key, too small a window.

    Raises `ConfigError`. Nothing is sent. For a name that needs an SDK, the SDK is imported.
    """
    if name == OFFLINE:
        return
    resolved = resolve(name, settings, environ)
    if isinstance(resolved, PydanticName):
        from stillroom.models.pydantic import check_pydantic

        check_pydantic(resolved)
    elif name == settings.memories.consolidation_model:
        _check_window(resolved, settings.stage_two.least_context_window)


def _check_window(endpoint: Endpoint, least: int) -> None:
    """Whether a consolidation has room; that one session has is looked at wherever the name is read."""
    window = endpoint.context_window
    if window is not None and window < least:
        raise ConfigError(
            f"`{endpoint.name}` has a window of {window:,} tokens; a consolidation takes {least:,} at least",
            hint='give it more, or set `consolidation_model = "offline"`',
        )


def is_watched(name: str, settings: Settings, *, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a reply is cut off where it gets too long, and rate limits are seen. Raises `ConfigError`.

    Not where a provider's SDK brings an HTTP client of its own. Imports that SDK.
    """
    resolved = None if name == OFFLINE else resolve(name, settings, environ)
    if not isinstance(resolved, PydanticName):
        return True
    from stillroom.models.pydantic import takes_client

    return takes_client(resolved.provider)


def needs_sdk(name: str, settings: Settings, *, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a model is spoken to through its provider's SDK. A name that can't be used needs none."""
    try:
        return name != OFFLINE and isinstance(resolve(name, settings, environ), PydanticName)
    except ConfigError:
        return False


def _patient(stage: StageOne, endpoint: Endpoint) -> StageOne:
    """With the time that a request may take there."""
    usual = stage.local_timeout_seconds if endpoint.loopback else stage.request_timeout_seconds
    return msgspec.structs.replace(stage, request_timeout_seconds=endpoint.timeout_seconds or usual)


def _open_wire(
    endpoint: Endpoint,
    settings: Settings,
    *,
    recorder: Recorder,
    clock: Clock,
    rate_limits: RateLimitSink,
    proxy: Proxy | None,
) -> StructuredModel:
    from stillroom.models.wire import Price, WireModel

    window = endpoint.context_window
    price: Price | None = (lambda usage: 0.0) if endpoint.loopback else None  # a server on this machine costs nothing
    if endpoint.official:
        from stillroom.models.prices import openai_context_window, openai_price

        window = window or openai_context_window(endpoint.model)
        price = partial(openai_price, endpoint.model)
    return WireModel(
        endpoint,
        recorder=recorder,
        clock=clock,
        stage=_patient(settings.stage_one, endpoint),
        rate_limits=rate_limits,
        context_window=window,
        price=price,
        proxy=proxy,
    )
