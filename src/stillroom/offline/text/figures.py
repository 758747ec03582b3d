"""Numbers that a sentence tells in words: "forty", "a week", "двадцать пять", "九"."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from stillroom.offline import cues
from stillroom.pattern import late

_BETWEEN = r"(?:[\s-]|\s(?:y|e|et|and|и)\s|und)?"
"""What may stand between the words of one number."""
_SINGLE = "一"
"""By itself no number: it stands in too many words."""
_NO_VALUE_BEHIND = "周期拜第唯统同某逐月"
"""Behind one of these a numeral names a day, a place in a row, or belongs to another word."""
_CHOICES = late(r"\(\?.*?\)|\W")
_AHEAD = 4
"""How far a word looks ahead (characters): "ten" in Korean is one only before what it counts."""
_FEW = 5
_POINTED = late(
    r"\b(?:first|last|next|the|th[eo]se|other|all|both|our|my|your|any|every|ersten?|letzten?|die|diese|alle|los|las|estos"
    r"|estas|primer[oa]s|últim[oa]s|les|ces|premiers|premières|derniers|dernières|tous|toutes|os|as|ess[ea]s|est[ea]s"
    r"|primeir[oa]s|эти|те|первые|последние|все|обе)\s$",
    re.IGNORECASE,
)
"""Before a number below `_FEW`: it picks from what there is ("the first two") and sets nothing."""


class Figure(NamedTuple):
    """A number that was told in words."""

    start: int
    said: str
    value: float


def spelt(text: str, spoken: tuple[str, ...]) -> list[Figure]:
    """The numbers that `text` tells in words of one of the languages, in order."""
    found: list[Figure] = []
    for code in spoken:
        pattern = _pattern(code)
        if pattern is None:
            continue
        for match in pattern.finditer(cues.levelled(text, code)):
            value = _value(match, code)
            if value is None or match[0] == _SINGLE:
                continue
            if 1 < value < _FEW and _POINTED.search(text, 0, match.start()):
                continue
            found.append(Figure(match.start(), text[match.start() : match.end()], value))
    return sorted(found)


@cache
def _words(code: str) -> tuple[re.Pattern[str], tuple[float, ...]]:
    """A pattern with a group for each word, those first that others begin with; and the value of each group."""
    known = sorted(cues.table(code).numbers.items(), key=lambda entry: _plainly_longest(entry[0]))
    return re.compile("|".join(f"({word})" for word, _ in known), re.IGNORECASE), tuple(value for _, value in known)


def _plainly_longest(word: str) -> tuple[int, int]:
    return -len(_CHOICES.sub("", word)), -len(word)


@cache
def _pattern(code: str) -> re.Pattern[str] | None:
    table = cues.table(code)
    if not table.numbers:
        return None
    word = f"(?:{'|'.join(sorted(table.numbers, key=len, reverse=True))})"
    whole = (
        rf"(?<![\w-]){word}(?:{_BETWEEN}{word})*(?![\w-])"
        if table.spaced
        else rf"(?<![{_NO_VALUE_BEHIND}]){word}+(?![月号])"
    )
    return re.compile(whole, re.IGNORECASE)


def _value(row: re.Match[str], code: str) -> float | None:
    """What a row of number words comes to: "two hundred fifty", "fünfundzwanzig", "二十五"."""
    total = current = 0.0
    pattern, values = _words(code)
    for match in pattern.finditer(row.string, row.start(), row.end() + _AHEAD):
        if match.end() > row.end() or match.lastindex is None:
            break
        value = values[match.lastindex - 1]
        if value >= 1000:
            total, current = total + max(current, 1) * value, 0.0
        elif value == 100 or (value == 10 and not cues.table(code).spaced and 0 < current < 10):
            current = max(current, 1) * value
        else:
            current += value
    return total + current or None
