"""When an agent is told what is left, and in which words.

A reminder is due once for every threshold in every context window of a thread, or with `reminder_at_context_start`
switched off once for every threshold. It counts as delivered only when it stands in the history: an insertion that was
cancelled is tried again.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from stillroom.budget.charges import PER_TOKEN, units_of
from stillroom.budget.config import RolloutBudgetConfig


class Delivery(msgspec.Struct, frozen=True):
    """The last reminder that stands in a thread's history."""

    window_id: str
    index: int


class Reminder(msgspec.Struct, frozen=True, kw_only=True):
    """A message for the model, to be added at the end of its history, then marked as delivered."""

    thread_id: str
    #: The context window; compaction begins a new one.
    window_id: str
    #: How many thresholds are passed.
    index: int
    #: Weighted tokens, with their fraction.
    remaining_tokens: float

    @property
    def role(self) -> Literal["developer"]:
        """Whose message it is. A protocol without this role takes `system`."""
        return "developer"

    @property
    def text(self) -> str:
        """The fragment, byte for byte as Codex writes it."""
        remaining = f"{self.remaining_tokens:.6f}".rstrip("0").rstrip(".")
        return (
            "<rollout_budget>\n"
            f"You have {remaining} weighted tokens left in the shared session token budget.\n"
            "</rollout_budget>"
        )


def due_reminder(
    config: RolloutBudgetConfig, *, thread_id: str, window_id: str, remaining_units: int, delivered: Delivery | None
) -> Reminder | None:
    """The reminder that this thread has to be given now, if any. `remaining_units` may be below zero."""
    index = _index(config, remaining_units)
    if delivered and (delivered.window_id == window_id or not config.reminder_at_context_start):
        due = index > delivered.index
    else:
        due = config.reminder_at_context_start or index > 0
    if not due:
        return None
    return Reminder(
        thread_id=thread_id, window_id=window_id, index=index, remaining_tokens=max(remaining_units, 0) / PER_TOKEN
    )


def after_delivery(reminder: Reminder, *, delivered: Delivery | None) -> Delivery:
    """What is delivered now. A reminder that comes late never takes back a later one of its window."""
    if delivered and delivered.window_id == reminder.window_id and delivered.index > reminder.index:
        return delivered
    return Delivery(reminder.window_id, reminder.index)


def _index(config: RolloutBudgetConfig, remaining_units: int) -> int:
    if config.reminder_interval_tokens:
        return (units_of(config.limit) - remaining_units) // units_of(config.reminder_interval_tokens)
    return sum(remaining_units <= units_of(threshold) for threshold in config.reminder_at_remaining_tokens or ())
