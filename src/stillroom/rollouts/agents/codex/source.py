"""How a session was started, as one text that an allow-list can be held against."""

from __future__ import annotations

import msgspec


def source_text(source: object, *, thread_source: str | None = None, is_agent: bool = False) -> str:
    """`cli`, `vscode`, `exec`, … as they are; anything structured as its JSON text (spec §5.3).

    Sub-agents and Codex's memory worker are told by their JSON, also when only `thread_source` gives them away.
    """
    if source is None:
        source = "vscode"  # Codex's own default
    text = source if isinstance(source, str) else msgspec.json.encode(source).decode()
    if text.startswith("{"):
        return text
    if thread_source == "memory_consolidation":
        return '{"internal":"memory_consolidation"}'
    if is_agent or (thread_source or "").startswith("subagent"):
        return '{"subagent":"other"}'
    return text
