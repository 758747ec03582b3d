"""What holds for any sequence of calls, on every ledger, and that the ledgers never differ."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stillroom.budget import (
    Budget,
    BudgetStatus,
    Reminder,
    Reservation,
    RolloutBudget,
    RolloutBudgetConfig,
    TurnAborted,
)
from stillroom.budget.charges import weigher
from stillroom.clock import FixedClock
from stillroom.errors import BudgetError, InvalidUsage
from stillroom.spending import Usage
from stillroom.store.budgets import SharedBudget

COUNTS = st.integers(-5, 10**7)
USAGES = st.builds(
    Usage,
    input_tokens=COUNTS,
    cached_input_tokens=COUNTS,
    cache_write_tokens=COUNTS,
    output_tokens=COUNTS,
    reasoning_tokens=COUNTS,
)
WEIGHTS = st.floats(0, 100)
CONFIGS = st.builds(
    RolloutBudgetConfig,
    limit_tokens=st.just(4 * 10**12),
    reminder_at_remaining_tokens=st.just(()),
    sampling_token_weight=WEIGHTS,
    prefill_token_weight=WEIGHTS,
    cached_token_weight=st.just(0.0) | WEIGHTS,
    cache_write_token_weight=st.none() | WEIGHTS,
    reasoning_token_weight=st.none() | WEIGHTS,
)
NUMBERS: Any = st.integers() | st.floats() | st.just(10**400) | st.booleans() | st.none() | st.text(max_size=3)


@given(config=CONFIGS, usages=st.lists(USAGES, max_size=30), data=st.data())
def test_the_sum_does_not_depend_on_the_order(config: RolloutBudgetConfig, usages: list[Usage], data: Any) -> None:
    in_order, shuffled = RolloutBudget(config), RolloutBudget(config)
    for usage in usages:
        in_order.record_usage("root", usage)
    for usage in data.draw(st.permutations(usages)):
        shuffled.record_usage(data.draw(st.sampled_from(["root", "child"])), usage)
    assert in_order.status().used == shuffled.status().used


@given(usage=USAGES, sampling=WEIGHTS, prefill=WEIGHTS)
def test_a_charge_is_codexs_to_the_millionth(usage: Usage, sampling: float, prefill: float) -> None:
    config = RolloutBudgetConfig(
        limit_tokens=1,
        reminder_at_remaining_tokens=(),
        sampling_token_weight=sampling,
        prefill_token_weight=prefill,
    )
    fresh = max(usage.input_tokens - max(usage.cached_input_tokens, 0), 0)
    codex = max(usage.output_tokens, 0) * sampling + fresh * prefill
    assert math.isclose(weigher(config)(usage) / 1_000_000, codex, rel_tol=1e-12, abs_tol=1e-6)


@given(data=st.data(), config=CONFIGS)
def test_numbers_of_any_kind_are_charged_or_refused_and_never_corrupt(data: Any, config: RolloutBudgetConfig) -> None:
    budget = RolloutBudget(config)
    for _ in range(3):
        before = budget.status().used
        usage = Usage(**{name: data.draw(NUMBERS) for name in Usage.__struct_fields__})
        units = data.draw(st.none() | NUMBERS)
        try:
            budget.record_usage("root", usage, units=units)
        except InvalidUsage:
            assert budget.status().used == before
        except TurnAborted:
            pass
        after = budget.status().used
        assert after >= before
        assert math.isfinite(after)


THREADS = st.sampled_from(["root", "a", "b", "c"])
WINDOWS = st.sampled_from(["w1", "w2"])
TOKENS = st.integers(0, 60)


class TwoLedgers(RuleBasedStateMachine):
    """The same calls on the ledger in memory and on the one in SQLite: the same answers, errors and status."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = FixedClock(1_800_000_000_000)
        self.held: list[tuple[Reservation, Reservation]] = []
        #: By how much settlements were above what was reserved, and what was charged without a reservation.
        self.unforeseen = 0.0
        #: Which index was told last in the window that a thread is in.
        self.told: dict[str, tuple[str, int]] = {}

    @initialize(
        limit=st.integers(1, 300),
        thresholds=st.none() | st.lists(st.integers(1, 299), max_size=4),
        context_start=st.booleans(),
        enforced=st.sampled_from([True, True, True, False]),
        weight=st.sampled_from([1.0, 0.1, 2.5]),
    )
    def begin(
        self, limit: int, thresholds: list[int] | None, context_start: bool, enforced: bool, weight: float
    ) -> None:
        self.config = RolloutBudgetConfig(
            limit_tokens=limit,
            reminder_at_remaining_tokens=None if thresholds is None else tuple(t for t in thresholds if t < limit),
            reminder_interval_tokens=30 if thresholds is None else None,
            reminder_at_context_start=context_start,
            enforce_limit=enforced,
            sampling_token_weight=weight,
            grace_tokens=20,
        )
        self.memory = RolloutBudget(self.config, tree_id="tree", clock=self.clock)
        self.shared = self.open()

    def open(self) -> SharedBudget:
        return SharedBudget.open(self.folder / "state.sqlite3", self.config, tree_id="tree", clock=self.clock)

    def both(self, call: Callable[[Budget], Any]) -> Any:
        ours, theirs = outcome_of(lambda: call(self.memory)), outcome_of(lambda: call(self.shared))
        if not isinstance(ours, Reservation):
            assert ours == theirs
            return ours
        assert isinstance(theirs, Reservation)
        assert (ours.thread_id, ours.tokens, ours.closing) == (theirs.thread_id, theirs.tokens, theirs.closing)
        self.held.append((ours, theirs))
        return ours

    @rule(thread=THREADS, parent=st.none() | THREADS, limit=st.none() | st.integers(1, 400))
    def register(self, thread: str, parent: str | None, limit: int | None) -> None:
        before = self.memory.remaining(thread)
        self.shared.remaining(thread)
        self.both(lambda budget: budget.register(thread, parent=parent, limit_tokens=limit))
        assert self.memory.remaining(thread) <= before

    @rule(thread=THREADS, parent=THREADS, limit=st.integers(1, 400))
    def spawn(self, thread: str, parent: str, limit: int) -> None:
        self.both(lambda budget: budget.register(thread, parent=parent, limit_tokens=limit))

    @rule(thread=THREADS, tokens=TOKENS)
    def charge(self, thread: str, tokens: int) -> None:
        self.unforeseen += tokens * self.config.sampling_token_weight
        self.both(lambda budget: budget.record_usage(thread, Usage(output_tokens=tokens)))

    @rule(thread=THREADS, units=st.floats(allow_nan=True, allow_infinity=True, width=16))
    def charge_units(self, thread: str, units: float) -> None:
        if 0 <= units < math.inf:
            self.unforeseen += units
        self.both(lambda budget: budget.record_usage(thread, Usage(), units=units))

    @rule(thread=THREADS)
    def check(self, thread: str) -> None:
        self.both(lambda budget: budget.check(thread))

    @rule(thread=THREADS, tokens=TOKENS, seconds=st.sampled_from([None, 30]))
    def reserve(self, thread: str, tokens: int, seconds: float | None) -> None:
        self.both(lambda budget: budget.reserve(thread, tokens, lease_seconds=seconds))

    @rule(thread=THREADS)
    def close(self, thread: str) -> None:
        self.both(lambda budget: budget.reserve_closing_answer(thread))

    @rule(number=st.integers(0, 5), tokens=st.floats(0, 60, width=16))
    def settle(self, number: int, tokens: float) -> None:
        if self.held:
            ours, theirs = self.held[number % len(self.held)]
            is_held = ours.reservation_id in {hold.reservation_id for hold in self.memory.status().reservations}
            settled = outcome_of(lambda: ours.settle(Usage(), units=tokens))
            assert settled == outcome_of(lambda: theirs.settle(Usage(), units=tokens))
            if settled != "ReservationSettled":
                self.unforeseen += max(tokens - ours.tokens, 0) if is_held else tokens

    @rule(number=st.integers(0, 5))
    def release(self, number: int) -> None:
        if self.held:
            for one in self.held[number % len(self.held)]:
                one.release()

    @rule(seconds=st.sampled_from([1, 31, 1000]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @rule(thread=THREADS, window=WINDOWS, is_cancelled=st.booleans())
    def insert_reminder(self, thread: str, window: str, is_cancelled: bool) -> None:
        reminder = self.both(lambda budget: budget.pending_reminder(thread, window))
        last_window, last_index = self.told.get(thread, ("", -1))
        if window == last_window or not self.config.reminder_at_context_start:
            assert reminder is None or reminder.index > last_index
        else:
            assert reminder is not None
        if isinstance(reminder, Reminder) and not is_cancelled:
            self.both(lambda budget: budget.mark_reminder_delivered(reminder))
            self.told[thread] = (window, reminder.index)
            assert self.both(lambda budget: budget.pending_reminder(thread, window)) is None

    @rule(thread=THREADS)
    def rearm(self, thread: str) -> None:
        self.both(lambda budget: budget.rearm_reminder(thread))
        self.told.pop(thread, None)

    @rule()
    def restart(self) -> None:
        """Another opening of the same tree knows everything."""
        self.shared.close()
        self.shared = self.open()
        for _, theirs in self.held:
            theirs._budget = self.shared

    @invariant()
    def the_ledgers_are_the_same(self) -> None:
        if hasattr(self, "shared"):
            assert comparable(self.memory.status()) == comparable(self.shared.status())

    @invariant()
    def what_is_used_and_held_fits_but_for_what_nobody_reserved(self) -> None:
        if hasattr(self, "shared") and self.config.enforce_limit:
            status = self.memory.status()
            assert status.used + status.reserved <= status.limit + self.unforeseen + 1e-6

    @invariant()
    def nobody_has_more_left_than_the_threads_above(self) -> None:
        if hasattr(self, "shared"):
            whole = self.memory.remaining()
            for thread in self.memory.status().threads:
                above = thread.parent_thread_id
                limit = self.memory.remaining(above) if above else whole
                assert self.memory.remaining(thread.thread_id) <= limit

    def teardown(self) -> None:
        if hasattr(self, "shared"):
            self.shared.close()
        shutil.rmtree(self.folder)


def outcome_of(call: Callable[[], Any]) -> Any:
    """What a call returns, or how it fails; an error other than an abort is its name."""
    try:
        return call()
    except TurnAborted as error:
        return error.outcome
    except BudgetError as error:
        return type(error).__name__


def comparable(status: BudgetStatus) -> dict[str, Any]:
    return {
        **{name: getattr(status, name) for name in status.__struct_fields__ if name != "reservations"},
        "reservations": sorted((hold.thread_id, hold.tokens, hold.lease_until) for hold in status.reservations),
    }


TestTwoLedgers = TwoLedgers.TestCase
TestTwoLedgers = pytest.mark.slow(TestTwoLedgers)
TestTwoLedgers.settings = settings(
    max_examples=15, stateful_step_count=25, deadline=None, phases=(Phase.explicit, Phase.generate, Phase.shrink)
)
