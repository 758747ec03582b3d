"""What phase 1 asks of a model: one question, one JSON text of a given shape, no tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

from stillroom.config import Effort
from stillroom.spending import Usage
from stillroom.stopping import Stop

OutputForm = Literal["json_schema", "json_object", "plain"]
"""How a server is asked for the shape: strictly, as some JSON, or in words alone."""
#: The strictest first; what a server refuses is followed by the next.
OUTPUT_FORMS: tuple[OutputForm, ...] = ("json_schema", "json_object", "plain")


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

    def instructions(self, form: OutputForm) -> str:
        """`system`, with the schema in words where the server is not given it."""
        if form == "json_schema":
            return self.system
        schema = json.dumps(self.schema, ensure_ascii=False)
        return f"{self.system}\n\nAnswer with one JSON object of this schema, and nothing else:\n{schema}\n"


class StructuredReply(msgspec.Struct, frozen=True, kw_only=True):
    """What the model said, unparsed: the caller owns the shape."""

    text: str
    usage: Usage
    #: How the server was asked for the shape.
    form: OutputForm = "json_schema"


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
