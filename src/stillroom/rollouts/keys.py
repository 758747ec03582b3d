"""The telling words of a line, and whether a text says one of them: as a whole word, never as a part of one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}|[^\W_]+(?:[_./:@$+\\-]+[^\W_]+)*")
_PART = re.compile(r"[^\W_]{2,}")
_NAME = re.compile(r"\w[_/.:@$-]\w|\d")
# A quotation is passed over with the code marks in it: there they are of the words of somebody, which are told as a
# whole, and a lone one would be paired with one outside.
_MARKED = re.compile(r"`([^`\n]{2,400})`|“[^”\n]{2,400}”|\"[^\"\n]{2,400}\"")
_MIN_PLAIN_CHARS = 4
#: How the rules tell of a person's words.
_TOLD = frozenset(("user", "asked", "corrected", "decided", "said", "agreed", "then", "changed", "they", "otherwise"))
_REST_OF_CHUNK = re.compile(r"[^ \n]*")


class Terms(NamedTuple):
    """What is telling in a text."""

    #: What stands in code marks, and words that look like paths, options and identifiers.
    names: frozenset[str]
    #: These, and all words of some length.
    words: frozenset[str]

    @property
    def keys(self) -> frozenset[str]:
        """The names, else all words."""
        return self.names if len(self.names) >= 2 else self.words


def terms_of(text: str) -> Terms:
    """The telling words of a text, case-folded."""
    tokens = _TOKEN.findall(text.casefold())
    names = [token for token in tokens if len(token) > 1 and not token.isalpha() and _NAME.search(token)]
    if "`" in text:
        for marked in _MARKED.findall(text):
            names += [token for token in _TOKEN.findall(marked.casefold()) if len(token) > 1]
    plain = {token for token in tokens if len(token) >= _MIN_PLAIN_CHARS or not token.isascii()}
    return Terms(frozenset(names), frozenset(names) | (plain - _TOLD))


def tokens_of(text: str) -> Iterable[str]:
    """The words of a text, paths and options whole and in their parts."""
    for token in _TOKEN.findall(text.casefold()):
        yield token
        if not token.isalnum():
            yield from _PART.findall(token)


def says(folded: str, key: str) -> bool:
    """Whether a case-folded text has `key` among its words.

    Its letters are looked for first: making words of all of a session takes a hundred times as long. What stands
    between blanks around them then tells whether they are a word there.
    """
    at = folded.find(key)
    while at >= 0:
        end = at + len(key)
        if _in_a_word(folded[at - 1 : at], key[0]) or _in_a_word(folded[end : end + 1], key[-1]):
            at = folded.find(key, at + 1)
            continue
        start = max(folded.rfind(" ", 0, at), folded.rfind("\n", 0, at)) + 1
        chunk = _REST_OF_CHUNK.match(folded, start)[0]  # type: ignore[index]  # it matches nothing as well
        if key in _TOKEN.findall(chunk) or key in _PART.findall(chunk):
            return True
        at = folded.find(key, max(start + len(chunk), at + 1))
    return False


def _in_a_word(beside: str, edge: str) -> bool:
    """Whether what stands beside the edge of a key surely belongs to the same word."""
    return beside.isascii() and beside.isalnum() and edge.isascii()
