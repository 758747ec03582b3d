"""What of a session could be remembered, and whether a text of memory has it. Words are compared, not meanings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from stillroom.insight.why.claims import folded, words_of
from stillroom.rollouts.events import Ran, Said

#: A failed command counts as represented when memory has so much of its words.
_FAILURE_SHARE = 0.6
#: Of a message so much is counted; what is longer was pasted.
_MOST_MESSAGE_CHARS = 20_000
_COMMAND_CHARS = 300
_PIECE = re.compile(r"[^\W_]{4,}")
_NAME = re.compile(r"[\w.@+-]+")


class Units(NamedTuple):
    """What a session has, each thing once."""

    #: Words of the user that tell something.
    words: frozenset[str]
    #: Commands and edits that failed, each as its words.
    failures: frozenset[tuple[str, ...]]
    #: Names of files that were changed.
    files: frozenset[str]


class Vocabulary(NamedTuple):
    """What a text of memory says."""

    words: frozenset[str]
    files: frozenset[str]

    def counts(self, units: Units) -> tuple[int, int, int]:
        """How much of a session it has: words, failures, files."""
        failures = sum(
            sum(word in self.words for word in failure) >= _FAILURE_SHARE * len(failure) for failure in units.failures
        )
        return len(units.words & self.words), failures, len(units.files & self.files)


def units_of(events: Iterable[Said | Ran]) -> Units:
    """What a session has that could be remembered."""
    words: set[str] = set()
    failures: set[tuple[str, ...]] = set()
    files: set[str] = set()
    for event in events:
        if isinstance(event, Said):
            if event.who == "user":
                words.update(words_of(event.text[:_MOST_MESSAGE_CHARS]))
            continue
        if event.ok is False or (event.exit_code or 0) != 0:
            told = event.command or " ".join(edit.path for edit in event.edits) or f"{event.tool} {event.arguments}"
            if failure := words_of(told[:_COMMAND_CHARS]):
                failures.add(failure)
        elif event.edits:
            files.update(_name(edit.path) for edit in event.edits)
    return Units(frozenset(words), frozenset(failures), frozenset(files - {""}))


def vocabulary_of(text: str) -> Vocabulary:
    """The words of a text of memory, those that others are made of too."""
    plain = folded(text)
    words = set(words_of(plain))
    for word in list(words):
        words.update(words_of(" ".join(_PIECE.findall(word))))
    return Vocabulary(frozenset(words), frozenset(name.rstrip(".") for name in _NAME.findall(plain)))


def _name(path: str) -> str:
    return folded(re.split(r"[/\\]", path.rstrip("/\\"))[-1])
