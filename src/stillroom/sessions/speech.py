"""Who speaks in a message: a client also puts its own texts into user messages."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from stillroom.pattern import late
from stillroom.sessions.item import MESSAGES, UNREADABLE, Item

Speaker = Literal["user", "assistant", "agent", "harness"]
"""`agent`: another agent's message; `harness`: text that the client put in a user message."""

_HARNESS = late(
    r"\s*(?:<(?:environment_context|user_instructions|turn_aborted|hook_[a-z_]+|user_shell_command|rollout_budget|superseded_message"
    r"|system-reminder|permissions|collaboration_mode|apps_instructions|skills_instructions|skill)\b"
    r"|# AGENTS\.md instructions)",
    re.IGNORECASE,
)
_AGENT = late(r"\s*(?:<subagent_notification>|Message Type:.*\n\s*Task name:.*\n\s*Sender:.*\n\s*Payload:)")

# The editor extension writes open files and selections before what the user typed.
_REQUEST = late(r"^#+ My request for Codex:?[ \t]*$", re.MULTILINE)
# A preview is made of this much of a message.
_PREVIEWED_CHARS = 20_000


class Part(msgspec.Struct):
    """One part of a message's content."""

    type: str = ""
    text: str | None = None


class _Metadata(msgspec.Struct):
    content_item_kinds: list[str] | None = None


class Message(msgspec.Struct):
    """The fields of a `message` item that tell who says what."""

    role: str = ""
    content: list[Part] | str = ""
    phase: str | None = None
    internal_chat_message_metadata_passthrough: _Metadata | None = None


_message = msgspec.json.Decoder(Message)


def speeches(message: Message) -> list[tuple[Speaker, str]]:
    """What is said in a message; neighbouring parts of one speaker are joined by a newline."""
    parts = [Part("input_text", message.content)] if isinstance(message.content, str) else message.content
    metadata = message.internal_chat_message_metadata_passthrough
    kinds = metadata.content_item_kinds if metadata is not None else None
    said: list[tuple[Speaker, str]] = []
    for number, part in enumerate(parts):
        if not part.text or not part.text.strip():
            continue
        kind = kinds[number] if kinds is not None and len(kinds) == len(parts) else ""
        who = _speaker(message.role, part.text, kind)
        if said and said[-1][0] == who:
            said[-1] = (who, said[-1][1] + "\n" + part.text)
        else:
            said.append((who, part.text))
    return said


def said_in(item: Item) -> list[tuple[Speaker, str]] | None:
    """What is said in an item; None for one that is no message, or that can't be read."""
    if item.type not in MESSAGES:
        return None
    try:
        return speeches(_message.decode(item.raw))
    except UNREADABLE:
        return None


def first_words(item: Item, *, max_chars: int, of_agents: bool = False) -> str:
    """The preview that a user's message gives a thread, or, `of_agents`, another agent's too; "" for any other item."""
    if of_agents and item.type == "agent_message":
        wanted: Speaker = "agent"
    elif item.type == "message" and item.role == "user":
        wanted = "user"
    else:
        return ""
    texts = (text for who, text in said_in(item) or () if of_agents or who == wanted)
    return next((words for text in texts if (words := preview_text(text, max_chars=max_chars))), "")


def preview_text(text: str, *, max_chars: int) -> str:
    """The first words of `text` on one line, without what an editor put before them."""
    text = text[:_PREVIEWED_CHARS]
    if request := _REQUEST.search(text):
        text = text[request.end() :]
    text = " ".join(text.split())
    return text if len(text) <= max_chars else text[: max_chars - 1].rstrip() + "…"


def _speaker(role: str, text: str, kind: str) -> Speaker:
    if role == "assistant":
        return "assistant"
    if role != "user":
        return "harness"
    if kind.startswith("user."):
        return "user"
    if kind.startswith("multi_agent.") or _AGENT.match(text):
        return "agent"
    return "harness" if kind not in ("", "unknown") or _HARNESS.match(text) else "user"
