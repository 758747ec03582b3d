"""Where an item comes from: what a person typed weighs more than what a tool printed."""

from __future__ import annotations

from typing import Literal

from stillroom.sessions.item import Item
from stillroom.sessions.speech import said_in

Provenance = Literal["user", "assistant", "agent", "harness", "tool"]
"""Typed by a person, written by the assistant (words and calls), said by another agent, put in by the client, printed
by a tool."""


def provenance_of(item: Item) -> Provenance:
    """Where the item comes from. Only a user's message is decoded: clients put their own texts into those.

    Of a message with parts of several origins it is a person's if a person typed any of it, then another agent's.
    """
    if item.type == "message":
        return "assistant" if item.role == "assistant" else _of_message(item)
    if item.type == "agent_message":
        return "agent"
    return "tool" if item.type.endswith("_output") else "assistant"


def _of_message(item: Item) -> Provenance:
    # One that can't be read is nobody's word, as far as anybody can tell.
    speakers = {who for who, _ in said_in(item) or ()}
    return "user" if "user" in speakers else "agent" if "agent" in speakers else "harness"
