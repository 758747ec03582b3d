"""What a provider's refusal means for us: wait and try again, send less, or give up.

Providers agree on status codes and little else, so "too long" is recognised by code, type and the usual wordings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from stillroom.errors import (
    AccessRefused,
    ContextTooLong,
    ModelRefused,
    ModelUnavailable,
    QuotaExhausted,
    RateLimited,
)
from stillroom.models.attempts import Failed
from stillroom.spending import Usage

_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_TOO_LONG_WORDS = re.compile(
    r"context (?:length|window|size)|maximum (?:context|input)|(?:prompt|input|request) is too (?:long|large)"
    r"|too many (?:input )?tokens|exceeds? the (?:available|maximum|limit|context)",
    re.IGNORECASE,
)
_NO_EFFORT_WORDS = re.compile(r"reasoning|thinking", re.IGNORECASE)
#: How servers name what a request asks of the shape of an answer.
_FORM_WORDS = re.compile(
    rb"response_format|text\.format|json_schema|json_object|json[ _]mode|structured[ _]outputs?|grammar|guided"
    rb"|tool[ _]choice|support tools|tool use",
    re.IGNORECASE,
)
_FORM_STATUSES = frozenset({400, 404, 415, 422, 500, 501})
_LOOKED_AT_BYTES = 4096
#: A quota that is used up does not come back in a minute.
_USED_UP_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "exceeded_current_quota_error",
        "insufficient_balance",
        "usage_limit_reached",
    }
)
_USED_UP_WORDS = re.compile(
    r"credit balance|insufficient[ _](?:account )?(?:balance|credits?|funds|quota)|(?:out of|no|not enough) credits?\b"
    r"|billing hard limit|account is (?:suspended|not active|deactivated)",
    re.IGNORECASE,
)
_KEY_CODES = frozenset(
    {"invalid_api_key", "authentication_error", "permission_error", "account_deactivated", "unauthenticated"}
)
_KEY_WORDS = re.compile(
    r"api[ _-]?key (?:is )?(?:not valid|not found|invalid|expired|missing|required)"
    r"|(?:invalid|incorrect|expired|missing|no|wrong) (?:api[ _-]?key|token|credentials)\b",
    re.IGNORECASE,
)
_MODEL_CODES = frozenset({"model_not_found", "invalid_model", "model_not_available", "deploymentnotfound"})
_MODEL_WORDS = re.compile(
    r"\bmodels?\b.{0,120}\b(?:not (?:exist|found|available|loaded)|n't exist|unknown|decommissioned|deprecated)\b"
    r"|\b(?:unknown|invalid|no such|unsupported) models?\b|not a valid model",
    re.IGNORECASE | re.DOTALL,
)
#: Some refuse one text with the status of a wrong key.
_CONTENT_WORDS = re.compile(r"moderation|flagged|content[ _]?(?:policy|filter)|safety", re.IGNORECASE)
_REFUSED_STATUSES = frozenset({400, 401, 402, 403, 404, 410, 422})
_TRANSIENT_STATUSES = frozenset({408, 409, 425})
_TOO_LONG_STATUSES = frozenset({400, 413, 422})
_MAX_MESSAGE_CHARS = 400

_KEY_HINT = "is the key right, and may it use this model? It is read from the provider's variable or `api_key_env`"
_MODEL_HINT = "check the model's name (`memories.extract_model`, `memories.consolidation_model`) and `base_url`"
_QUOTA_HINT = "the account has no quota left: add some, or set another model (`memories.extract_model`)"


class ProviderError(msgspec.Struct, frozen=True, kw_only=True):
    """The part of an error body that providers agree on."""

    message: str = ""
    code: str = ""
    type: str = ""
    param: str = ""

    @property
    def means_too_long(self) -> bool:
        return self._says(_TOO_LONG_CODES, _TOO_LONG_WORDS)

    @property
    def means_used_up(self) -> bool:
        return self._says(_USED_UP_CODES, _USED_UP_WORDS)

    def _says(self, codes: frozenset[str], words: re.Pattern[str]) -> bool:
        named = {self.code.lower(), self.type.lower()}
        return bool(named & codes) or words.search(self.message) is not None

    def access(self, status: int, told: str) -> AccessRefused | None:
        """Why no request would fare better, with `told` as its words and what to mend; None: another one may."""
        if status not in _REFUSED_STATUSES or self.means_too_long or _CONTENT_WORDS.search(self.message):
            return None
        if status == 402 or self.means_used_up:
            return QuotaExhausted(told, hint=_QUOTA_HINT)
        if self._says(_MODEL_CODES, _MODEL_WORDS):
            return AccessRefused(told, hint=_MODEL_HINT)
        if status in (401, 403) or self._says(_KEY_CODES, _KEY_WORDS):
            return AccessRefused(told, hint=_KEY_HINT)
        return AccessRefused(told, hint=_MODEL_HINT) if status in (404, 410) else None


def parse_error(body: bytes) -> ProviderError:
    """Read an error body of any provider; one that is not JSON is its own message."""
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ProviderError(message=body[:_MAX_MESSAGE_CHARS].decode("utf-8", "replace"))
    error = decoded.get("error", decoded) if isinstance(decoded, dict) else decoded
    return _from_value(error)


def from_status(status: int, body: bytes, *, headers: Mapping[str, str], now: int) -> Failed:
    """The failure that an HTTP status other than 200 stands for."""
    error = parse_error(body)
    message = _message(f"HTTP {status}", error)
    if status == 429:
        if error.means_used_up:
            return Failed(error=QuotaExhausted(message, hint=_QUOTA_HINT))
        return Failed(
            error=RateLimited(message, hint="wait, or set fewer `extract_concurrency`"),
            retryable=True,
            retry_after=retry_after_seconds(headers, now=now),
        )
    if status in _TOO_LONG_STATUSES and (status == 413 or error.means_too_long):
        return Failed(error=ContextTooLong(message))
    if status >= 500 or status in _TRANSIENT_STATUSES:
        # llama.cpp answers 500 to a prompt that is too long.
        if error.means_too_long:
            return Failed(error=ContextTooLong(message))
        retry_after = retry_after_seconds(headers, now=now)
        return Failed(error=ModelUnavailable(message), retryable=True, retry_after=retry_after)
    return Failed(error=error.access(status, message) or ModelRefused(message))


def from_failed_response(error: Mapping[str, Any], *, usage: Usage) -> Failed:
    """A reply that arrived with 200 and says in its body that it failed."""
    found = _from_value(error)
    message = _message("the provider failed", found)
    if found.means_too_long:
        return Failed(error=ContextTooLong(message), usage=usage)
    if found.code == "rate_limit_exceeded":
        return Failed(error=RateLimited(message), usage=usage, retryable=True)
    if found.code in ("server_error", "vector_store_timeout", ""):
        return Failed(error=ModelUnavailable(message), usage=usage, retryable=True)
    return Failed(error=ModelRefused(message), usage=usage)


def wants_no_effort(status: int, body: bytes) -> bool:
    """Whether the model was refused only because it can't be told how hard to think."""
    if status not in (400, 422):
        return False
    error = parse_error(body)
    return error.param.startswith("reasoning") or (
        not error.means_too_long and _NO_EFFORT_WORDS.search(error.message) is not None
    )


