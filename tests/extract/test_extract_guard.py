"""The guard over what the providers said of their limits (spec §1.3)."""

from __future__ import annotations

import json

import pytest
from extract_home import NOW_MS, Home

from stillroom.config import OFFLINE
from stillroom.extract.guard import default_guard

NOW = NOW_MS // 1000


def limits(used_percent: float, *, resets_at: int = NOW + 3600) -> dict[str, object]:
    window = {"used_percent": used_percent, "window_minutes": 300, "resets_at": resets_at}
    return {"limit_id": "codex", "primary": window, "secondary": None, "rate_limit_reached_type": None}


def codex_said(home: Home, used_percent: float) -> None:
    path = home.add(0, size_bytes=2000)
    record = {
        "timestamp": "2026-06-02T10:00:00.000Z",
        "type": "event_msg",
        "payload": {"type": "token_count", "rate_limits": limits(used_percent)},
    }
    with path.open("a", encoding="utf-8") as rollout:
        rollout.write(json.dumps(record) + "\n")
    home.register()


def decide(home: Home) -> tuple[bool, str]:
    decision = default_guard(home.settings, home.store, home.clock)()
    return decision.allowed, decision.reason


def test_the_quota_of_codexs_account_holds_no_model_back(home: Home) -> None:
    codex_said(home, 100)
    assert decide(home) == (True, "no rate limit is short")


@pytest.mark.parametrize(("used", "allowed"), [(75, True), (75.1, False)])
def test_the_last_answer_of_the_provider_decides(home: Home, used: float, allowed: bool) -> None:
    provider = home.settings.memories.extract_model.partition(":")[0]
    home.store.ledger.save_rate_limits(provider, json.dumps(limits(used)).encode(), NOW)
    assert decide(home)[0] is allowed


def test_a_reached_limit_is_told_by_its_name(home: Home) -> None:
    provider = home.settings.memories.extract_model.partition(":")[0]
    said = {**limits(1), "rate_limit_reached_type": "credits"}
    home.store.ledger.save_rate_limits(provider, json.dumps(said).encode(), NOW)
    assert decide(home) == (False, f"the last answer of `{provider}`: the rate limit `credits` is reached")


def test_the_provider_of_either_role_decides_and_no_other(home: Home) -> None:
    home.change(consolidation_model="other:model")
    home.store.ledger.save_rate_limits("third", json.dumps(limits(99)).encode(), NOW)
    assert decide(home) == (True, "no rate limit is short")
    home.store.ledger.save_rate_limits("other", json.dumps(limits(99)).encode(), NOW)
    assert decide(home) == (False, "the last answer of `other`: less than 25 % of a rate limit is left")
    home.clock.advance(seconds=3600)  # the window is over
    assert decide(home) == (True, "no rate limit is short")


def test_the_offline_engine_uses_up_nothing(home: Home) -> None:
    provider = home.settings.memories.extract_model.partition(":")[0]
    home.store.ledger.save_rate_limits(provider, json.dumps(limits(100)).encode(), NOW)
    assert not decide(home)[0]
    home.change(extract_model=OFFLINE)
    assert decide(home) == (True, "no model is used")
