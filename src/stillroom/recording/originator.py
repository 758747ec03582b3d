"""Which program a thread was recorded by: rollouts say it themselves."""

from __future__ import annotations

from typing import NamedTuple

from stillroom.sessions.records import Records
from stillroom.thread import Thread


class Program(NamedTuple):
    """An agent, and its version if that is known."""

    name: str
    version: str | None


def recorded_by(decoder: object) -> Program | None:
    """What the first line of a rollout says, once it is read. Other formats have none."""
    if not isinstance(decoder, Records) or decoder.meta is None or not decoder.meta.originator:
        return None
    return Program(decoder.meta.originator, decoder.meta.cli_version)


def program_of(thread: Thread, decoder: object) -> Program:
    """The rollout's own word, or else the client's whose format it is."""
    return recorded_by(decoder) or Program(thread.agent, thread.cli_version)
