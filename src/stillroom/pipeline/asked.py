"""What starts a pass, and what a person may ask of it."""

from __future__ import annotations

from typing import Literal

import msgspec


class Trigger(msgspec.Struct, frozen=True, kw_only=True):
    """The session that a pass is started from; without one, a person started it."""

    thread_id: str | None = None
    kind: Literal["root", "sub_agent", "memory_worker"] = "root"
    ephemeral: bool = False


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may ask of a pass beyond the settings."""

    #: No age limit, everything that is finished instead of `max_rollouts_per_startup`, and no pause since the last
    #: consolidation: a person asks, and wants to see it.
    backfill: bool = False
    #: Extract again what the offline engine extracted, all of it at once and however old, and consolidate at once.
    upgrade: bool = False
    #: Extract again what gave nothing, and what another engine or other words made; or `sessions`, however extracted.
    again: bool = False
    #: Try again at once what failed, however often it did and however old it is, all of it; nothing else is extracted.
    retry: bool = False
    #: Take over a memory folder that holds another program's memories; what is in it is kept in the history first.
    adopt: bool = False
    #: At most so many threads.
    max_threads: int | None = None
    #: Only threads that ran in this folder or below it.
    cwd: str | None = None
    #: Only these sessions, by their ids or the beginnings of them: at once, of any age, and consolidate at once.
    sessions: tuple[str, ...] = ()
    #: Only tell what would be done and what it would cost, on a copy of the database: nothing is sent or changed.
    dry_run: bool = False
    #: A person agrees to what the first calls of a model cost, whatever it is.
    agreed: bool = False

    @property
    def take_all(self) -> bool:
        """A person asks for all that there is of something, not for what the start of a session may take."""
        return self.backfill or self.reopens or self.retry or bool(self.sessions)

    @property
    def reopens(self) -> bool:
        """Sessions are extracted again that were extracted."""
        return self.upgrade or self.again


__all__ = ["Options", "Trigger"]
