"""What of a model's window the conversation may have, and one tool's answer of that."""

from __future__ import annotations

import json

import msgspec

from stillroom.config import StageTwo
from stillroom.consolidate.prompt import AgentPrompt
from stillroom.consolidate.tools import TOOLS

_BYTES_PER_TOKEN = 4
#: Of our own words, as small models count them.
_PROMPT_BYTES_PER_TOKEN = 3
#: The rest of a window is for the instructions, the answers and the provider's own counting.
_WINDOW_SHARE = 0.5


def within(
    limits: StageTwo, context_window: int | None, prompt: AgentPrompt, *, reply_tokens: int | None = None
) -> StageTwo:
    """`limits` for a conversation that fits into the window, tokens or None, beside our own words and the answer.

    The last answer of a tool is never shortened, so none may have more than half of the room.
    """
    if context_window is None:
        return limits
    words = f"{prompt.instructions}{prompt.task}{json.dumps([(text, text.schema()) for text in TOOLS.values()])}"
    left = context_window - (reply_tokens or 0) - len(words.encode()) // _PROMPT_BYTES_PER_TOKEN
    tokens = max(1, min(int(context_window * _WINDOW_SHARE), left))
    room = min(limits.max_conversation_bytes, tokens * _BYTES_PER_TOKEN)
    return msgspec.structs.replace(
        limits, max_conversation_bytes=room, max_tool_output_bytes=min(limits.max_tool_output_bytes, room // 2)
    )
