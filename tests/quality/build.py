"""Turns a scenario into a rollout: `stillroom.evaluate.scenario`, by the names that the tests use."""

from __future__ import annotations

from stillroom.evaluate.scenario import Scenario, from_table, load, rollout_lines, thread_of, write_rollout

__all__ = ["Scenario", "from_table", "load", "rollout_lines", "thread_of", "write_rollout"]
