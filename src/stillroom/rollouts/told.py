"""What a session was told out of the memory, and whether a sentence only says it again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from stillroom.pattern import late
from stillroom.rollouts.fragments import MEMORY_TAG, holds_memory_tag
from stillroom.rollouts.item import UNREADABLE

#: Of one session; what it is told at its start has a few hundred lines, and what it reads rarely more.
_MAX_LINES = 4000
_MAX_LINE_CHARS = 2000
#: A shorter sentence says too little to be anybody's.
_MIN_WORDS = 4
#: So much of a sentence in one line of the memory, and it is that line in few other words.
_SHARE = 0.75
# Chinese, Japanese and Korean are written without spaces: every letter counts as a word.
_WORD = late(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_BLOCK = late(r"<stillroom-memory\b[^>]*>(.*?)(?:</stillroom-memory\s*>|\Z)", re.DOTALL)
_SENTENCE = late(r"(?<=[.!?])\s+|(?<=[。！？])|\n")


class Told:
    """Grows as the session is read; a line counts from when it was told."""

    def __init__(self) -> None:
        self._lines = 0
        self._seen: set[int] = set()
        #: For each word, the lines that hold it.
        self._holders: dict[str, list[int]] = {}

    def __bool__(self) -> bool:
        return self._lines > 0

    def add(self, text: str) -> None:
        """The session was shown this part of the memory. What is beyond the limits is forgotten."""
        for line in text.splitlines():
            words = frozenset(_words(line[:_MAX_LINE_CHARS]))
            if len(words) < _MIN_WORDS or self._lines >= _MAX_LINES or hash(words) in self._seen:
                continue
            self._seen.add(hash(words))
            for word in words:
                self._holders.setdefault(word, []).append(self._lines)
            self._lines += 1

    def add_line(self, line: bytes) -> None:
        """A line of a session file, of which the blocks of our tag are taken."""
        if MEMORY_TAG not in line:
            return
        try:
            value = msgspec.json.decode(line)
        except UNREADABLE:
            return
        for text in texts_of(value):
            for block in _BLOCK.findall(text):
                if "\n" in block:  # else somebody's words about the tag
                    self.add(block)

    def add_lines(self, lines: list[bytes]) -> None:
        """The same of many."""
        if holds_memory_tag(b"".join(lines)):  # rarely: asking of each line takes longer than joining all
            for line in lines:
                self.add_line(line)

    def says(self, sentence: str) -> bool:
        """Whether most of the sentence stands in one line that was told."""
        words = frozenset(_words(sentence[:_MAX_LINE_CHARS]))
        if len(words) < _MIN_WORDS or not self._lines:
            return False
        found: Counter[int] = Counter()
        for word in words:
            found.update(self._holders.get(word, ()))
        return bool(found) and max(found.values()) >= _SHARE * len(words)

    def without(self, text: str) -> str:
        """`text` without the sentences that were told; the same string when there are none."""
        if not self._lines:
            return text
        kept: list[str] = []
        start = 0
        for end in [*(match.end() for match in _SENTENCE.finditer(text)), len(text)]:
            if not self.says(text[start:end]):
                kept.append(text[start:end])
            start = end
        result = "".join(kept)
        return text if len(result) == len(text) else result


def texts_of(value: object) -> Iterator[str]:
    """Every string in a decoded value; JSON in a string is looked into as well."""
    if isinstance(value, str):
        yield from _texts_in(value)
    elif isinstance(value, list):
        for entry in value:
            yield from texts_of(entry)
    elif isinstance(value, dict):
        for entry in value.values():
            yield from texts_of(entry)


def _texts_in(text: str) -> Iterator[str]:
    if text.lstrip().startswith(("{", "[")):
        try:
            yield from texts_of(msgspec.json.decode(text))
            return
        except UNREADABLE:
            pass
    yield text


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
