"""Spending, rate limits, reports of passes."""

from __future__ import annotations

from pathlib import Path

import msgspec
from store_samples import DAY, NOW

from stillroom.clock import FixedClock
from stillroom.config import DatabaseLimits
from stillroom.spending import ModelCall, Usage
from stillroom.store import PassRecord, RateLimitSnapshot, SpendingTotal, Store

MIDNIGHT = NOW - NOW % DAY
CALL = ModelCall(
    at=MIDNIGHT,
    phase="extract",
    model="openai:x",
    outcome="ok",
    usage=Usage(input_tokens=100, cached_input_tokens=40, cache_write_tokens=5, output_tokens=10, reasoning_tokens=3),
    thread_id="a",
    duration_ms=1500,
    cost_usd=0.5,
)


def test_every_call_is_kept_whole(store: Store) -> None:
    failed = msgspec.structs.replace(CALL, outcome="rate_limited", cost_usd=None, error="429", thread_id=None)
    store.ledger.record_call(CALL)
    store.ledger.record_call(failed)
    assert store.ledger.calls() == [failed, CALL]
    assert store.ledger.calls(thread_id="a") == [CALL]
    assert store.ledger.calls(limit=1) == [failed]


def test_totals_are_by_day_phase_and_model_and_say_what_has_no_price(store: Store) -> None:
    store.ledger.record_call(CALL)
    store.ledger.record_call(msgspec.structs.replace(CALL, outcome="invalid", at=MIDNIGHT + DAY - 1))
    store.ledger.record_call(msgspec.structs.replace(CALL, cost_usd=None, at=MIDNIGHT + DAY))
    store.ledger.record_call(msgspec.structs.replace(CALL, phase="consolidate"))
    day = {"day": "2027-01-15", "model": "openai:x", "calls": 1, "failed_calls": 0, "unpriced_calls": 0}
    one = SpendingTotal(**day, phase="consolidate", cost_usd=0.5, usage=CALL.usage)  # type: ignore[arg-type]
    two = msgspec.structs.replace(
        one,
        phase="extract",
        calls=2,
        failed_calls=1,
        cost_usd=1.0,
        usage=Usage(
            input_tokens=200, cached_input_tokens=80, cache_write_tokens=10, output_tokens=20, reasoning_tokens=6
        ),
    )
    next_day = msgspec.structs.replace(one, day="2027-01-16", phase="extract", unpriced_calls=1, cost_usd=0.0)
    assert store.ledger.spending() == [one, two, next_day]
    assert store.ledger.spending(since=MIDNIGHT + DAY) == [next_day]
    assert store.ledger.spending(until=MIDNIGHT + DAY) == [one, two]
    assert store.ledger.spending(since=MIDNIGHT + 2 * DAY) == []


def test_the_newest_rate_limits_win_unless_they_are_from_the_future(store: Store) -> None:
    assert store.ledger.rate_limits("openai") is None
    store.ledger.save_rate_limits("openai", b"\x00{1}", NOW - 10)
    store.ledger.save_rate_limits("openai", b"{0}", NOW - 20)
    store.ledger.save_rate_limits("other", b"{9}", NOW)
    assert store.ledger.rate_limits("openai") == RateLimitSnapshot(
        provider="openai", snapshot_json=b"\x00{1}", at=NOW - 10
    )
    store.ledger.save_rate_limits("openai", b"{2}", NOW + DAY)
    store.ledger.save_rate_limits("openai", b"{3}", NOW)
    assert store.ledger.rate_limits("openai") == RateLimitSnapshot(provider="openai", snapshot_json=b"{3}", at=NOW)


def test_the_last_passes_are_kept(tmp_path: Path, clock: FixedClock) -> None:
    with Store.open(tmp_path / "s.sqlite3", clock=clock, limits=DatabaseLimits(passes_kept=3)) as store:
        assert store.ledger.last_passes() == []
        for i in range(5):
            store.ledger.record_pass(NOW + i, b"%d" % i)
        assert store.ledger.last_passes(2) == [
            PassRecord(at=NOW + 4, report_json=b"4"),
            PassRecord(at=NOW + 3, report_json=b"3"),
        ]
        assert len(store.ledger.last_passes()) == 3


def test_what_was_spent_since_a_moment_counts_every_call_of_everybody_once(tmp_path: Path) -> None:
    path, clock = tmp_path / "state.sqlite3", FixedClock(NOW * 1000)
    with Store.open(path, clock=clock) as store, Store.open(path, clock=clock) as other:
        for number, writer in enumerate((store, other, other, store), 1):
            usage = Usage(input_tokens=number, output_tokens=1)
            writer.ledger.record_call(msgspec.structs.replace(CALL, at=MIDNIGHT + number, usage=usage))
            assert store.ledger.spent_since(MIDNIGHT).input_tokens == sum(range(number + 1))
        assert store.ledger.spent_since(MIDNIGHT + 3) == Usage(input_tokens=7, output_tokens=2)
        assert (
            store.ledger.spent_since(MIDNIGHT)
            == other.ledger.spent_since(MIDNIGHT)
            == Usage(input_tokens=10, output_tokens=4)
        )
        assert store.ledger.spent_since(MIDNIGHT + DAY) == Usage()
