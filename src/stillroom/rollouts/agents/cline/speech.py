"""What a person typed, in the texts that Cline and its editor extensions make of it."""

from __future__ import annotations

import re
from typing import NamedTuple

from stillroom.rollouts.agents.scaffolding import without_blocks

_SCAFFOLDING = "environment_details|file_content|folder_content|hook_context|mode_notice|system-reminder"
_WRAPPED = re.compile(r"<(user_input|user_command)\b[^>]{0,200}>(.*)</\1>", re.DOTALL)
# How prompts begin that nobody typed.
_CONTINUED = ("[TASK RESUMPTION]", "The user approved switching to act mode.")
# In the editors a person's words stand in one of these tags, at the end of a text of the client's.
_TAGGED = re.compile(r"[^<]{0,400}<(task|feedback|answer|user_message)>\n?(.*)\n?</\1>", re.DOTALL)
_RESULT = re.compile(r"\[(\w{1,80}).{0,2000}?\] Result:(?:\n(.*)|\s*)", re.DOTALL)


class Result(NamedTuple):
    """What a tool gave back, as a text of a user's message: how it is told to models without tools of their own."""

    tool: str
    #: None: it is the next text.
    text: str | None


def typed(text: str) -> str:
    """What a person typed in the terminal; "" if nothing."""
    text = without_blocks(text, _SCAFFOLDING).strip()
    if match := _WRAPPED.fullmatch(text):
        text = match[2].strip()
    return "" if text.startswith(_CONTINUED) else text


def tagged(text: str) -> str | None:
    """What a person typed in an editor, which is marked; None for a text of the client's."""
    match = _TAGGED.fullmatch(text.strip())
    return without_blocks(match[2], _SCAFFOLDING).strip() or None if match else None


def result(text: str) -> Result | None:
    """The result of a tool; None for any other text."""
    match = _RESULT.fullmatch(text)
    return Result(match[1], match[2]) if match else None


def without_header(text: str) -> str:
    """A result without the line that says which tool it is of."""
    found = result(text)
    return found.text if found is not None and found.text is not None else text
