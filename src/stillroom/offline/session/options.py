"""The choices that the assistant laid out, and which of them an answer picks."""

from __future__ import annotations

import re

from stillroom.offline import cues
from stillroom.offline.text import words
from stillroom.pattern import late

LABEL = r"[1-9]|[A-Ea-e]"
_SIGNS = dict(zip("①②③④甲乙丙一二三四", "123412312344", strict=False)) | {"丁": "4", "四": "4"}
_SIGNED = late(r"([①②③④]|[甲乙丙](?=[、.：:）)]))[、.：:）)]?\s*([^①②③④\n]{3,200}?)(?=[。.；;\n]|[①②③④]|$)")
_LISTED = late(
    rf"^[ \t]*(?:[-*•][ \t]*)?(?:\*\*)?(?:(?:option|variante|opci[oó]n|op[cç][aã]o|вариант|方案|案|옵션)[ \t]*)?"
    rf"[(（]?({LABEL}|[一二三四])(?:\*\*)?[.)）:：、][ \t]*(?:\*\*)?(.{{3,300}}?)[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
_INLINE = late(
    rf"(?:^|(?<=[\s(（:：;；,，、]))({LABEL})(?:[)）]|\.(?!\d))[ \t]*(.{{3,200}}?)(?=[,;，；、。]?[ \t]*"
    rf"(?:or |and |oder |und |o |ou |y |или "
    rf"|和|或|と|または)?[ \t]*[(（]?(?<!\w)(?:{LABEL})[)）.]|[?？。]|\.(?:\s|$)|$)",
    re.MULTILINE,
)
_PLACES = {"first": 0, "second": 1, "third": 2, "last": -1}
_LED = late(
    rf"^\W*(?:[\w']+\s){{0,3}}?[就选選用要取]{{0,2}}(?:the |die |la |el |a |o )?"
    rf"(?:option|variante|opci[oó]n|op[cç][aã]o|вариант|方案|选项|案|옵션)?\s*[(（]?({LABEL})(?:[)）]|\b(?!\s?[%\w])|[案番号번]"
    rf"|(?= (?:it is|it's|please|then|for me|sounds|bitte|por favor|s'il)))",
    re.IGNORECASE,
)
_MENTIONED = late(
    r"[(（]([1-9A-Ea-e])[)）]|\b(?:option|variante)\s+([1-9A-E])\b"
    r"|(?<=\w\s)([1-9B-E]|A(?! [a-z]+\b)|(?:(?<=to )|(?<=for )|(?<=with ))A)(?=[\s,.:;]|$)"
)

_HEADER = late(r"^.{0,60}?[:：]\s*")
_LEAST = 0.5
"""A choice says at least this much (in words)."""
_CLAUSE = late(r"(?:[,.;:!?…]+\s+|[，。；：、！？]|\s[-–—]+\s|\.\.+)")
_ROW = late(r"[,;]\s+(?![^(（]*[)）])|[，；、](?![^(（]*[)）])")


def options(reply: str, said: list[str], spoken: tuple[str, ...]) -> list[tuple[str, str]]:
    """Label and text of each choice in `reply`: a list, or the two sides of an "or" in its last sentences `said`."""
    found = [(_SIGNS.get(m[1], m[1].upper()), plain(m[2])) for m in _LISTED.finditer(reply)]
    if len(found) < 2:
        found = [(_SIGNS[m[1]], plain(m[2])) for m in _SIGNED.finditer(reply)]
    if len(found) < 2:
        found = [(m[1].upper(), plain(m[2])) for m in _INLINE.finditer(reply)]
    return found if len(found) >= 2 else _alternatives(said, spoken)


def listed(reply: str) -> list[str]:
    """The points of a list in `reply`, in order."""
    return [plain(m[2]) for m in _LISTED.finditer(reply)]


def picked(choices: list[tuple[str, str]], answer: str, spoken: tuple[str, ...]) -> str:
    """The choice that `answer` takes: by its label, its place, or a word that only this choice has."""
    if len(choices) < 2:
        return ""
    label = _LED.match(answer)
    if label:
        for name, text in choices:
            if name == label[1].upper():
                return text
    return by_place(choices, answer[:80], spoken) or by_name(choices, answer, spoken)


def mentioned(choices: list[tuple[str, str]], text: str, spoken: tuple[str, ...]) -> str:
    """The choice that the assistant itself comes down on in `text`."""
    if len(choices) < 2:
        return ""
    known = dict(reversed(choices))
    labels = (next(filter(None, m.groups())).upper() for m in _MENTIONED.finditer(text))
    return next((known[label] for label in labels if label in known), "") or by_place(choices, text, spoken)


def by_place(choices: list[tuple[str, str]], text: str, spoken: tuple[str, ...]) -> str:
    """The choice whose place in the row `text` names ("the latter")."""
    for kind, index in _PLACES.items():
        if index < len(choices) and cues.has(kind, text, spoken):
            return choices[index][1]
    return ""


def plain(text: str) -> str:
    """Markdown marks that only decorate, removed."""
    return re.sub(r"\*\*|__|^#+\s*|^[-*•]\s+", "", text).strip()


def by_name(choices: list[tuple[str, str]], answer: str, spoken: tuple[str, ...]) -> str:
    """The one choice that `answer` has a word of; of several the one that it ends or begins with, set off by a mark."""
    clauses = [clause for clause in _CLAUSE.split(answer) if clause.strip()]
    for part in (answer, clauses[-1], clauses[0]) if clauses else ():
        own = words.content(part)
        hits = [text for _, text in choices if own & words.content(text)]
        if len(hits) == 1 and not any(cues.has(kind, part, spoken) for kind in ("negation", "prohibition")):
            return hits[0]
    return ""


def sides(sentence: str, spoken: tuple[str, ...]) -> list[tuple[str, str]]:
    """The choices that an "or" in `sentence` parts."""
    halves = [half.strip(" ,;，；、。.?？") for half in cues.parts("either", _HEADER.sub("", sentence), spoken)]
    halves = [half for half in halves if half]
    if len(halves) != 2:
        return []
    # "A, B or C": what stands before the last one may be a row itself.
    row = [part.strip() for part in _ROW.split(halves[0])]
    found = [*row, halves[1]] if all(words.weight(words.content(part)) >= 1 for part in row) else halves
    if not all(words.weight(words.content(part)) >= _LEAST for part in found):
        return []
    return [(str(number), part) for number, part in enumerate(found, 1)]


def _alternatives(said: list[str], spoken: tuple[str, ...]) -> list[tuple[str, str]]:
    return next((found for sentence in reversed(said[-4:]) if (found := sides(sentence, spoken))), [])
