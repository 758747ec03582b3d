"""A thread: one agent session, whole. Readers make it, the store keeps it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

MemoryMode = Literal["enabled", "disabled", "polluted"]
"""Only `enabled` threads are extracted or selected (spec §4.3)."""


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a thread without reading its body."""

    thread_id: str
    #: Which agent recorded it: `codex`, `claude-code`, …
    agent: str
    #: The rollout on disk. For Codex the logical `.jsonl` path, even when only `.jsonl.zst` exists.
    rollout_path: str
    #: How the session was started: `cli`, `vscode`, `exec`, …, as Codex stores it.
    source: str
    cwd: str
    created_at_ms: int
    updated_at_ms: int
    title: str = ""
    #: First words of the user; a thread without any is never extracted.
    preview: str = ""
    memory_mode: MemoryMode = "enabled"
    archived: bool = False
    parent_thread_id: str | None = None
    git_branch: str | None = None
    git_sha: str | None = None
    git_origin_url: str | None = None
    cli_version: str | None = None
    model_provider: str | None = None

    @property
    def updated_at(self) -> int:
        """Whole seconds, the unit of every watermark."""
        return self.updated_at_ms // 1000


def meant_by(beginning: str, ids: Iterable[str]) -> list[str]:
    """Those of the ids that a person who typed this may mean: one, if all is clear.

    The id of a session is also the beginning of those of its sub-agents (`ID:agent-…`): the session is meant.
    """
    found = sorted({each for each in ids if each.startswith(beginning)}, key=len)
    if not found or all(each == found[0] or each.startswith(f"{found[0]}:") for each in found):
        return found[:1]
    return [beginning] if beginning in found else sorted(found)


class Rest(Thread, frozen=True, kw_only=True):
    """A thread that begins with what another one tells: only what follows is read of it."""

    #: So many items are passed over.
    told_items: int


class FileStamp(msgspec.Struct, frozen=True, kw_only=True):
    """How a session file looked when it was last read: an equal stamp means that nothing is to be done."""

    #: Bytes. Below zero where those would take too long to count: so many rows of a database, or files.
    size: int
    mtime_ns: int
    #: Bytes already looked at for metadata; a grown file is read from here.
    offset: int = 0
