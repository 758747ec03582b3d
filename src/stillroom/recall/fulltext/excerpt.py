"""Picks the line of a text that says most of what was searched for."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

#: A line of a terminal or two.
_CHARS = 200
#: What is shown ahead of the first word, so that it can be understood.
_LEAD_CHARS = 60


class Excerpt(NamedTuple):
    """A line, or the part of it around the first word."""

    #: Counted from 0.
    line: int
    text: str


def excerpt(text: str, words: Sequence[str]) -> Excerpt:
    """The first of the lines that hold most words; the first line with anything when none holds one."""
    best, most = Excerpt(0, ""), -1
    needles = [_folded(word) for word in words]
    for number, line in enumerate(text.split("\n")):
        if not line.strip(" #-=`|"):
            continue
        folded = _folded(line)
        count = sum(needle in folded for needle in needles)
        if count > most:
            most = count
            at = min((folded.find(needle) for needle in needles if needle in folded), default=0)
            best = Excerpt(number, _around(line, at))
            if count == len(needles):
                break
    return best


def _around(line: str, at: int) -> str:
    text = line.strip()
    at -= len(line) - len(line.lstrip())
    start = max(at - _LEAD_CHARS, 0) if len(text) > _CHARS else 0
    end = start + _CHARS
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _folded(text: str) -> str:
    """Without case and accents. The length may differ a little from the original's, which only moves an excerpt."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text)
    return "".join(char for char in plain if not unicodedata.combining(char)).casefold()
