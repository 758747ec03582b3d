"""An item of a session that says what a line claims."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:  # what reads sessions takes longer to import than all else that shows a quote
    from stillroom.sessions.provenance import Provenance

Reach = Literal["whole", "cut", "gone"]
"""How far a session was searched: all of it, its beginning, or not at all as its file is gone or can't be read."""


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a session that says it."""

    thread_id: str
    #: Who said it: a person, the assistant, another agent, the client, or a tool's output.
    who: Provenance
    at_ms: int | None
    #: Where in the session's file, from 1.
    line: int
    #: `message`, `function_call`, …
    item: str
    text: str  #: redacted, cut around the words
    #: The words of the line stand there one after the other; else so much of them, from 0 to 1.
    verbatim: bool
    share: float