def refuses_form(status: int, body: bytes) -> bool:
    """Whether a server can't, or won't, keep an answer to the shape that it was asked for."""
    if status not in _FORM_STATUSES or parse_error(body).means_too_long:
        return False
    return _FORM_WORDS.search(body[:_LOOKED_AT_BYTES]) is not None


def retry_after_seconds(headers: Mapping[str, str], *, now: int) -> float | None:
    """`Retry-After` (seconds or a date) or `retry-after-ms`; None when neither can be read."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            seconds = _until(value, now=now)
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _until(date: str, *, now: int) -> float:
    from email.utils import parsedate_to_datetime  # few providers tell a date

    try:
        return max(parsedate_to_datetime(date).timestamp() - now, 0.0)
    except (ValueError, OverflowError):
        return -1.0


def _from_value(error: object) -> ProviderError:
    if not isinstance(error, Mapping):
        return ProviderError(message=str(error)[:_MAX_MESSAGE_CHARS])
    fields = {name: str(error.get(name) or "")[:_MAX_MESSAGE_CHARS] for name in ("message", "code", "type", "param")}
    return ProviderError(**fields)


def _message(what: str, error: ProviderError) -> str:
    named = error.code or error.type
    return f"{what}" + (f" (`{named}`)" if named else "") + (f": {error.message}" if error.message else "")
