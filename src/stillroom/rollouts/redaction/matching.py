"""What every rule shares: RE2 over bytes, where a word begins in text that may be escaped, and what a find is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import re2

ALNUM = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
URL64 = ALNUM | frozenset(b"_-")
_WORD = ALNUM | frozenset(b"_")
_HEX = frozenset(b"0123456789abcdefABCDEF")
_ESCAPES = frozenset(b"nrtbfu")
#: Room for the automaton: too little, and RE2 falls back to a slower one (64 MiB; it grows only as states are met).
_MAX_MEM_BYTES = 64 * 1024 * 1024

#: A longer unquoted run that was refused is not looked into again, or hostile text would cost its square.
MAX_RESCAN_BYTES = 256

GAP = r"(?:[ \t]|\\+t)*"
"""Blanks on one line, tabs also as JSON writes them."""

QUOTE = r"\\*[\"'`]"
"""A quote, escaped any number of times."""


class Match:
    """One match, its groups by name. A group that took no part starts at -1."""

    __slots__ = ("_groups", "_match")

    def __init__(self, match: re2._Match, groups: dict[str, int]) -> None:
        self._match = match
        self._groups = groups

    def start(self, group: str = "") -> int:
        return self._match.start(self._groups[group])  # type: ignore[no-any-return]

    def end(self, group: str = "") -> int:
        return self._match.end(self._groups[group])  # type: ignore[no-any-return]

    def group(self, group: str = "") -> bytes:
        return self._match.group(self._groups[group]) or b""


class Pattern:
    """RE2 over bytes, compiled when it is first needed: most sessions meet only a few rules."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    @cached_property
    def _compiled(self) -> re2._Regexp:
        return re2.compile(self.pattern.encode(), options())

    @cached_property
    def _groups(self) -> dict[str, int]:
        return {"": 0} | {name.decode(): index for name, index in self._compiled.groupindex.items()}

    def search(self, data: bytes, pos: int = 0, limit: int | None = None) -> Match | None:
        match = self._compiled.search(data, pos, limit)
        return None if match is None else Match(match, self._groups)

    def match(self, data: bytes, pos: int = 0, limit: int | None = None) -> Match | None:
        """A match that begins at `pos`."""
        match = self._compiled.match(data, pos, limit)
        return None if match is None else Match(match, self._groups)


class Span(NamedTuple):
    """Bytes that a placeholder replaces."""

    start: int
    end: int
    kind: str
    #: Stands before the placeholder, in place of what was cut with it.
    prefix: bytes = b""


class Found(NamedTuple):
    """What a rule says about one place: what to replace (perhaps nothing), and where to look on."""

    spans: tuple[Span, ...]
    resume: int


Handler = Callable[[bytes, int], Found | None]
"""Looks at a place where a rule's head stands. None: not this rule's business after all."""


class Rule(NamedTuple):
    """A head to search for, and who judges it."""

    head: str
    handle: Handler


def options() -> re2.Options:
    """Bytes as they are: one byte is one character, so that no class matches outside of ASCII by case folding."""
    chosen = re2.Options()
    chosen.encoding = re2.Options.Encoding.LATIN1
    chosen.max_mem = _MAX_MEM_BYTES
    chosen.log_errors = False
    return chosen


def starts_word(data: bytes, pos: int) -> bool:
    """True when a word may begin at `pos`: also after `\\n` and its like in JSON text, `%20`, or a colour code."""
    if pos == 0:
        return True
    if data[pos - 1] == 0x5C and pos < len(data) and data[pos] in _ESCAPES:
        return False  # the letter of an escape, not of a word
    if data[pos - 1] not in _WORD:
        return True
    before = data[max(0, pos - 12) : pos]
    if len(before) >= 2 and before[-2] == 0x5C and before[-1] in _ESCAPES:
        return True
    if len(before) >= 3 and before[-3] == 0x25 and before[-1] in _HEX and before[-2] in _HEX:
        return True
    if len(before) >= 6 and before[-6:-4] == b"\\u" and all(byte in _HEX for byte in before[-4:]):
        return True
    return before[-1] == 0x6D and before[:-1].rstrip(b"0123456789;").endswith(b"[")


def ends_word(data: bytes, pos: int) -> bool:
    """True when the byte at `pos` does not continue a word."""
    return pos >= len(data) or data[pos] not in _WORD
