"""Which prompts of a Gemini CLI session were rewound; it shows only in the whole file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from stillroom.config import READING, Reading
from stillroom.rollouts.agents.decoder import UNREADABLE, text_of
from stillroom.rollouts.agents.gemini.records import Line, Message, line_of, prompt_of
from stillroom.rollouts.agents.talk import lines_of

_MATTERS = (b'"user"', b'"$rewindTo"')
_message = msgspec.json.Decoder(Message)


def superseded(path: Path, *, max_line_bytes: int, reading: Reading = READING) -> frozenset[int]:
    """The ids of the prompts that a rewind took back, as hashes. Raises `OSError` or `RolloutError`."""
    branch = _Branch(reading.remembered_records)
    for line in lines_of(path, max_line_bytes=max_line_bytes, reading=reading):
        if any(mark in line for mark in _MATTERS):
            try:
                branch.follow(line_of(line))
            except UNREADABLE:
                continue
    return frozenset(branch.left)


class _Branch:
    """The prompts of the talk as it stands; a snapshot may have given them other ids."""

    def __init__(self, limit: int) -> None:
        self.left: set[int] = set()
        self._limit = limit
        self._prompts: list[int] = []
        self._place: dict[int, int] = {}
        self._by_words: dict[int, int] = {}

    def follow(self, line: Line) -> None:
        if isinstance(line.rewind_to, str):
            place = self._place.get(hash(line.rewind_to), 0)
            self.left.update(self._prompts[place:])
            del self._prompts[place:]
        elif line.change is not None:
            for raw in line.change.messages or ():
                self._said(_message.decode(raw), again=bool(self._prompts))
        elif line.id is not None:
            self._said(line, again=False)

    def _said(self, message: Message, *, again: bool) -> None:
        number = hash(text_of(message.id))
        if number in self._place or len(self._place) >= self._limit or message.type != "user":
            return
        words = prompt_of(message)
        if not words:
            return
        spoken = hash("\n".join(words))
        if again:
            # The same prompt under a new id; what was never typed is the client's.
            self._place[number] = self._by_words.get(spoken, len(self._prompts))
            return
        self._place[number] = self._by_words[spoken] = len(self._prompts)
        self._prompts.append(number)
