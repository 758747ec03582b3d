"""Texts that clients and hooks put into what a person typed, taken out again."""

from __future__ import annotations

import re
from functools import lru_cache

# A text with more kinds of openings that never close was made to be slow.
_MAX_UNCLOSED = 20
_NOTIFICATION = "<task-notification>"
_FINDING = re.compile(r"<(result|summary)>")


def without_blocks(text: str, tags: str) -> str:
    """`text` without the blocks `<tag …>…</tag>` whose tag matches the pattern `tags`; one that never ends stays."""
    kept: list[str] = []
    end = 0
    unclosed: set[str] = set()
    for opening in _opening(tags).finditer(text) if "<" in text else ():
        if opening.start() < end or opening[1] in unclosed or len(unclosed) > _MAX_UNCLOSED:
            continue
        closing = f"</{opening[1]}>"
        found = text.find(closing, opening.end())
        if found < 0:
            unclosed.add(opening[1])
            continue
        kept.append(text[end : opening.start()])
        end = found + len(closing)
    return "".join(kept) + text[end:] if end else text


def is_notification(text: str) -> bool:
    """Whether a text in the user's place tells how a task in the background ended."""
    return text.lstrip().startswith(_NOTIFICATION)


def finding_of(notification: str) -> str:
    """What the task found; how it ended where it found nothing."""
    found = {
        match[1]: notification[match.end() : notification.rfind(f"</{match[1]}>")].strip()
        for match in _FINDING.finditer(notification)
    }
    return found.get("result") or found.get("summary") or ""


@lru_cache(maxsize=16)
def _opening(tags: str) -> re.Pattern[str]:
    return re.compile(rf"<({tags})\b[^>]{{0,400}}>")
