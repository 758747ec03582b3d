"""Stillroom distils the finished sessions of coding agents into memory that later sessions use."""

from __future__ import annotations

from stillroom.release import VERSION

__version__ = VERSION

TYPE_CHECKING = False  # `typing` takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from stillroom.budget import RolloutBudget, RolloutBudgetConfig, TurnAborted
    from stillroom.config import Settings, load_settings
    from stillroom.errors import StillroomError
    from stillroom.recall.usage.citations import parse_memory_citation, strip_memory_citation
    from stillroom.recall.usage.usage_kinds import memories_usage_kinds_from_command
    from stillroom.recording.recorder import Recorder
    from stillroom.spending import Usage
    from stillroom.store.budgets import SharedBudget

__all__ = [
    "Recorder",
    "RolloutBudget",
    "RolloutBudgetConfig",
    "Settings",
    "SharedBudget",
    "StillroomError",
    "TurnAborted",
    "Usage",
    "load_settings",
    "memories_usage_kinds_from_command",
    "parse_memory_citation",
    "strip_memory_citation",
]

_HOMES = {
    "Recorder": "stillroom.recording.recorder",
    "RolloutBudget": "stillroom.budget",
    "RolloutBudgetConfig": "stillroom.budget",
    "Settings": "stillroom.config",
    "SharedBudget": "stillroom.store.budgets",
    "StillroomError": "stillroom.errors",
    "TurnAborted": "stillroom.budget",
    "Usage": "stillroom.spending",
    "load_settings": "stillroom.config",
    "memories_usage_kinds_from_command": "stillroom.recall.usage.usage_kinds",
    "parse_memory_citation": "stillroom.recall.usage.citations",
    "strip_memory_citation": "stillroom.recall.usage.citations",
}


def __getattr__(name: str) -> Any:  # PEP 562: importing the package must cost next to nothing
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
