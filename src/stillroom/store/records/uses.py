"""How the memory is used."""

from __future__ import annotations

from typing import Literal

import msgspec


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """A message that cites memory, or a command that reads it."""

    kind: Literal["citation", "command"]
    #: Tells what is said or run: two that are equal have the same.
    digest: bytes
    #: Of those in the session that are equal, from 1; None: it is one more.
    nth: int | None
    at: int  #: seconds
    #: The threads whose memory is cited, each once; of a command the kinds of memory that it reads.
    used: tuple[str, ...]
    #: The digest by which the same is known if it came another way; of the two only the first counts.
    twin: bytes | None = None

    @property
    def key(self) -> tuple[bytes, int | None]:
        """By which it is known in its session."""
        return self.digest, self.nth


class RecordedUse(msgspec.Struct, frozen=True, kw_only=True):
    """A use that was not known before."""

    use: Use
    #: Of what was used: what is there to be counted.
    counted: tuple[str, ...]
    #: Its twin was counted, and it was not.
    again: bool = False
