"""Text as the full-text index sees it: words, and pairs of characters where a script puts no spaces between words.

SQLite's tokenizer takes a run of Chinese for one long word. Here such a run becomes overlapping pairs, in the index
and in the query alike, so that any part of it is found; its last character stands alone, for queries of one character.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

#: Kana, Han, Hangul, Thai, Lao, Burmese, Khmer. Korean has spaces, but glues particles to its words.
_UNSPACED = re.compile(
    "[\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_PIECE = re.compile(f"({_UNSPACED.pattern})")
#: Shorter words are looked for as they are: as beginnings they would be found everywhere.
_PREFIX_CHARS = 3
#: Parts of one word that are looked for: a word of more alternating scripts is none.
_MOST_PIECES = 8


def indexed(text: str) -> str:
    """`text` as it goes into the index."""
    return _UNSPACED.sub(lambda run: f" {' '.join(_pairs(run[0]))} ", unicodedata.normalize("NFKC", text))


def query_words(text: str) -> list[str]:
    """The words of a query that have a letter or a digit, each once, in one form for what reads the same."""
    text = text.encode("utf-8", "replace").decode()
    words = unicodedata.normalize("NFKC", text).casefold().replace("\0", " ").split()
    return list(dict.fromkeys(word for word in words if any(map(str.isalnum, word))))


def match_expression(words: Sequence[str], *, every: bool) -> str:
    """What finds the words in the index. Nothing in them is taken for the index's own language."""
    return (" AND " if every else " OR ").join(f"({_word(word)})" for word in words)


def _word(word: str) -> str:
    pieces = [piece for piece in _PIECE.split(word) if any(map(str.isalnum, piece))]
    return " AND ".join(map(_phrase, pieces[:_MOST_PIECES]))


def _phrase(piece: str) -> str:
    """A whole phrase of pairs; the beginning of a longer word, or of a pair."""
    if _UNSPACED.fullmatch(piece):
        return f'"{piece}"*' if len(piece) == 1 else f'"{" ".join(_pairs(piece)[:-1])}"'
    quoted = '"' + piece.replace('"', '""') + '"'
    return f"{quoted}*" if len(piece) >= _PREFIX_CHARS else quoted


def _pairs(run: str) -> list[str]:
    return [run[start : start + 2] for start in range(len(run))]
