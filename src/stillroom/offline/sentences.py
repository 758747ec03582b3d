"""Texts cut into sentences, in scripts with and without spaces between words."""

from __future__ import annotations

import re
from functools import lru_cache

MAX_CHARS = 24_000
"""Of one message; people type less, more is a paste."""
MAX_SENTENCES = 240
"""Of one message; a pasted book stays cheap."""
_BULLET = re.compile(r"^[ \t]*(?:[-*+•・]|\d{1,2}[.)]|[a-zA-Z][)]|#{1,6})[ \t]+")
_END = re.compile(
    r"(?<=[。！？])(?![」』）”’])|(?<=[!?।])[\"'”’)\]]?\s+|(?<=[^.]\.)[\"'”’)\]]?\s+|(?<=…)\s+(?=[A-ZÀ-ÞА-Я])"
    r"|(?<=\w{4});\s+(?=\w[^;]{25})"
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|incl|max|min|vs|cf|approx|nr|dr|mrs?|st|z\.\s?B|bzw|d\.\s?h|u\.\s?a|ggf|ca|usw|inkl"
    r"|p\.\s?ex|np|tj|т\.\s?[едп]|[A-Za-zА-Яа-я])\.$",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
CJK = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
_CODE = re.compile(r"`[^`]+`|[\w.-]*[/\\][\w./\\-]+|\b\w+[_.:]\w[\w.:]*|\b[a-z]+[A-Z]\w+|--?[a-z][\w-]+|\b\w+\(\)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_ENDS = ".!?。！？:："
_STEM_CHARS = 7


def sentences(text: str) -> list[str]:
    """The sentences of `text` in order. List items stand alone; hard-wrapped lines are joined.

    >>> sentences("- use pnpm. never npm.\\n- run `make lint` first")
    ['use pnpm.', 'never npm.', 'run `make lint` first']
    """
    found: list[str] = []
    for paragraph in _paragraphs(text[:MAX_CHARS]):
        start = 0
        for match in _END.finditer(paragraph):
            piece = paragraph[start : match.end()].strip()
            if not piece or piece.count("`") % 2 or _ABBREVIATION.search(piece):
                continue
            found.append(piece)
            start = match.end()
        if rest := paragraph[start:].strip():
            found.append(rest)
    return found[:MAX_SENTENCES]


def _paragraphs(text: str) -> list[str]:
    paragraphs: list[str] = []
    open_line = False
    for line in text.split("\n"):
        bare = _BULLET.sub("", line).strip()
        if not bare:
            open_line = False
        elif open_line and not _BULLET.match(line) and _goes_on(paragraphs[-1], bare):
            paragraphs[-1] += ("" if CJK.match(bare) else " ") + bare
        else:
            paragraphs.append(bare)
            open_line = True
    return paragraphs


def _goes_on(before: str, line: str) -> bool:
    """Whether `line` is the rest of a hard-wrapped sentence."""
    return len(before) > 50 and before[-1] not in _ENDS and (line[0].islower() or not line[0].isascii())


@lru_cache(maxsize=4096)
def terms(text: str) -> frozenset[str]:
    """What a text is about, for overlaps: stems of words of four letters and more, numbers, pairs of CJK characters."""
    found: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if CJK.search(word):
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        elif len(word) > 3 or word.isdigit():
            found.add(word[:_STEM_CHARS])
    return frozenset(found)


@lru_cache(maxsize=4096)
def identifiers(text: str) -> frozenset[str]:
    """Names and values of code: paths, options, `snake_case`, camel case, quoted code, longer numbers."""
    names = {name.casefold().strip("`.,") for name in _CODE.findall(text)}
    return frozenset(names | {number for number in _NUMBER.findall(text) if len(number) > 1})


def share(part: frozenset[str], whole: frozenset[str] | set[str]) -> float:
    """How much of `part` is in `whole`; 0 of nothing."""
    return len(part & whole) / len(part) if part else 0.0


def size(text: str) -> float:
    """Length in words; a CJK character is about half a word."""
    return len(re.findall(r"\w+", text)) + 0.45 * len(CJK.findall(text))


def clip(text: str, limit: int) -> str:
    """`text` on one line and within `limit` characters; a cut shows as `…`."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    cut = line[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit * 0.7 else cut).rstrip(" ,;:") + "…"
