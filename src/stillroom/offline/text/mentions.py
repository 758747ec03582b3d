"""Words that a sentence quotes: they are spoken of, not said."""

from __future__ import annotations

from stillroom.pattern import late

_QUOTED = late(
    r"«[^«»\n]+»|“[^“”\n]+”|„[^„“”\n]+[“”]|「[^「」\n]+」|『[^『』\n]+』|(?<![\w\"])\"[^\"\n]+\"(?!\w)"
    r"|(?<!\w)'(?=[^'\n]* )[^'\n]{12,}'(?!\w)"
)
_MARKS = {"«": "»", "“": "”", "„": "“”", "「": "」", "『": "』", '"': '"'}
_LEAST_WORDS, _LEAST_CHARS = 4, 8
"""A quotation from this on (words, or characters where words aren't parted) is a saying; a shorter one is a name."""
_WITHIN_CHARS = 400
"""A mark that isn't closed within this is no quotation."""


def without(text: str) -> str:
    """`text` with each saying that it quotes cut down to its marks."""
    return _QUOTED.sub(lambda m: f"{m[0][0]}…{m[0][-1]}" if _is_saying(m[0][1:-1]) else m[0], text)


def quoted(text: str) -> list[str]:
    """What `text` has in quotation marks: more than a word as it stands, less than that in the marks of code."""
    found: list[str] = []
    for match in _QUOTED.finditer(text):
        inner = match[0][1:-1]
        if len(inner.split()) > 1 or sum(ord(c) > 0x2E80 for c in inner) > 2:
            found.append(inner)
        elif inner.strip():
            found += [f'"{inner}"', f"'{inner}'"]
    return found


def splits(text: str, start: int, end: int) -> bool:
    """Whether a cut at `end` would part a quotation that was opened after `start`."""
    piece = text[start:end]
    for opening, closing in _MARKS.items():
        if opening not in piece:
            continue
        if opening == closing:
            inside = piece.count(opening) % 2 == 1
        else:
            inside = piece.rfind(opening) > max(piece.rfind(mark) for mark in closing)
        if inside and any(mark in text[end : end + _WITHIN_CHARS] for mark in closing):
            return True
    return False


def _is_saying(quoted: str) -> bool:
    unparted = sum(ord(c) > 0x2E80 for c in quoted)
    return len(quoted.split()) >= _LEAST_WORDS or unparted >= _LEAST_CHARS
