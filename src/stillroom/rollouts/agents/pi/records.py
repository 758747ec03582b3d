"""The entries of the pi agent's sessions as the items that memory keeps."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from stillroom.rollouts.agents.decoder import text_of, time_of
from stillroom.rollouts.agents.made import Made
from stillroom.rollouts.agents.pi_messages import Message, MessageDecoder, Shell, sent_at

# What is said of the session itself; nothing in it was said or done.
_NOISE_NAMES = """
    context_edit context_transform credential_pin custom ephemeral label mcp_tool_selection mode_change model_change
    model_usage reset_boundary service_tier_change session session_info session_init thinking_level_change title_change
    ttsr_injection usage
"""
_NOISE = frozenset(_NOISE_NAMES.split())
_SUMMARIES = frozenset({"compaction", "branch_summary"})
_EXITED = re.compile(r"\n*Command exited with code (-?\d{1,10})\s*\Z")


class Entry(msgspec.Struct, rename="camel"):
    """A line."""

    type: Any = None
    id: Any = None
    parent_id: Any = None
    timestamp: Any = None
    cwd: Any = None
    message: Message | None = None


entry_of = msgspec.json.Decoder(Entry).decode


class Records(MessageDecoder):
    """Decodes the lines of one file. The past's prompts are known by their ids, its other records by their keys."""

    # The last two: a skill's text, and files that were named on the command line.
    scaffolding = "system-reminder|skill(?= name=)|file(?= name=)"

    def made(self, line: bytes) -> tuple[int | None, Iterable[Made]]:
        """The items of an entry."""
        entry = entry_of(line)
        kind = text_of(entry.type)
        if entry.message is not None and kind == "message":
            if not self.is_new(key_of(entry, line)):
                return None, ()
            at = time_of(entry.timestamp) or sent_at(entry.message)
            return at, self.of_message(entry.message, text_of(entry.id))
        if kind == "session":
            self.cwd = self.cwd or text_of(entry.cwd) or None
        elif kind == "custom_message":
            self.stats.drop("written by the client")
        elif kind in _SUMMARIES:
            self.stats.drop("compaction summary")
        elif kind not in _NOISE:
            self.stats.count_unknown(kind or "line")
        return None, ()

    def shell(self, text: str, *, failed: bool) -> Shell:
        """The exit code stands behind the output of a command that failed; of one that was stopped there is none."""
        if not failed:
            return Shell(text, 0)
        match = _EXITED.search(text, max(len(text) - 200, 0))
        return Shell(text[: match.start()], int(match[1])) if match else Shell(text, None)


def key_of(entry: Entry, line: bytes) -> str:
    """What tells an entry from all others of all sessions: ids are short, and the oldest versions have none."""
    return f"{entry.id} {entry.timestamp}" if isinstance(entry.id, str) else str(hash(line.rstrip()))
