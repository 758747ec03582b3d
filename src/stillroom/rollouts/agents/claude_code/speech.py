"""Who wrote a text in a user record of Claude Code: the client writes many of its own there."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from stillroom.rollouts.agents.claude_code.record import Record
from stillroom.rollouts.agents.made import ABORTED
from stillroom.rollouts.agents.scaffolding import without_blocks

Author = Literal["user", "harness", "agent"]


class Words(NamedTuple):
    """A text and who wrote it."""

    who: Author
    text: str


# Blocks that the client or a hook puts into what a person typed, or behind what a tool printed.
_BLOCKS = (
    "system-reminder|user-prompt-submit-hook|session-start-hook|new-diagnostics|ide_[a-z_]{1,40}"
    "|local-command-(?:stdout|stderr|caveat)"
)
# Texts that are the client's from their first word on.
_CLIENTS = (
    "Caveat: The messages below",
    "This session is being continued from a previous conversation",
    "<tick>",
    "<goal>",
    "<local-command-",
)
_INTERRUPTED = "[Request interrupted by user"
# Commands that steer the client. All others are prompts that somebody keeps in a file, and asks for by their names.
_BUILT_IN_NAMES = """
    add-dir agents allowed-tools bashes bug clear color compact config context copy cost doctor effort exit export
    extra-usage fast feedback help hooks ide install-github-app keybindings login logout mcp memory migrate-installer
    mobile model output-style permissions plugin privacy-settings quit release-notes reload-plugins remote-env rename
    resume rewind sandbox skills status statusline stats tasks terminal-setup theme todos upgrade usage vim voice
    web-setup
"""
_BUILT_IN = frozenset(_BUILT_IN_NAMES.split())
_SHELL = (("bash-input", "command"), ("bash-stdout", "result"), ("bash-stderr", "errors"))
_TEAMMATE = re.compile(r"</?teammate-message\b[^>]{0,400}>")


def without_scaffolding(text: str) -> str:
    """`text` without what the client or a hook put into it."""
    return without_blocks(text, _BLOCKS)


def is_typed(record: Record) -> bool:
    """Whether the record says that a person wrote it, or, as in older versions, does not say that nobody did."""
    if record.is_meta or record.is_compact_summary:
        return False
    attachment = record.attachment
    if attachment is not None and attachment.command_mode not in (None, "prompt"):
        return False
    origin: object = attachment.origin if attachment is not None else record.origin
    if isinstance(origin, dict) and "kind" in origin:
        kind: object = origin["kind"]
        return kind == "human"
    source: object = record.prompt_source
    writer: object = record.row_source
    return source != "system" and writer != "harness"


def read_words(text: str) -> Words | None:
    """Who says what in a text that is not marked as the client's; None where nothing is left of it."""
    text = without_scaffolding(text)
    start = text.lstrip()
    if not start or start.startswith(_CLIENTS):
        return None
    if start.startswith("["):
        return Words("harness", ABORTED) if start.startswith(_INTERRUPTED) else Words("user", text)
    if not start.startswith("<"):
        return Words("user", text)
    if start.startswith("<task-notification>"):
        # What a sub-agent found; the outcome in one line where it found nothing.
        return _said_by_agent(_inside(text, "result") or _inside(text, "summary"))
    if start.startswith("<teammate-message"):
        return _said_by_agent(_TEAMMATE.sub("", text))
    if start.startswith(("<command-name>", "<command-message>")):
        name = _inside(text, "command-name").strip().removeprefix("/")
        command = f"/{name} {_inside(text, 'command-args').strip()}".rstrip()
        return Words("user", command) if name and name not in _BUILT_IN else None
    if start.startswith(tuple(f"<{tag}>" for tag, _ in _SHELL)):
        return _shell(text)
    return Words("user", text)


def _said_by_agent(text: str) -> Words | None:
    return Words("agent", text.strip()) if text.strip() else None


def _shell(text: str) -> Words | None:
    """What a person ran in the client's own shell, in the form in which Codex records the same."""
    parts = [f"<{name}>\n{body}\n</{name}>" for tag, name in _SHELL if (body := _inside(text, tag).strip())]
    return Words("harness", "\n".join(("<user_shell_command>", *parts, "</user_shell_command>"))) if parts else None


def _inside(text: str, tag: str) -> str:
    """What stands between the tag's first opening and its last end: a text may hold the end itself."""
    start, end = text.find(f"<{tag}>"), text.rfind(f"</{tag}>")
    return text[start + len(tag) + 2 : end] if 0 <= start < end else ""
