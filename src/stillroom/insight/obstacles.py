"""What keeps the next pass from doing what the sessions ask for: switches, caps, quotas, and a person's consent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

import msgspec

from stillroom.clock import Clock
from stillroom.config import OFFLINE, Settings
from stillroom.errors import ConfigError
from stillroom.pausing import told_pause
from stillroom.recall.projects.switched_off import load_switched_off
from stillroom.spending import Usage
from stillroom.store import SpendingTotal, Store

ObstacleKind = Literal["switched_off", "paused", "switches_unreadable", "day_cap", "quota", "asks_first"]
"""`asks_first`: a model was never called, so a pass that costs more than the settings say needs a yes."""


class Obstacle(msgspec.Struct, frozen=True, kw_only=True):
    """One of them, with what a person should know and do."""

    kind: ObstacleKind
    told: str
    remedy: str


def obstacles(
    settings: Settings, store: Store, clock: Clock, *, paused_since: str | None, spent: Sequence[SpendingTotal]
) -> tuple[Obstacle, ...]:
    """In the order in which a pass meets them; `spent` is what all calls used, by day. Raises `StoreError`."""
    return tuple(_found(settings, store, clock, paused_since, spent))


def _found(
    settings: Settings, store: Store, clock: Clock, paused_since: str | None, spent: Sequence[SpendingTotal]
) -> Iterator[Obstacle]:
    memories = settings.memories
    if not memories.enabled:
        yield Obstacle(kind="switched_off", told="memories are switched off", remedy="memories.enabled = true")
    if paused_since:
        yield Obstacle(kind="paused", told=told_pause(paused_since), remedy="stillroom resume")
    if load_switched_off(str(settings.home)).unreadable:
        told = "nobody knows which projects are switched off"
        yield Obstacle(kind="switches_unreadable", told=told, remedy="stillroom doctor")
    models = sorted({memories.extract_model, memories.consolidation_model} - {OFFLINE})
    if not models:
        return
    today = datetime.fromtimestamp(clock.now(), UTC).strftime("%Y-%m-%d")
    used = sum(each.usage.weighted_tokens for each in spent if each.day == today)
    if used >= memories.max_weighted_tokens_per_day:
        cap = f"{used:,} of {memories.max_weighted_tokens_per_day:,} weighted tokens of today (UTC) are used"
        yield Obstacle(kind="day_cap", told=cap, remedy="memories.max_weighted_tokens_per_day")
    # Without a model nothing of it is loaded.
    from stillroom.extract.guard import default_guard

    decision = default_guard(settings, store, clock)()
    if not decision.allowed:
        yield Obstacle(kind="quota", told=decision.reason, remedy="memories.min_rate_limit_remaining_percent")
    called = {each.model for each in spent if each.calls > each.failed_calls}
    if new := [name for name in models if name not in called and _costs(name, settings)]:
        told = f"no call of {', '.join(new)} is on record: a pass above `memories.ask_above_usd` needs a yes"
        yield Obstacle(kind="asks_first", told=told, remedy="stillroom run --dry-run")


def _costs(name: str, settings: Settings) -> bool:
    """Not a server on this machine. Of a model that can't be used `doctor` tells, and the pass."""
    from stillroom.models.prices import price_of

    try:
        return price_of(name, settings)(Usage(input_tokens=1, output_tokens=1)) != 0
    except ConfigError:
        return False


__all__ = ["Obstacle", "ObstacleKind", "obstacles"]
