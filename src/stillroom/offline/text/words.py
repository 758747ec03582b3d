"""Words that carry meaning, and how near two sentences are by them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from stillroom.offline import cues
from stillroom.pattern import late

_WORD = late(r"[^\W_]+(?:[._/:@+-][^\W_]+)*|[^\W\d_]+")
_CJK = late(r"[\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3々]+")
# Grammar, mostly: no pair of these says what a sentence is about.
_HIRAGANA = late(r"[\u3041-\u309f]+")
_CODE = late(r"`([^`\n]{1,120})`")
# Names that a machine would know: paths, options, dotted, snake or camel case, versions, numbers of two digits or more.
_IDENTIFIER = late(
    r"#[0-9A-Fa-f]{3,8}\b|--?[A-Za-z][\w-]+(?:=\S+)?|[\w.@~-]*/[\w./@~-]+|[A-Za-z_]\w*(?:\.\w+)+|[A-Za-z]+_\w+|_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*"
    r"|[A-Z][A-Z0-9_]{2,}|[A-Za-z]+\d[\w.]*|\d+(?:[.:]\d+)+|\d{2,}|[a-z0-9]+(?:-[a-z0-9]+)+"
)


def folded(text: str) -> str:
    """`text` in one form: compatibility characters, case and runs of space are levelled."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@lru_cache(maxsize=4096)
def content(text: str) -> frozenset[str]:
    """The words that carry meaning, folded and cut to a rough stem; for scripts without spaces, pairs of characters."""
    text = folded(text)
    found: set[str] = set()
    for match in _CJK.finditer(text):
        run = match[0]
        pairs = (run[i : i + 2] for i in range(max(1, len(run) - 1)))
        found.update(pair for pair in pairs if not _HIRAGANA.fullmatch(pair))
    for match in _WORD.finditer(_CJK.sub(" ", text)):
        word = match[0]
        if word not in cues.stopwords():
            found.add(_stem(word))
    return frozenset(found)


_RUSSIAN_ENDING = late(r"(?:ого|ему|ами|ями|ов|ев|ам|ах|ям|ях|ом|ем|ой|ей|ых|их|ть|л[аои]?|[аеёиоуыэюяйьъ]+)$")


def _stem(word: str) -> str:
    if not word.isalpha():
        return word
    if "а" <= word[0] <= "я":
        shorter = _RUSSIAN_ENDING.sub("", word)
        return shorter if len(shorter) >= 3 else word
    for ending in ("ings", "ing", "ies", "ed", "es", "s", "n", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    if len(word) > 4 and word[-1] == word[-2]:
        word = word[:-1]
    return word


def identifiers(text: str) -> list[str]:
    """Names and numbers of `text` that a tool's output can confirm, in order, without doubles."""
    found = [code.strip() for code in _CODE.findall(text)]
    found.extend(match[0].strip(".,:;") for match in _IDENTIFIER.finditer(_CODE.sub(" ", text)))
    return [name for name in dict.fromkeys(found) if len(name) >= 2]


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Share of the smaller set that both hold; 0 when one is empty."""
    if not one or not other:
        return 0.0
    return len(one & other) / min(len(one), len(other))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Share of the union that both hold."""
    if not one or not other:
        return 0.0
    return len(one & other) / len(one | other)


def shorten(text: str, limit: int) -> str:
    """`text` on one line and within `limit` characters; a cut shows as `…`."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit * 0.7 else cut).rstrip(" ,;:") + "…"


def unique(lines: Iterable[str]) -> list[str]:
    """Lines without those that say the same, first come first kept."""
    seen: set[str] = set()
    kept: list[str] = []
    for line in lines:
        key = re.sub(r"[\W_]+", " ", folded(line)).strip()
        if key and key not in seen:
            seen.add(key)
            kept.append(line)
    return kept
