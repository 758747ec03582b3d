"""Closed-class words that say what a sentence is for: always, not, please, today, ok, undo, because, I will."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

KINDS = ("lasting", "negative", "want", "passing", "opinion", "nod", "undo", "because", "plan", "strong", "explicit")
"""What is counted in every sentence."""
_ALL = (*KINDS, "changed", "ended", "solved", "asks", "yes")
#: Scripts that are written without spaces, or whose words carry endings.
_JOINED = re.compile(r"[\u0900-\u097f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")


def found(text: str) -> dict[str, int]:
    """How many cues of each kind are in `text`, in whatever language.

    >>> found("From now on use yarn")["explicit"]
    1
    """
    text = text.replace("’", "'")
    joined = bool(_JOINED.search(text))
    spaced, anywhere = _patterns()
    return {
        kind: len(spaced[kind].findall(text)) + (len(anywhere[kind].findall(text)) if joined else 0) for kind in KINDS
    }


def has(kind: str, text: str) -> bool:
    """Whether a cue of this kind is in `text`."""
    text = text.replace("’", "'")
    spaced, anywhere = _patterns()
    return bool(spaced[kind].search(text) or (_JOINED.search(text) and anywhere[kind].search(text)))


def joined(kind: str, text: str) -> bool:
    """The same for scripts without spaces alone, where a word may stand anywhere."""
    return bool(_JOINED.search(text) and _patterns()[1][kind].search(text))


def without(kind: str, text: str) -> str:
    """`text` without its cues of this kind."""
    spaced, anywhere = _patterns()
    return anywhere[kind].sub(" ", spaced[kind].sub(" ", text.replace("’", "'")))


def places(kind: str, text: str) -> list[tuple[int, int]]:
    """Where the cues of this kind are in `text`: begin and end."""
    text = text.replace("’", "'")
    spaced, anywhere = _patterns()
    found = [match.span() for match in spaced[kind].finditer(text)]
    return found + ([match.span() for match in anywhere[kind].finditer(text)] if _JOINED.search(text) else [])


@cache
def families() -> dict[str, str]:
    """Which names stand for a choice of one kind: `pnpm` and `yarn` are both package managers."""
    names = _named()["families"]
    return {name: family for family, members in names.items() for name in members.split()}


@cache
def stopwords() -> frozenset[str]:
    """Words that no sentence is about."""
    return frozenset(word for language in _table().values() for word in str(language.get("stop", "")).split())


@cache
def _table() -> dict[str, dict[str, Any]]:
    return {name: table for name, table in _named().items() if name != "families"}


@cache
def _named() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("cues.toml").read_text(encoding="utf-8"))


@cache
def _patterns() -> tuple[dict[str, re.Pattern[str]], dict[str, re.Pattern[str]]]:
    table = _table()
    spaced, anywhere = {}, {}
    for kind in _ALL:
        apart = [word for language in table.values() if "anywhere" not in language for word in language.get(kind, [])]
        joined = [word for language in table.values() if "anywhere" in language for word in language.get(kind, [])]
        spaced[kind] = re.compile(rf"(?<!\w)(?:{'|'.join(apart)})(?!\w)", re.IGNORECASE)
        anywhere[kind] = re.compile("|".join(joined))
    return spaced, anywhere
