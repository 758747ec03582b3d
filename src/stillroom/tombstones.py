"""Tells a statement that a person removed wherever it comes again: by hashes of its words, none of which is kept.

Two statements are one when their words are the same in their order, whatever the case, the punctuation, the quotes, the
label behind them (`(in shop)`, `[Task 3]`, `-> default in shop`), and words that only say that it is a rule ("please",
"from now on", "always"). "never" is no such word: a rule and its opposite are two.

>>> forms('- the user said: "Please always use pnpm here."') & forms("* Use pnpm here [Task 2]") != frozenset()
True
>>> forms("- never use pnpm here") & forms("- use pnpm here")
frozenset()
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

from stillroom.pattern import late

#: By the digest of a statement: how many words it has.
Buried = Mapping[bytes, int]

REMOVED = "(removed)"
_BULLET = late(r"^(\s*)(?:[-*+]|\d{1,3}[.)])\s+(.*)$")
_HEADING = late(r"^\s*#{1,6}\s")
#: What stands behind a statement: where it holds, what it rests on, how often it was said.
_LABEL = late(
    r"\s*(?:-> default\b.*|\[[^\[\]]*\]"
    r"|\((?:(?:in|then|said|seen|heard) |(?:replaces|supersedes): |passed\b|\d+ times)[^()]*\))$"
)
#: Labels are as long as this, and as many.
_LABEL_CHARS, _LABELS = 600, 8
#: Who says it: the quotation alone is a statement then.
_SAID = late(
    r"\b(?:said|asked|corrected|wrote|answered|says|asks)\b[^\"“”]{0,40}[\"“]([^\"“”]{2,})[\"”]", re.IGNORECASE
)
#: Lines that hold several statements, or the title of one.
_COMPOUND = late(r"^(\s*(?:[-*+]\s+)?(?:learnings|desc|description|task): )(.*)$")
_WORD = late(r"[^\W_]+")
_RULE = late(r"\bfrom now on\b|\bin (?:the )?future\b")
_WEAK = frozenset({"a", "an", "the", "please", "always"})
#: Fewer words in the middle of a line may be anybody's.
_LEAST_SPAN = 4


def forms(line: str) -> frozenset[bytes]:
    """By which the statement of a line is known; nothing where the line says nothing."""
    return frozenset(_counted(line))


def counted_forms(line: str) -> dict[bytes, int]:
    """The same, each with the number of its words, as it is kept."""
    return _counted(line)


def says(line: str, buried: Buried) -> bool:
    """Whether a line is one of these statements."""
    return not buried.keys().isdisjoint(_counted(line))


def without(text: str, buried: Buried) -> tuple[str, list[str]]:
    """The text without these statements, and the lines that went or were changed.

    A list item goes with what is indented below it; in a title, or among others on one line, the words alone go.
    """
    if not buried:
        return text, []
    kept: list[str] = []
    gone: list[str] = []
    below: int | None = None
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        if below is not None and line.strip() and indent > below:
            gone.append(line)
            continue
        below = None
        if not line.strip():
            kept.append(line)
            continue
        bullet = _BULLET.match(line)
        if not _HEADING.match(line) and not _COMPOUND.match(line) and says(line, buried):
            gone.append(line)
            below = len(bullet[1]) if bullet else None
            continue
        changed = _cut(line, buried)
        if changed != line:
            gone.append(line)
            if not changed.strip():
                continue
        kept.append(changed)
    return "\n".join(kept), gone


def _counted(line: str) -> dict[bytes, int]:
    bullet = _BULLET.match(line)
    text = bullet[2] if bullet else line.strip()
    for _ in range(_LABELS):
        text = text.rstrip()
        start = max(len(text) - _LABEL_CHARS, 0)
        label = _LABEL.search(text[start:])
        if label is None or not start + label.start():
            break
        text = text[: start + label.start()]
    said = _SAID.findall(text)[-1:]
    found: dict[bytes, int] = {}
    for each in (text, *said):
        if words := [word for word, _ in _words(each)]:
            found[_digest(words)] = len(words)
    return found


def _cut(line: str, buried: Buried) -> str:
    """The line without the statements among its words."""
    if compound := _COMPOUND.match(line):
        parts = compound[2].split("; ")
        for size in range(len(parts), 0, -1):
            for start in range(len(parts) - size + 1):
                if says("; ".join(parts[start : start + size]), buried):
                    left = "; ".join(parts[:start] + parts[start + size :])
                    return _cut(f"{compound[1]}{left}", buried) if left else f"{compound[1]}{REMOVED}"
    if _BULLET.match(line) and not _names_a_task(line):
        return line
    words = list(_words(line))
    for size in sorted({size for size in buried.values() if size >= _LEAST_SPAN}, reverse=True):
        for start in range(len(words) - size + 1):
            span = words[start : start + size]
            if _digest(word for word, _ in span) in buried:
                return _cut(f"{line[: span[0][1].start()]}{REMOVED}{line[span[-1][1].end() :]}", buried)
    return line


def _names_a_task(line: str) -> bool:
    """An entry of the summary's index: `- TITLE: keyword, keyword`; and one that names a file by its first words."""
    return ": " in line and "," in line.rpartition(": ")[2]


def _words(text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """The words that count, each with its place."""
    masked = _RULE.sub(lambda match: " " * len(match[0]), text.lower() if len(text.lower()) == len(text) else text)
    for match in _WORD.finditer(masked):
        word = unicodedata.normalize("NFKC", match[0]).casefold()
        if word not in _WEAK:
            yield word, match


def _digest(words: Iterable[str]) -> bytes:
    from hashlib import sha256  # OpenSSL takes long to load, and most homes have no tombstone

    return sha256(b"statement\0" + " ".join(words).encode("utf-8", "surrogatepass")).digest()[:16]


__all__ = ["REMOVED", "Buried", "counted_forms", "forms", "says", "without"]
