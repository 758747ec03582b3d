"""Texts that clients and hooks put into what a person typed, taken out again."""

from __future__ import annotations

import re
from functools import lru_cache

#: What any client or hook may have put into a message: of a format whose files don't say which client wrote it.
ANY_CLIENT = (
    "system-reminder|system_reminder|hook_context|session_context|loaded_context|hook_result|current_datetime|mode_notice"
    "|environment_details|environment_context|user_info|local-command-(?:stdout|stderr|caveat)|qwen:[a-z-]+-context"
)
_WRAPPED = re.compile(r"\s*<(user_query|user_input)\b[^>]{0,400}>(.*)</\1>\s*", re.DOTALL)
_NOBODYS = (
    *("Caveat: The messages below", "[Request interrupted by user", "<task-notification>", "<command-name>/compact"),
    *(
        "<command-name>/clear",
        "<tick>",
        "<goal>",
        "<session-start-hook>",
        "Warmup",
        "This session is being continued from",
    ),
)
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


def typed(text: str) -> str:
    """What is left of a prompt in a format of no one client's; "" for a message that a client wrote."""
    kept = without_blocks(text, ANY_CLIENT)
    if wrapped := _WRAPPED.fullmatch(kept):
        kept = wrapped[2]
    return "" if not kept.strip() or kept.lstrip().startswith(_NOBODYS) else kept
