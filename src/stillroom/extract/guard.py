"""The rate-limit guard: background work must not eat what a person needs (spec §1.3).

It looks at the rate-limit headers of the last answer of each provider that the pass would use. What Codex says of its
account holds nothing back: Stillroom never uses Codex's backend. What is not known allows the pass, as in Codex.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from stillroom.clock import Clock
from stillroom.config import OFFLINE, Settings
from stillroom.sessions.rate_limits import allows, parse_rate_limits
from stillroom.store import Store


class GuardDecision(msgspec.Struct, frozen=True, kw_only=True):
    """May the pass use models now?"""

    allowed: bool
    reason: str


Guard = Callable[[], GuardDecision]


def default_guard(settings: Settings, store: Store, clock: Clock) -> Guard:
    """The first provider whose limit is short decides. Without a model there is no quota to guard."""

    def decide() -> GuardDecision:
        memories = settings.memories
        models = sorted({memories.extract_model, memories.consolidation_model} - {OFFLINE})
        if not models:
            return GuardDecision(allowed=True, reason="no model is used")
        percent = memories.min_rate_limit_remaining_percent
        for provider in dict.fromkeys(model.partition(":")[0] for model in models):
            saved = store.ledger.rate_limits(provider)
            limits = parse_rate_limits(saved.snapshot_json, at=saved.at) if saved else None
            if allows(limits, min_remaining_percent=percent, now=clock.now()):
                continue
            short = f"less than {percent} % of a rate limit is left"
            if limits and limits.reached:
                short = f"the rate limit `{limits.reached}` is reached"
            return GuardDecision(allowed=False, reason=f"the last answer of `{provider}`: {short}")
        return GuardDecision(allowed=True, reason="no rate limit is short")

    return decide
