"""From `provider:model` to where it is spoken to. Reads settings and environment; opens nothing, imports no SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from stillroom.addresses import is_loopback
from stillroom.config import Provider, ProviderKind, Settings
from stillroom.errors import ConfigError

OPENAI_URL = "https://api.openai.com/v1"
_OPENAI_KINDS: dict[str, ProviderKind] = {
    "openai": "openai-responses",
    "openai-responses": "openai-responses",
    "openai-chat": "openai-chat",
}


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A server that speaks one of OpenAI's protocols: no SDK needed."""

    name: str  #: as configured
    model: str
    kind: ProviderKind
    base_url: str
    api_key: str | None
    context_window: int | None
    #: OpenAI itself: its price list and windows hold. A proxy or a local server has its own.
    official: bool
    #: For one request; None: what the settings say for such a place.
    timeout_seconds: int | None = None

    @property
    def loopback(self) -> bool:
        return is_loopback(urlsplit(self.base_url).hostname or "")


class PydanticName(msgspec.Struct, frozen=True, kw_only=True):
    """A name that Pydantic AI knows how to open."""

    name: str
    provider: str
    kind: Literal["pydantic"] = "pydantic"


def resolve(name: str, settings: Settings, environ: Mapping[str, str]) -> Endpoint | PydanticName:
    """Say where `name` is spoken to. Raises `ConfigError` for a name without a provider, a missing key, a bad URL."""
    provider, separator, model = name.partition(":")
    if not separator or not provider or not model:
        raise ConfigError(
            f"`{name}` is not the name of a model",
            hint="write `provider:model`, e.g. `openai-responses:gpt-6-luna`, or `offline`",
        )
    if (configured := settings.providers.get(provider)) is not None:
        return _configured(name, provider, model, configured, settings, environ)
    if provider in _OPENAI_KINDS:
        return _openai(name, model, _OPENAI_KINDS[provider], environ)
    return PydanticName(name=name, provider=provider)


def _configured(
    name: str, provider: str, model: str, found: Provider, settings: Settings, environ: Mapping[str, str]
) -> Endpoint:
    key = _key(found.api_key_env, environ) if found.api_key_env else None
    if found.api_key_env and not key:
        raise ConfigError(
            f"`{name}` needs the key in `{found.api_key_env}`, which is not set",
            hint=f"export {found.api_key_env}=…, or take `api_key_env` out of `[providers.{provider}]`",
        )
    least = settings.stage_one.least_context_window
    if found.context_window is not None and found.context_window < least:
        raise ConfigError(
            f"`{name}` has a window of {found.context_window:,} tokens, and {least:,} is the least",
            hint="start its server with a larger one, and set `context_window` to the same",
        )
    return Endpoint(
        name=name,
        model=model,
        kind=found.kind,
        base_url=_checked_url(found.base_url, where=f"[providers.{provider}].base_url"),
        api_key=key,
        context_window=found.context_window,
        official=False,
        timeout_seconds=found.timeout_seconds,
    )


def _openai(name: str, model: str, kind: ProviderKind, environ: Mapping[str, str]) -> Endpoint:
    base_url = _checked_url(environ.get("OPENAI_BASE_URL") or OPENAI_URL, where="OPENAI_BASE_URL")
    key = _key("OPENAI_API_KEY", environ)
    official = base_url == OPENAI_URL
    if official and key is None:
        raise ConfigError(
            f"`{name}` needs a key, and `OPENAI_API_KEY` is not set",
            hint="export OPENAI_API_KEY=…, or set `extract_model` and `consolidation_model` to `offline`",
        )
    return Endpoint(
        name=name, model=model, kind=kind, base_url=base_url, api_key=key, context_window=None, official=official
    )


def _key(variable: str, environ: Mapping[str, str]) -> str | None:
    key = environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the key in `{variable}` has characters that no key has", hint="set it anew, in one line")
    return key or None


def _checked_url(url: str, *, where: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"`{where}` is `{url}`, which is not a URL", hint="e.g. `http://127.0.0.1:8080/v1`")
    return url.rstrip("/")
