"""Whether a pass may begin at all: not for every session that could start one."""

from __future__ import annotations

import asyncio

from stillroom.config import Settings
from stillroom.pipeline.asked import Trigger
from stillroom.pipeline.report import SkipReason
from stillroom.store import Store


def gate(settings: Settings, trigger: Trigger) -> SkipReason | None:
    if not settings.memories.enabled:
        return "feature_off"
    if trigger.ephemeral:
        return "ephemeral"
    return None if trigger.kind == "root" else trigger.kind


async def gate_source(store: Store, trigger: Trigger) -> SkipReason | None:
    """A thread's own record says whether it is a sub-agent (`{"subagent":…}`) or a worker (`{"internal":…}`)."""
    thread = await asyncio.to_thread(store.threads.get, trigger.thread_id) if trigger.thread_id else None
    if thread is None:
        return None
    if "internal" in thread.source:
        return "memory_worker"
    return "sub_agent" if "subagent" in thread.source else None


__all__ = ["gate", "gate_source"]
