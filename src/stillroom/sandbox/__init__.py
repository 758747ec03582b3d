"""Where the tools of the consolidation agent run."""

from __future__ import annotations

from stillroom.sandbox.jail import Jail, JailLimits, Level, ToolResult
from stillroom.sandbox.probe import LevelReport, choose, probe
from stillroom.sandbox.worker_process import Worker

__all__ = ["Jail", "JailLimits", "Level", "LevelReport", "ToolResult", "Worker", "choose", "probe"]
