"""OpenAI's client: a copy of it whose responses are charged, whole or streamed.

    client = with_budget(OpenAI())
    with budget.session("root"):
        client.responses.create(…)  # raises `TurnAborted`

Responses and Chat Completions are metered, of every server that speaks them; other requests pass untouched.
"""

from __future__ import annotations

from typing import TypeVar

from stillroom.budget.adapters.request import Metering
from stillroom.budget.adapters.sdk import metered_client
from stillroom.budget.adapters.wires import CHAT, RESPONSES
from stillroom.budget.session import Session

try:
    from openai import AsyncOpenAI, OpenAI
except ImportError as error:
    raise ImportError("OpenAI's client is missing: pip install 'stillroom[openai]'") from error

_Client = TypeVar("_Client", OpenAI, AsyncOpenAI)
_WIRES = {"/responses": RESPONSES, "/chat/completions": CHAT}


def with_budget(
    client: _Client, *, session: Session | None = None, reserve_tokens: float | None = None, window_id: str = "0"
) -> _Client:
    """A metered copy of the client. Copies that are made of it (`with_options`) are metered too."""
    metering = Metering(session=session, reserve_tokens=reserve_tokens, window_id=window_id)
    return metered_client(client, metering, _WIRES)
