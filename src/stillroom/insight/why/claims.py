"""What a line of memory claims, as words by which lines are found and told apart."""

from __future__ import annotations

import re
from typing import NamedTuple

from stillroom.pattern import late

#: Of a long line so much is looked at, and so many words are looked for: the first ones.
_MOST_CHARS = 4000
_MOST_WORDS = 40
#: A quote of less could stand anywhere.
_QUOTE_CHARS = 12
_QUOTED_WORDS = 3

_QUOTED = late(r"“([^”]{4,})[”…]|\"([^\"]{4,})(?:\"|…)|`([^`]{4,})`")
_BEHIND = late(r"(?:\s*(?:\[Task \d+\]|\[ad-hoc note\]|\(in [^()]{1,200}\)|\(supersedes: .*\)))+\s*$")
_MARKS = late(r"^\s*(?:[-*+>]\s+|\d+[.)]\s+|#{1,6}\s+(?:Task \d+:\s*)?)*")
_OUTCOME = late(r" \((?:success|partial|fail|failed|uncertain)\)$")
_WORD = late(r"[^\W_]+(?:[._/@+-][^\W_]+|_+[^\W_]+)*")
_UNSPACED = late("[\u0e01-\u0eff\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff]+")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "about after also always because been before being default does done each every files from have here into more"
        " most must need never only other over same should some than that their them then there these they this those"
        " unless used user using very what when where which while will with without work works would your",
    )
)
_LEAST_CHARS = 4
_ENDINGS = ("ings", "ing", "ed", "es", "s", "e")


class Claim(NamedTuple):
    """A line, taken apart."""

    #: The line without what marks it: what is looked for in earlier versions of its file.
    core: str
    #: Passages that it quotes, folded.
    quotes: tuple[str, ...]
    #: Words that tell something, folded, in their order.
    words: tuple[str, ...]


def claim_of(line: str) -> Claim:
    """What a line claims."""
    line = line.strip()[:_MOST_CHARS]
    core = _OUTCOME.sub("", _BEHIND.sub("", _MARKS.sub("", line, count=1)).strip())
    found = (next(part for part in match if part) for match in _QUOTED.findall(core))
    quotes = tuple(dict.fromkeys(folded(part).rstrip(" …") for part in found))
    words = words_of(" ".join(quotes))
    if len(words) < _QUOTED_WORDS:
        words = words_of(core)
    return Claim(core, tuple(quote for quote in quotes if len(quote) >= _QUOTE_CHARS), words[:_MOST_WORDS])


def folded(text: str) -> str:
    """`text` in one form: compatibility characters, case and runs of space are levelled."""
    return " ".join(levelled(text).split())


def levelled(text: str) -> str:
    """The same but for space: every line stays one."""
    if text.isascii():
        return text.casefold()
    import unicodedata  # most texts are plain

    return unicodedata.normalize("NFKC", text).casefold()


def words_of(text: str) -> tuple[str, ...]:
    """The words that tell something, each once; of scripts without spaces, pairs of characters."""
    text = folded(text)
    found: list[str] = []
    if not text.isascii():
        for run in _UNSPACED.findall(text):
            found += [run[at : at + 2] for at in range(max(1, len(run) - 1))]
        text = _UNSPACED.sub(" ", text)
    for word in _WORD.findall(text):
        plain = word.isalpha()
        if (len(word) >= _LEAST_CHARS or (not plain and len(word) > 1)) and word not in _COMMON:
            found.append(_stem(word))
    return tuple(dict.fromkeys(found))


def _stem(word: str) -> str:
    """So much of a word as its other forms have too."""
    if word.isascii() and word.isalpha():
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _LEAST_CHARS:
                return word[: -len(ending)]
    return word


def claims_nothing(line: str, claim: Claim) -> bool:
    """A heading of the format, a count of sessions, a reference to one, a record of Stillroom's, a blank line."""
    text = line.strip()
    if not claim.words or text.startswith(
        ("<!--", "handbook: ", "summary: ", "out: ", "-->", "scope: ", "applies_to: ")
    ):
        return True
    if text.startswith("#"):
        return "Task " not in text or "Task Group" in text
    return text.startswith("- rollout_summaries/") or _is_count(text)


def _is_count(text: str) -> bool:
    number, _, rest = text.removeprefix("- ").partition(" ")
    return number.isdigit() and rest.startswith(("session is remembered", "sessions are remembered"))
