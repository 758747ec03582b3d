"""Anthropic's client: a copy of it whose messages are charged, whole or streamed.

client = with_budget(Anthropic())
with budget.session("root"):
    client.messages.create(…)  # raises `TurnAborted`
"""

from __future__ import annotations

from typing import TypeVar

from stillroom.budget.adapters.request import Metering
from stillroom.budget.adapters.sdk import metered_client
from stillroom.budget.adapters.wires import MESSAGES
from stillroom.budget.session import Session

try:
    from anthropic import Anthropic, AsyncAnthropic
except ImportError as error:
    raise ImportError("Anthropic's client is missing: pip install 'stillroom[anthropic]'") from error

_Client = TypeVar("_Client", Anthropic, AsyncAnthropic)
_WIRES = {"/v1/messages": MESSAGES}


def with_budget(
    client: _Client, *, session: Session | None = None, reserve_tokens: float | None = None, window_id: str = "0"
) -> _Client:
    """A metered copy of the client. Copies that are made of it (`with_options`) are metered too."""
    metering = Metering(session=session, reserve_tokens=reserve_tokens, window_id=window_id)
    return metered_client(client, metering, _WIRES)
