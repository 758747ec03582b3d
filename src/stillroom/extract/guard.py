"""The rate-limit guard: background work must not eat what a person needs (spec §1.3).

Codex asks its backend. Stillroom asks nobody: it reads the newest snapshot that Codex itself left in its rollouts, and
the rate-limit headers of the provider's last answer. What can't be known allows the pass, as in Codex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from stillroom.clock import Clock
from stillroom.config import OFFLINE, Settings
from stillroom.sessions.agents import codex
from stillroom.sessions.rate_limits import RateLimits, allows, newest_snapshot, parse_rate_limits
from stillroom.store import Store


class GuardDecision(msgspec.Struct, frozen=True, kw_only=True):
    """May the pass use models now?"""

    allowed: bool
    reason: str


Guard = Callable[[], GuardDecision]

#: Offered to the search for a snapshot; it opens the first few that are there and uncompressed.
NEWEST_THREADS = 20


def default_guard(settings: Settings, store: Store, clock: Clock) -> Guard:
    """Both sources; the first that says no decides. Without a model there is no quota to guard."""

    def decide() -> GuardDecision:
        memories = settings.memories
        models = sorted({memories.extract_model, memories.consolidation_model} - {OFFLINE})
        if not models:
            return GuardDecision(allowed=True, reason="no model is used")
        percent = memories.min_rate_limit_remaining_percent
        for where, limits in _known_limits(store, models):
            if not allows(limits, min_remaining_percent=percent, now=clock.now()):
                return GuardDecision(allowed=False, reason=f"{where}: less than {percent} % of a rate limit is left")
        return GuardDecision(allowed=True, reason="no rate limit is short")

    return decide


def _known_limits(store: Store, models: Sequence[str]) -> Iterator[tuple[str, RateLimits | None]]:
    newest = [Path(thread.rollout_path) for thread in store.threads.newest(limit=NEWEST_THREADS, agent=codex.AGENT)]
    yield "Codex's newest session", newest_snapshot(newest)
    for provider in dict.fromkeys(model.partition(":")[0] for model in models):
        if (saved := store.ledger.rate_limits(provider)) is not None:
            yield f"the last answer of `{provider}`", parse_rate_limits(saved.snapshot_json, at=saved.at)
