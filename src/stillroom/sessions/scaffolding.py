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
_COMMAND = re.compile(r"\s*/([a-z][a-z-]{0,30})(?:\s|\Z)")
# Of pi, Kimi Code, and those that come after them.
_STEERING_NAMES = """
    add-dir changelog clear clone compact config copy debug editor exit export feedback fork help hotkeys import login
    logout mcp model name new permissions quit reload rename resume scoped-models session sessions settings setup share
    skills status theme thinking title tree undo usage version yolo
"""
_STEERING = frozenset(_STEERING_NAMES.split())
_STEERING_WORDS = 4
_NOTIFICATION = "<task-notification>"
_FINDING = re.compile(r"<(result|summary)>")


def without_blocks(text: str, tags: str) -> str:
    """`text` without the blocks `<tag …>…</tag>` whose tag matches the pattern `tags`; one that never ends stays.

    Words that only a block parted stay apart.
    """
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
    return _joined([*kept, text[end:]]) if end else text


def _joined(pieces: list[str]) -> str:
    joined: list[str] = []
    for piece in filter(None, pieces):
        if joined and not (joined[-1][-1].isspace() or piece[0].isspace()):
            joined.append("\n")
        joined.append(piece)
    return "".join(joined)


def steers_client(text: str) -> bool:
    """Whether a prompt is a command to the client, as `/compact` or `/model fast`, which asks for no work.

    Only of names that clients have, as a prompt may begin with a path or a command of the person's own; and with no
    more than a few words behind it, but for what a compaction is to keep.
    """
    command = _COMMAND.match(text)
    if command is None or command[1] not in _STEERING:
        return False
    return command[1] == "compact" or len(text.split()) <= _STEERING_WORDS


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
