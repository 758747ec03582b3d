"""Conversations that are stored again each time they grow, as in a log of requests: the last one holds all."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stillroom.rollouts.agents.documents import Path
from stillroom.rollouts.item import UNREADABLE

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_messages = msgspec.json.Decoder(list[msgspec.Raw])


def last_of_each(conversations: Iterable[tuple[int, bytes]], path: Path, *, max_kept: int) -> dict[int, int]:
    """The numbers of those that no later one repeats from its beginning on, each with the number of the first of them.

    Messages stand at `path`. No more than `max_kept` and one are returned.
    """
    first_of: dict[int, int] = {}
    ends: dict[int, int] = {}
    for number, text in conversations:
        told = _beginnings(text, path)
        repeated = next((ends.pop(beginning) for beginning in reversed(told) if beginning in ends), number)
        first_of[number] = first_of.pop(repeated, number)
        if told:
            ends[told[-1]] = number
        if len(first_of) > max_kept:
            break
    return first_of


def _beginnings(text: bytes, path: Path) -> list[int]:
    """A hash of the first message, of the first two, and so on."""
    try:
        raw: msgspec.Raw | bytes = text
        for name in path:
            raw = _fields.decode(raw)[str(name)]
        messages = _messages.decode(raw)
    except (KeyError, *UNREADABLE):
        return []
    beginnings: list[int] = []
    for message in messages:
        beginnings.append(hash((beginnings[-1] if beginnings else 0, bytes(message))))
    return beginnings
