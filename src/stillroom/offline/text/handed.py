"""What a message hands on: chats, letters, and texts announced as somebody else's or as matter to work on."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stillroom.offline import cues
from stillroom.pattern import late

_CHAT = late(
    r"^\W{0,3}(?:[\[(]?\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m)?[\])]?\s*[-–,]?\s*@?[\w.-]+(?: [\w.-]+)?\s*[:：>]\s"
    r"|@?[\w.-]+(?: [\w.-]+)?,?\s*[\[(]?\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]m)?[\])]?\s*[:：>-]\s*\S"
    r"|<@?[\w.-]{2,20}>\s|@[\w.-]{2,30}\s?[:：]\s)",
    re.IGNORECASE,
)
"""Somebody's line of a chat: a name beside a time of day, in angle brackets, or behind an at sign."""
_SPEAKER = late(
    r"^\s*(?:[-*•・]\s*)?([A-ZÀ-ÞА-Я][\w.]+(?: [\w.]+)?|[\u4e00-\u9fff\u3041-\u30ff\uac00-\ud7a3]{1,6})"
    r"\s*[:：]\s*\S"
)
_LETTER = late(r"^\s*(?:From|Von|De|发件人|差出人|От|보낸 사람)\s*[:：]\s*\S.*@")
_FENCED = ("```", "~~~", ">", "<")
"""A block that begins so has its own end, and its own rule (`sentences.without_pastes`)."""
_LEAST_WORDS = 8
"""A paragraph up to this long, after a gap and no colon, may be the user's own next sentence."""


def without_handed_on(text: str, spoken: tuple[str, ...]) -> str:
    """`text` without what it hands on; the lines that announce it stay."""
    lines = text.split("\n")
    gone = _repeated_speakers(lines)
    kept: list[str] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        if _LETTER.match(line):
            break
        if number not in gone and not _CHAT.match(line):
            kept.append(line)
        number += 1
        if line.strip() and number < len(lines) and (end := _block(lines, number, line, spoken)):
            number = end
            kept.append("")
    return "\n".join(kept)


def _block(lines: Sequence[str], start: int, announcing: str, spoken: tuple[str, ...]) -> int:
    """Where the block ends that `announcing` hands on; 0 when it announces none."""
    first = next((n for n in range(start, len(lines)) if lines[n].strip()), len(lines))
    if first == len(lines) or lines[first].lstrip().startswith(_FENCED):
        return 0
    colon = announcing.rstrip().endswith((":", "："))
    gap = first > start
    shown = colon or (gap and cues.has("exhibit", announcing, spoken))
    if not shown or not cues.has("handover", announcing, spoken) or _is_own(announcing, spoken):
        return 0
    end = next((n for n in range(first, len(lines)) if not lines[n].strip()), len(lines))
    if not colon and sum(len(line.split()) for line in lines[first:end]) <= _LEAST_WORDS:
        return 0
    return end


def _is_own(announcing: str, spoken: tuple[str, ...]) -> bool:
    """Whether a line announces the user's own rules ("translate it by these rules:")."""
    return cues.has("standing", announcing, spoken) and not cues.has("reported", announcing, spoken)


def _repeated_speakers(lines: Sequence[str]) -> frozenset[int]:
    """Lines of a talk: each begins with a name and a colon, and one of several names comes back."""
    found: set[int] = set()
    run: list[tuple[int, str]] = []
    for number, line in enumerate([*lines, ""]):
        match = _SPEAKER.match(line)
        if match:
            run.append((number, match[1]))
            continue
        names = [name for _, name in run]
        if len(set(names)) > 1 and len(set(names)) < len(names):
            found.update(n for n, _ in run)
        run = []
    return frozenset(found)
