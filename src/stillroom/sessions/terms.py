"""The telling words of a text, for finding it again in another: names, words, and their stems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+(?:[_./:@$+\\-]+[^\W_{_CJK}]+)*")
_PART = re.compile(r"[^\W_]{2,}")
_NAME = re.compile(r"\w[_/.:@$-]\w|\d")
_SCHEME = re.compile(r"\b[a-z]{2,10}://")
_CODE = re.compile(r"`([^`\n]{2,400})`")
_QUOTES = re.compile(r"[\"“”„«»「」『』‘’'`*_]")
_END = " .,;:!?。，！？；：…-–—"
_ADDRESS = re.compile(
    r"(?:[\w.+-]+@)?(?:[\w-]+\.)+[a-z]{2,}(?:[/:]\S*)?|\d{1,3}(?:\.\d{1,3}){3}\S*|\w+://\S*", re.IGNORECASE
)
_FILE = re.compile(
    r"[\w./-]*\.(?:py|rs|go|js|ts|tsx|jsx|mjs|cjs|json|jsonl|toml|yml|yaml|md|txt|sh|sql|css|html|c|h|cpp|java|kt|rb|php|lock|cfg|ini|env|log|csv|xml|proto|tf|swift|ex|exs|lua|vue|svelte)",
    re.IGNORECASE,
)
_MIN_CHARS, _STEM_CHARS = 4, 5
#: How a model tells of what was said.
_SCAFFOLD = frozenset(
    re.findall(
        r"\w+",
        """
        user person asked said corrected decided agreed then changed they them their otherwise when after before while
        with that this from default always never should must want wants wanted would could have been into only during
        until each every again instead rather than assistant about where which what there here does done told says
        saying asks wish preference standing without first last next later session please work working make sure future
        """,
    )
)
_ENGLISH = frozenset(
    re.findall(
        r"\S+", "the a an and to of is in for not please don't do it on with i you we be this that use never always"
    )
)


class Terms(NamedTuple):
    """What is telling in a text."""

    names: frozenset[str]  #: what stands in code marks, and what looks like a path, an option or an identifier
    words: frozenset[str]  #: these, and the words of some length; of scripts without spaces, pairs of letters
    all: frozenset[str]  #: every word, with the parts of names


@lru_cache(maxsize=4096)
def terms_of(text: str) -> Terms:
    """The telling words of a text, case-folded."""
    folded = _SCHEME.sub("", unicodedata.normalize("NFKC", text).casefold())  # a link is one with it and without
    coded = frozenset(token for code in _CODE.findall(folded) for token in _TOKEN.findall(code) if len(token) > 1)
    names: set[str] = set(coded)
    words: set[str] = set()
    every: set[str] = set()
    for token in _TOKEN.findall(folded):
        if _is_unspaced(token):
            pairs = {token[at : at + 2] for at in range(max(1, len(token) - 1))}
            words |= pairs
            every |= pairs
            continue
        every.add(token)
        if not token.isalnum():
            every.update(_PART.findall(token))
        if _NAME.search(token) and len(token) > 1:
            names.add(token)
        elif (len(token) >= _MIN_CHARS or not token.isascii()) and token not in _SCAFFOLD:
            words.add(token)
    return Terms(frozenset(names), frozenset(names | words), frozenset(every))


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """The beginnings of the telling words of a text: `checks` and `check` are one."""
    return frozenset(_stems(text))


def _stems(text: str) -> Iterator[str]:
    for word in terms_of(text).words:
        yield word[:_STEM_CHARS]
        if not word.isalnum() and word.isascii():
            yield from (part[:_STEM_CHARS] for part in _PART.findall(word) if len(part) >= _MIN_CHARS)


def plain(text: str) -> str:
    """A text for being looked for to the letter: without case, quoting marks, doubled spaces and points at its ends."""
    folded = _QUOTES.sub("", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split()).strip(_END)


def is_address(name: str) -> bool:
    """Whether a name leads somewhere: a host, a link, a mail address. A file's name does not."""
    return _ADDRESS.fullmatch(name) is not None and ("/" in name or _FILE.fullmatch(name) is None)


def script_of(text: str) -> str:
    """The script in which most letters of a text are."""
    counts = {"latin": 0, "cyrillic": 0, "cjk": 0, "other": 0}
    for char in text[:4000]:
        if char.isalpha():
            code = ord(char)
            kind = (
                "latin"
                if code < 0x250
                else "cyrillic"
                if 0x400 <= code < 0x530
                else "cjk"
                if code > 0x2E80
                else "other"
            )
            counts[kind] += 3 if kind == "cjk" else 1
    return max(counts, key=lambda kind: counts[kind])


def is_english(text: str) -> bool:
    """Whether a text in Latin letters reads as English, by its smallest words."""
    words = re.findall(r"[^\W\d_]+(?:'\w)?", text.casefold())
    return sum(word in _ENGLISH for word in words) * 8 >= len(words)


def _is_unspaced(token: str) -> bool:
    return ord(token[0]) > 0x2E80
