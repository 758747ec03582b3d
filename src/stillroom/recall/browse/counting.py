"""Counts the calls of the memory tools: `memories.tool.call` (spec §3.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

from stillroom import telemetry
from stillroom.errors import RecallError
from stillroom.recall.browse.note_names import NOTES
from stillroom.recall.browse.paths import components

Tool = Literal["list", "read", "search", "add_ad_hoc_note"]
T = TypeVar("T")

_FILES = {"MEMORY.md": "memory_md", "memory_summary.md": "memory_summary", "raw_memories.md": "raw_memories"}
_FOLDERS = {"rollout_summaries": "rollout_summaries", "skills": "skills", NOTES: "ad_hoc_notes"}


def counted(tool: Tool, path: str | None, call: Callable[[], T]) -> T:
    """What `call` answers or raises, counted."""
    tags = {"tool": tool, "scope": scope_of(tool, path)}
    try:
        answer = call()
    except RecallError:
        telemetry.count("memories.tool.call", **tags, status="failed", truncated="unknown")
        raise
    truncated = str(getattr(answer, "truncated", "not_applicable")).lower()
    telemetry.count("memories.tool.call", **tags, status="succeeded", truncated=truncated)
    return answer


def scope_of(tool: Tool, path: str | None) -> str:
    """What part of the memory a call is about, for the metric."""
    try:
        steps = components(path)
    except RecallError:
        return "other"
    if not steps:
        return "all" if tool == "search" else "root"
    at = "/".join(steps)
    if at in _FILES:
        return _FILES[at]
    return next((scope for folder, scope in _FOLDERS.items() if f"{at}/".startswith(f"{folder}/")), "other")
