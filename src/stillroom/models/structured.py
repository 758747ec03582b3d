"""What phase 1 asks of a model: one question, one JSON text of a given shape, no tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from stillroom.config import Effort
from stillroom.spending import Usage
from stillroom.stopping import Stop


class StructuredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One question."""

    system: str
    user: str
    #: A strict JSON schema: no additional properties, everything required.
    schema: Mapping[str, Any]  # JSON schema is open by nature
    schema_name: str
    effort: Effort
    max_output_tokens: int
    thread_id: str | None = None  #: for the spending table; never sent


class StructuredReply(msgspec.Struct, frozen=True, kw_only=True):
    """What the model said, unparsed: the caller owns the shape."""

    text: str
    usage: Usage


class StructuredModel(Protocol):
    """Answers structured requests. Any number of threads may use it at a time."""

    @property
    def name(self) -> str:
        """`provider:model`, as configured."""
        ...

    @property
    def context_window(self) -> int | None:
        """Tokens; None: unknown."""
        ...

    def complete(self, request: StructuredRequest, *, stop: Stop) -> StructuredReply:
        """Ask once, with retries where the provider is only busy. Blocking.

        Raises a `ModelError`, `SpendingCapped`, or `Stopped` as soon as `stop` is asked for.
        """
        ...

    def close(self) -> None:
        """Let go of the connections, when no thread uses it any more."""
        ...
