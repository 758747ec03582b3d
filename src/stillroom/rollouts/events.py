"""What happened in a session, whichever agent recorded it: what was said, and what was run with its outcome."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from stillroom.rollouts.item import Item

Speaker = Literal["user", "assistant", "agent", "harness"]
"""`agent`: another agent's message; `harness`: text that the client put in a user message."""


class Edit(msgspec.Struct, frozen=True):
    """A change of one file."""

    path: str
    action: Literal["add", "update", "delete"]
    diff: str


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """A message."""

    who: Speaker
    text: str
    #: The assistant's last word of a turn, as far as the agent marks it.
    final: bool = False
    line_no: int = 0
    at_ms: int | None = None


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call with its output."""

    tool: str
    #: The shell command, for tools that run one.
    command: str | None = None
    workdir: str | None = None
    arguments: str = ""
    output: str = ""
    #: As recorded; a pipeline hides the codes of all but its last command.
    exit_code: int | None = None
    #: None: the record does not tell.
    ok: bool | None = None
    edits: tuple[Edit, ...] = ()
    line_no: int = 0
    at_ms: int | None = None


def read_events(
    items: Iterable[Item], *, max_output_chars: int = 16_000, max_total_bytes: int = 32 * 1024 * 1024
) -> list[Said | Ran]:
    """The events of a thread in order."""
    raise NotImplementedError
