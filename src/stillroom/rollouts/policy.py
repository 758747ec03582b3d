"""What of a Codex rollout may feed memory (spec §5.5)."""

from __future__ import annotations

MEMORY_ITEMS = frozenset(
    {
        "message",
        "agent_message",
        "local_shell_call",
        "function_call",
        "function_call_output",
        "tool_search_call",
        "tool_search_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "web_search_call",
    }
)
"""Kinds of `ResponseItem` that memory keeps; messages unless their role is `developer`."""

DROPPED_ITEMS = frozenset(
    {
        "reasoning",
        "image_generation_call",
        "compaction",
        "compaction_summary",
        "context_compaction",
        "compaction_trigger",
        "additional_tools",
        "other",
    }
)
"""Kinds that are known and never kept."""

OTHER_LINES = frozenset(
    {
        "inter_agent_communication_metadata",
        "compacted",
        "world_state",
        "security_risk_score",
        "event_msg",
        "token_usage_record",
        "realtime_item",
        "retained_context",
    }
)
"""Kinds of lines that are known and hold nothing for memory."""

DROPPED_ROLES = frozenset({"developer", "system"})
"""The harness speaking: instructions, and memory itself when it was injected."""
