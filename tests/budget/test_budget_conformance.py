"""What every ledger does. The numbers of the first tests are those of Codex's own (spec §10.6)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from stillroom.budget import Budget, BudgetExceeded, BudgetStatus, Reminder, TurnAborted
from stillroom.budget.config import MAX_LIMIT_TOKENS
from stillroom.clock import FixedClock
from stillroom.errors import BudgetError, InvalidUsage, ReservationSettled
from stillroom.spending import Usage

NewBudget = Callable[..., Budget]
CODEX: dict[str, Any] = {"limit_tokens": 100, "reminder_at_remaining_tokens": (75, 50, 25)}


def spend(tokens: int) -> Usage:
    return Usage(output_tokens=tokens)


def told(budget: Budget, thread_id: str, window_id: str = "w1") -> float | None:
    """Deliver the pending reminder, if any, and say which remainder it states."""
    reminder = budget.pending_reminder(thread_id, window_id)
    if reminder is None:
        return None
    budget.mark_reminder_delivered(reminder)
    return reminder.remaining_tokens


def aborted(call: Callable[[], object]) -> BudgetExceeded:
    with pytest.raises(TurnAborted) as caught:
        call()
    return caught.value.outcome


# Charges


def test_output_and_fresh_input_are_charged_by_their_weights(new_budget: NewBudget) -> None:
    budget = new_budget(**CODEX, sampling_token_weight=2.0, prefill_token_weight=0.5)
    assert told(budget, "root") == 100
    charged = budget.record_usage("root", Usage(input_tokens=60, cached_input_tokens=40, output_tokens=15))
    assert charged == 40
    assert told(budget, "root") == 60


def test_units_of_the_provider_override_the_weights(new_budget: NewBudget) -> None:
    budget = new_budget(**CODEX, sampling_token_weight=2.0)
    assert budget.record_usage("root", spend(15), units=40.5) == 40.5
    assert told(budget, "root") == 59.5


@pytest.mark.parametrize("units", [-1, -0.1, math.nan, math.inf, -math.inf, "40", True, [1]])
def test_malformed_units_are_refused_and_charge_nothing(new_budget: NewBudget, units: Any) -> None:
    budget = new_budget(**CODEX)
    with pytest.raises(InvalidUsage) as caught:
        budget.record_usage("root", spend(15), units=units)
    assert str(caught.value) == "response.completed usage.codex_rollout_budget_units must be finite and non-negative"
    assert budget.status().used == 0


@pytest.mark.parametrize("count", [math.nan, math.inf, -math.inf, "12", True, [1]])
@pytest.mark.parametrize("field", ["input_tokens", "cached_input_tokens", "output_tokens"])
def test_counts_that_are_none_are_refused_and_charge_nothing(new_budget: NewBudget, field: str, count: Any) -> None:
    budget = new_budget(**CODEX)
    with pytest.raises(InvalidUsage):
        budget.record_usage("root", Usage(**{field: count}))
    assert budget.status().used == 0


@pytest.mark.parametrize("usage", [None, {}, "usage", 3])
def test_what_is_no_usage_is_refused(new_budget: NewBudget, usage: Any) -> None:
    with pytest.raises(InvalidUsage):
        new_budget(**CODEX).record_usage("root", usage)


def test_a_count_that_a_provider_left_out_or_wrote_as_a_float_is_understood(new_budget: NewBudget) -> None:
    usage = Usage(input_tokens=None, cached_input_tokens=None, output_tokens=12.0)  # type: ignore[arg-type]
    assert new_budget(**CODEX).record_usage("root", usage) == 12


def test_negative_counts_are_nothing_and_cached_tokens_never_refund(new_budget: NewBudget) -> None:
    budget = new_budget(**CODEX)
    assert budget.record_usage("root", Usage(input_tokens=-5, output_tokens=-7)) == 0
    assert budget.record_usage("root", Usage(input_tokens=10, cached_input_tokens=40, output_tokens=3)) == 3
    assert budget.record_usage("root", Usage(input_tokens=10, cached_input_tokens=-40)) == 10


@pytest.mark.parametrize("count", [10**12, 2**63, 10**30, 10**400])
def test_a_huge_count_reaches_the_limit_and_leaves_the_ledger_whole(new_budget: NewBudget, count: int) -> None:
    budget = new_budget(limit_tokens=4 * 10**12)
    for _ in range(5):
        try:
            budget.record_usage("root", Usage(input_tokens=count, output_tokens=count))
        except TurnAborted:
            pass
    status = budget.status()
    assert status.exhausted
    assert 4 * 10**12 <= status.used < math.inf


def test_weights_for_cache_and_reasoning_are_ours_and_off_by_default(new_budget: NewBudget) -> None:
    usage = Usage(
        input_tokens=100, cached_input_tokens=40, cache_write_tokens=20, output_tokens=30, reasoning_tokens=10
    )
    assert new_budget(limit_tokens=1000).record_usage("root", usage) == 60 + 30
    weighed = new_budget(
        limit_tokens=1000, cached_token_weight=0.1, cache_write_token_weight=1.25, reasoning_token_weight=2
    )
    assert weighed.record_usage("root", usage) == 40 * 0.1 + 20 * 1.25 + 40 + 20 + 10 * 2


def test_millionths_add_up(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100, sampling_token_weight=0.1)
    for _ in range(30):
        budget.record_usage("root", spend(1))
    assert budget.status().used == 3
    assert told(budget, "root") == 97


# Limits


def test_the_charge_that_exceeds_the_limit_aborts_and_so_does_every_later_one(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=30)
    assert budget.record_usage("root", spend(10)) == 10
    budget.check("root")
    outcome = aborted(lambda: budget.record_usage("child", spend(25)))
    assert outcome == BudgetExceeded(
        reason="budget_exceeded",
        tree_id="tree",
        thread_id="child",
        limit=30,
        used=35,
        crossed_by="child",
        threads={"root": 10, "child": 25},
    )
    assert aborted(lambda: budget.check("root")).crossed_by == "child"
    again = aborted(lambda: budget.record_usage("root", spend(1)))
    assert (again.used, again.crossed_by) == (36, "child")


def test_exactly_nothing_left_is_within_every_limit(new_budget: NewBudget) -> None:
    """As in the released Codex (`tests/interop/test_codex_budget.py`): one more request may be sent, and ends it."""
    budget = new_budget(limit_tokens=100, reminder_at_remaining_tokens=(50,), grace_tokens=10)
    budget.register("child", limit_tokens=100)
    assert budget.record_usage("child", spend(100)) == 100
    budget.check("child")
    status = budget.status()
    assert (status.remaining, status.exhausted, status.crossed_by) == (0, False, None)
    assert told(budget, "child") == 0
    assert budget.reserve_closing_answer("child") is None
    outcome = aborted(lambda: budget.reserve("child", 1))
    assert (outcome.reason, outcome.crossed_by) == ("budget_reserved", None)
    with budget.reserve("child", 0) as held:
        assert aborted(lambda: held.settle(spend(1))).crossed_by == "child"
    assert aborted(lambda: budget.check("child")).reason == "budget_exceeded"
    assert aborted(lambda: budget.reserve("child", 0)).reason == "budget_exceeded"
    assert budget.reserve_closing_answer("child") is not None


def test_the_largest_limit_is_a_limit(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=MAX_LIMIT_TOKENS)
    budget.record_usage("root", spend(MAX_LIMIT_TOKENS))
    for _ in range(3):
        aborted(lambda: budget.record_usage("root", spend(MAX_LIMIT_TOKENS)))
    assert budget.status().exhausted
    other = new_budget(limit_tokens=MAX_LIMIT_TOKENS)
    aborted(lambda: other.record_usage("root", Usage(), units=1e300))


def test_a_fraction_counts_when_thresholds_are_compared(new_budget: NewBudget) -> None:
    budget = new_budget(**CODEX)
    assert told(budget, "root") == 100
    budget.record_usage("root", Usage(), units=24.9)
    assert told(budget, "root") is None
    budget.record_usage("root", Usage(), units=0.1)
    assert told(budget, "root") == 75


def test_the_outcome_survives_json(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=30)
    outcome = aborted(lambda: budget.record_usage("root", spend(31)))
    assert BudgetExceeded.from_json(outcome.to_json()) == outcome


def test_without_enforcement_there_are_reminders_only(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100, reminder_at_remaining_tokens=(50,), enforce_limit=False)
    assert told(budget, "root") == 100
    budget.register("root", limit_tokens=10)
    assert budget.record_usage("root", spend(500)) == 500
    budget.check("root")
    budget.reserve("root", 500).release()
    assert told(budget, "root") == 0
    assert told(budget, "root") is None


def test_a_child_has_its_own_lower_limit_and_the_tree_goes_on(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    budget.register("root")
    budget.register("child", parent="root", limit_tokens=20)
    budget.register("grandchild", parent="child")
    outcome = aborted(lambda: budget.record_usage("grandchild", spend(21)))
    assert (outcome.scope, outcome.limit, outcome.used) == ("child", 20, 21)
    with pytest.raises(TurnAborted):
        budget.check("child")
    budget.check("root")
    assert budget.remaining("root") == 79


def test_a_child_never_raises_a_limit_and_never_switches_it_off(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    budget.register("child", limit_tokens=1000)
    assert budget.remaining("child") == 100
    budget.register("child", limit_tokens=20)
    budget.register("child", limit_tokens=50)
    budget.register("child")
    budget.register("child", parent="stranger")
    assert budget.remaining("child") == 20


def test_the_outermost_limit_is_the_one_that_is_told(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    budget.register("child", limit_tokens=10)
    assert aborted(lambda: budget.record_usage("child", spend(101))).scope is None


@pytest.mark.parametrize("limit", [0, -1, math.nan, math.inf, "9"])
def test_a_threads_limit_that_means_nothing_is_refused(new_budget: NewBudget, limit: Any) -> None:
    with pytest.raises(BudgetError):
        new_budget(**CODEX).register("child", limit_tokens=limit)


def test_a_thread_is_not_its_own_parent(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    budget.register("root", parent="root")
    assert [thread.parent_thread_id for thread in budget.status().threads] == [None]


@pytest.mark.parametrize("thread_id", ["", None, 3])
def test_a_thread_needs_a_name(new_budget: NewBudget, thread_id: Any) -> None:
    with pytest.raises(BudgetError):
        new_budget(**CODEX).record_usage(thread_id, spend(1))


# Reservations


def test_children_cannot_all_count_on_the_same_rest(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    held = [budget.reserve(f"child-{number}", 40) for number in range(2)]
    outcome = aborted(lambda: budget.reserve("child-2", 40))
    assert (outcome.reason, outcome.used, outcome.reserved) == ("budget_reserved", 0, 80)
    said = "the shared session token budget has 100 weighted tokens left, of which 80 are reserved"
    assert str(TurnAborted(outcome)) == said
    held[0].settle(spend(5))
    budget.reserve("child-2", 40)


def test_settling_ends_the_hold_and_charges_what_was_used(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    with budget.reserve("root", 60) as held:
        assert budget.status().reserved == 60
        assert held.settle(spend(7)) == 7
    assert (budget.status().reserved, budget.status().used) == (0, 7)


def test_leaving_the_block_releases(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    with pytest.raises(ZeroDivisionError), budget.reserve("root", 60):
        raise ZeroDivisionError
    assert (budget.status().reserved, budget.status().used) == (0, 0)


def test_nothing_is_charged_twice_and_late_usage_is_charged_once(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    with budget.reserve("root", 60) as held:
        pass
    assert held.settle(spend(7)) == 7
    held.release()
    with pytest.raises(ReservationSettled):
        held.settle(spend(7))
    assert budget.status().used == 7


def test_a_settlement_that_reaches_the_limit_aborts_and_counts_once(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    held = budget.reserve("root", 60)
    aborted(lambda: held.settle(spend(120)))
    with pytest.raises(ReservationSettled):
        held.settle(spend(120))
    assert (budget.status().used, budget.status().reserved) == (120, 0)


def test_malformed_usage_leaves_the_hold(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    held = budget.reserve("root", 60)
    with pytest.raises(InvalidUsage):
        held.settle(spend(1), units=math.nan)
    assert budget.status().reserved == 60
    assert held.settle(spend(1)) == 1


def test_a_hold_ends_with_its_lease(new_budget: NewBudget, clock: FixedClock) -> None:
    budget = new_budget(limit_tokens=100)
    held = budget.reserve("root", 60, lease_seconds=30)
    clock.advance(seconds=29)
    assert budget.status().reserved == 60
    clock.advance(seconds=1)
    assert budget.status().reserved == 0
    budget.reserve("root", 90)
    assert held.settle(spend(7)) == 7


def test_an_outcome_tells_of_no_hold_whose_lease_is_over(new_budget: NewBudget, clock: FixedClock) -> None:
    budget = new_budget(limit_tokens=100)
    budget.reserve("root", 60, lease_seconds=30)
    budget.reserve("root", 20, lease_seconds=90)
    clock.advance(seconds=31)
    assert aborted(lambda: budget.record_usage("root", spend(101))).reserved == 20


def test_a_hold_counts_against_the_limits_of_the_threads_above(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    budget.register("child", limit_tokens=30)
    budget.register("grandchild", parent="child")
    budget.reserve("grandchild", 20)
    assert aborted(lambda: budget.reserve("child", 20)).scope == "child"
    budget.reserve("root", 80)


@pytest.mark.parametrize("tokens", [-1, math.nan, math.inf, None, "5"])
def test_a_hold_that_means_nothing_is_refused(new_budget: NewBudget, tokens: Any) -> None:
    with pytest.raises(BudgetError):
        new_budget(**CODEX).reserve("root", tokens)


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, "5"])
def test_a_lease_that_means_nothing_is_refused(new_budget: NewBudget, seconds: Any) -> None:
    with pytest.raises(BudgetError):
        new_budget(**CODEX).reserve("root", 5, lease_seconds=seconds)


# The closing answer


def test_one_closing_answer_is_given_for_a_limit(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100, grace_tokens=15)
    assert budget.reserve_closing_answer("root") is None
    aborted(lambda: budget.record_usage("root", spend(101)))
    closing = budget.reserve_closing_answer("root")
    assert closing is not None
    assert closing.tokens == 15
    assert budget.reserve_closing_answer("child") is None
    assert closing.settle(spend(12)) == 12
    assert budget.reserve_closing_answer("root") is None
    assert budget.status().used == 113


def test_a_closing_answer_that_was_not_had_is_given_again(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100, grace_tokens=15)
    aborted(lambda: budget.record_usage("root", spend(101)))
    closing = budget.reserve_closing_answer("root")
    assert closing is not None
    closing.release()
    assert budget.reserve_closing_answer("root") is not None
    closing.release()
    assert budget.reserve_closing_answer("child") is None


def test_without_grace_there_is_no_closing_answer(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100)
    aborted(lambda: budget.record_usage("root", spend(101)))
    assert budget.reserve_closing_answer("root") is None


# Reminders


def test_the_fragment_is_codexs(new_budget: NewBudget) -> None:
    reminder = new_budget(**CODEX).pending_reminder("root", "w1")
    assert reminder == Reminder(thread_id="root", window_id="w1", index=0, remaining_tokens=100)
    assert reminder.role == "developer"
    assert reminder.text == (
        "<rollout_budget>\nYou have 100 weighted tokens left in the shared session token budget.\n</rollout_budget>"
    )


def test_a_thread_sees_what_others_crossed_and_several_thresholds_at_once_are_one(new_budget: NewBudget) -> None:
    budget = new_budget(**CODEX)
    assert told(budget, "root") == 100
    budget.record_usage("root", spend(10))
    assert told(budget, "root") is None
    assert told(budget, "child") == 90
    budget.record_usage("child", spend(30))
    budget.record_usage("root", spend(10))
    assert told(budget, "root") == 50
    assert told(budget, "root") is None


def test_it_stays_pending_until_it_is_marked(new_budget: NewBudget) -> None:
    budget = new_budget(**CODEX)
    assert budget.pending_reminder("root", "w1") == budget.pending_reminder("root", "w1")
    assert told(budget, "root") == 100


def test_a_threshold_crossed_during_the_insertion_is_still_due(new_budget: NewBudget) -> None:
    budget = new_budget(**CODEX)
    reminder = budget.pending_reminder("root", "w1")
    assert reminder is not None
    budget.record_usage("child", spend(30))
    budget.mark_reminder_delivered(reminder)
    assert told(budget, "root") == 70


def test_a_late_mark_takes_nothing_back(new_budget: NewBudget) -> None:
    budget = new_budget(**CODEX)
    early = budget.pending_reminder("root", "w1")
    assert early is not None
    budget.record_usage("root", spend(30))
    assert told(budget, "root") == 70
    budget.mark_reminder_delivered(early)
    assert told(budget, "root") is None


def test_a_new_window_and_a_rollback_restate_what_is_left(new_budget: NewBudget) -> None:
    budget = new_budget(**CODEX)
    assert told(budget, "root") == 100
    budget.record_usage("root", spend(30))
    assert told(budget, "root", "w2") == 70
    assert told(budget, "root", "w2") is None
    budget.rearm_reminder("root")
    assert told(budget, "root", "w2") == 70


def test_without_context_start_each_threshold_is_told_once(new_budget: NewBudget) -> None:
    """As the released Codex does it: `tests/interop/test_codex_budget.py`."""
    budget = new_budget(**CODEX, reminder_at_context_start=False)
    assert told(budget, "root") is None
    budget.record_usage("root", spend(30))
    assert told(budget, "root") == 70
    assert told(budget, "child") == 70
    assert told(budget, "root", "w2") is None
    budget.record_usage("root", spend(25))
    assert told(budget, "root", "w2") == 45
    budget.rearm_reminder("root")
    assert told(budget, "root", "w2") == 45


def test_what_is_left_is_told_with_its_fraction(new_budget: NewBudget) -> None:
    budget = new_budget(limit_budget=2.5, reminder_at_remaining_tokens=(1,))
    first = budget.pending_reminder("root", "w1")
    assert first is not None
    assert "have 2.5 weighted" in first.text
    budget.mark_reminder_delivered(first)
    budget.record_usage("root", Usage(), units=1.2)
    assert told(budget, "root") is None
    budget.record_usage("root", Usage(), units=1.0)
    second = budget.pending_reminder("root", "w1")
    assert second is not None
    assert "have 0.3 weighted" in second.text
    assert budget.record_usage("root", Usage(), units=0.3) == 0.3
    assert aborted(lambda: budget.record_usage("root", Usage(), units=1e-6)).used == 2.500001


def test_an_interval_instead_of_the_list(new_budget: NewBudget) -> None:
    budget = new_budget(limit_tokens=100, reminder_interval_tokens=20)
    assert told(budget, "root") == 100
    budget.record_usage("root", spend(19))
    assert told(budget, "root") is None
    budget.record_usage("root", spend(1))
    assert told(budget, "root") == 80
    budget.record_usage("root", spend(45))
    assert told(budget, "root") == 35
    assert told(budget, "root") is None


def test_a_child_is_told_what_its_own_limit_leaves(new_budget: NewBudget) -> None:
    budget = new_budget(**CODEX)
    budget.register("child", limit_tokens=30)
    budget.record_usage("child", spend(10))
    assert told(budget, "child") == 20
    assert told(budget, "root") == 90


# Status


def test_the_status_tells_everything_and_is_json(new_budget: NewBudget, clock: FixedClock) -> None:
    budget = new_budget(limit_tokens=100)
    budget.register("root")
    budget.register("child", parent="root", limit_tokens=50)
    budget.record_usage("root", spend(10))
    budget.record_usage("child", spend(5))
    budget.reserve("child", 20, lease_seconds=60)
    status = budget.status()
    assert (status.tree_id, status.limit, status.used, status.remaining, status.reserved) == ("tree", 100, 15, 85, 20)
    assert [(t.thread_id, t.parent_thread_id, t.limit, t.used, t.used_with_children) for t in status.threads] == [
        ("root", None, None, 10, 15),
        ("child", "root", 50, 5, 5),
    ]
    (hold,) = status.reservations
    assert (hold.thread_id, hold.tokens, hold.lease_until) == ("child", 20, clock.now() + 60)
    assert msgspec.json.decode(msgspec.json.encode(status), type=BudgetStatus) == status
