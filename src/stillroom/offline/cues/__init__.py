"""What people say when they mean something: one table a language, in the `.toml` files beside this one."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from stillroom.pattern import late

Script = Literal["latin", "cyrillic", "other"]
SCRIPT_OF: dict[str, Script] = {"ru": "cyrillic", "ko": "other", "zh": "other", "ja": "other"}

FALLBACK = "en"
"""Applied besides the language of a message: people mix English into every language when they speak of code."""


_REMEMBERED = 4096
"""Answers kept: a long session has some hundred sentences, and two dozen questions are asked of each."""


class Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One language's table. Entries of `cues` are regular expressions."""

    language: str
    #: Words are separated by spaces, so cues stand between word borders.
    spaced: bool
    stopwords: frozenset[str]
    cues: dict[str, tuple[str, ...]]
    #: Regular expressions for the words of numbers, each with its value. "One" is none: it is an article in most.
    numbers: dict[str, float] = {}
    #: Characters that are written in two ways, and the way in which this table writes them.
    variants: tuple[str, str] = ("", "")


@cache
def codes() -> tuple[str, ...]:
    """The languages that have a table, in a stable order."""
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("*.toml")))


@cache
def table(code: str) -> Language:
    """The table of one language, read when that language first occurs."""
    text = Path(__file__).with_name(f"{code}.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Language)


@cache
def stopwords(script: Script) -> frozenset[str]:
    """Little words of every spaced language that is written so."""
    wanted = (code for code in codes() if SCRIPT_OF.get(code, "latin") == script)
    return frozenset().union(*(table(code).stopwords for code in wanted if table(code).spaced))


@cache
def _variants(language: str) -> dict[int, int]:
    written, own = table(language).variants
    return dict(zip(map(ord, written), map(ord, own), strict=True))


def levelled(text: str, language: str) -> str:
    """`text` with every character as the table of `language` writes it; as long as it was."""
    variants = _variants(language)
    return text.translate(variants) if variants else text


@cache
def _pattern(language: str, kind: str) -> re.Pattern[str] | None:
    spoken = table(language)
    entries = spoken.cues.get(kind, ())
    if not entries:
        return None
    joined = "|".join(_typed(levelled(entry, language), spoken.spaced) for entry in entries)
    # An entry that begins or ends with a mark (", not …") has its border in itself.
    bounded = rf"(?:(?<![\w-])|(?=[^\w-]))(?:{joined})(?![\w-])" if spoken.spaced else f"(?:{joined})"
    return re.compile(bounded, re.IGNORECASE)


_WHOLE = (("A-Za-z", late(r"[A-Za-z ]+")), ("\u30a1-\u30fa\u30fc", late(r"[\u30a1-\u30fa\u30fc]+")))
_DROPPED = late(r"(?:(?<=n)(?=.{4}t\b)|(?<=let|hat)(?=.{4}s\b)|(?<=\bi)(?=.{4}m\b))\['’\]")


def _typed(entry: str, spaced: bool) -> str:
    """An entry as people type it: with any apostrophe, or none ("dont"). Latin and katakana words are whole."""
    for letters, whole in _WHOLE:
        if not spaced and whole.fullmatch(entry):
            return rf"(?<![{letters}]){entry}(?![{letters}])"
    return _DROPPED.sub("['’]?", entry.replace("'", "['’]"))


@cache
def _opening(language: str, kind: str) -> re.Pattern[str] | None:
    pattern = _pattern(language, kind)
    return None if pattern is None else re.compile(rf"[\W_]*(?:{pattern.pattern})", re.IGNORECASE)


# Rules ask the same of a sentence more than once.
@lru_cache(maxsize=_REMEMBERED)
def has(kind: str, text: str, spoken: tuple[str, ...]) -> bool:
    """Whether `text` holds a cue of this kind in one of the languages."""
    return any(
        pattern.search(levelled(text, code)) is not None
        for code in spoken
        if (pattern := _pattern(code, kind)) is not None
    )


@lru_cache(maxsize=_REMEMBERED)
def opens(kind: str, text: str, spoken: tuple[str, ...]) -> int:
    """Length of the cue that `text` begins with; 0 for none."""
    ends = [0]
    for code in spoken:
        pattern = _opening(code, kind)
        match = pattern.match(levelled(text, code)) if pattern is not None else None
        if match:
            ends.append(match.end())
    return max(ends)


def begins(kind: str, text: str, spoken: tuple[str, ...], *, within: int = 24) -> bool:
    """Whether a cue of this kind begins within the first characters of `text`."""
    for code in spoken:
        pattern = _pattern(code, kind)
        match = pattern.search(levelled(text, code)) if pattern is not None else None
        if match and match.start() <= within:
            return True
    return False


def count(kind: str, text: str, spoken: tuple[str, ...]) -> int:
    """How many cues of this kind `text` holds."""
    patterns = ((code, _pattern(code, kind)) for code in spoken)
    return sum(len(p.findall(levelled(text, code))) for code, p in patterns if p is not None)


@lru_cache(maxsize=_REMEMBERED)
def without(kind: str, text: str, spoken: tuple[str, ...]) -> str:
    """`text` without its cues of this kind."""
    for code in spoken:
        pattern = _pattern(code, kind)
        if pattern is not None:
            text = pattern.sub(" ", levelled(text, code))
    return text


def parts(kind: str, text: str, spoken: tuple[str, ...]) -> list[str]:
    """`text` cut at its cues of this kind, in the first of the languages that has any there."""
    for code in spoken:
        pattern = _pattern(code, kind)
        if pattern is not None and len(found := _split(pattern, text, code)) > 1:
            return found
    return [text]


def _split(pattern: re.Pattern[str], text: str, language: str) -> list[str]:
    """`text`, in its own characters, cut where the pattern is met."""
    spans = [match.span() for match in pattern.finditer(levelled(text, language))]
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def without_opener(text: str, spoken: tuple[str, ...]) -> str:
    """`text` without what it opens with before it comes to the point: "no,", "and please", "from now on"."""
    for _ in range(4):
        length = opens("opener", text, spoken)
        rest = text[length:].lstrip(" ,.;:!-–—、，。！：…")
        if not length or len(rest) < 4:
            break
        text = rest
    return text


_SCRIPTS = (
    ("ja", late(r"[\u3041-\u30ff]")),
    ("ko", late(r"[\uac00-\ud7a3]")),
    ("zh", late(r"[\u4e00-\u9fff]")),
    ("ru", late(r"[\u0400-\u04ff]")),
)
# Letters that speak for one Latin language among those of the tables.
_LETTERS = {
    "en": late(r"(?!)"),
    "de": late(r"[äöüßÄÖÜ]"),
    "fr": late(r"[èêëâîôûùçœ]|\b[ldcnsj]'"),
    "es": late(r"[ñ¿¡]"),
    "pt": late(r"[ãõ]|ç[ãõ]"),
}
_WORD = late(r"[^\W\d_]+(?:'[^\W\d_]+)?")


@cache
def _own_words(language: str) -> frozenset[str]:
    """Words that speak for a language: its commonest ones, and cues that are a single word."""
    own = table(language)
    kinds = ("frequency", "changed", "standing", "prohibition")
    single = (entry for kind in kinds for entry in own.cues.get(kind, ()))
    return own.stopwords | {entry for entry in single if entry.isalpha()}


def detect(text: str, otherwise: str = FALLBACK) -> str:
    """The language of `text`: by script, else by its commonest little words, else `otherwise`."""
    return _spoken(text, otherwise)


@lru_cache(maxsize=512)
def _spoken(text: str, session: str) -> str:
    """The language of `text`. The session's own, unless another one is clearly ahead: neighbours share little words."""
    sample = text[:4000]
    for code, pattern in _SCRIPTS:
        if code in codes() and len(pattern.findall(sample)) >= 2:
            return code
    words = [w.casefold() for w in _WORD.findall(sample)]
    votes = {
        code: sum(word in _own_words(code) for word in words) + 2 * len(_LETTERS[code].findall(sample))
        for code in _LETTERS
        if code in codes()
    }
    best = max(votes, key=lambda code: (votes[code], code == session, code))
    # A word or two: "no" is a word of four of these languages.
    return best if votes[best] >= votes.get(session, 0) + 2 else session


def spoken_in(text: str, session: str = FALLBACK) -> tuple[str, ...]:
    """Languages whose cues apply to `text`: its own, or the session's, or the fallback.

    Latin languages share little words ("no" is a refusal in one and "in the" in another), so English joins only
    messages in other scripts, and those that show no language of their own.
    """
    own = _spoken(text, session)
    found = dict.fromkeys((own, session)) if own == FALLBACK else dict.fromkeys((own,))
    if own in ("zh", "ja", "ko", "ru"):
        found[FALLBACK] = None
    return tuple(found)
