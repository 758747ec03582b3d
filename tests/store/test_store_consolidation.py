"""The lock of phase 2 and its selection. Numbers in docstrings are those of the checklist, spec §10.4."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from store_samples import (
    DAY,
    HOUR,
    NOW,
    TWO,
    consolidate,
    extract,
    forget,
    on_disk_ids,
    save,
    selected_ids,
    thread,
    use,
)

from stillroom.clock import FixedClock
from stillroom.store import ConsolidationClaim, Cooldown, RetryBackoff, Running, Stage1Draft, Store

WATERMARK = NOW - DAY
#: Raw memories with preferences and without, as models and the rules write them.
PREFERENCES = {
    "close": '### Task 1: x\n\nPreference signals:\n- the user said: "always use pnpm"\n',
    "apart": '### Task 1: x\n\nPreference signals:\n\n- the user said: "always use pnpm"\n',
    "empty": "### Task 1: x\n\nPreference signals:\n\nReusable knowledge:\n- make test passes\n",
    "none": "### Task 1: x\n\nReusable knowledge:\n- make test passes\n",
}


def take(store: Store) -> ConsolidationClaim:
    lock = store.consolidation.claim(worker_id="worker", stage=TWO)
    assert isinstance(lock, ConsolidationClaim), lock
    return lock


def fail(store: Store) -> None:
    assert store.consolidation.fail(take(store).ownership_token, reason="no", retry_delay_seconds=HOUR)


def test_the_lock_has_one_fresh_owner_and_a_stale_one_is_replaced(store: Store, clock: FixedClock) -> None:
    """60: and the first claim creates the row."""
    assert store.consolidation.job() is None
    first = take(store)
    assert first.input_watermark == 0
    assert store.consolidation.claim(worker_id="other", stage=TWO) == Running()
    clock.advance(seconds=TWO.lease_seconds - 1)
    assert store.consolidation.claim(worker_id="other", stage=TWO) == Running()
    clock.advance(seconds=1)
    second = take(store)
    assert not store.consolidation.succeed(first.ownership_token, watermark=1, selected=[])
    assert not store.consolidation.fail(first.ownership_token, reason="late", retry_delay_seconds=1)
    assert not store.consolidation.heartbeat(first.ownership_token, lease_seconds=TWO.lease_seconds)
    assert store.consolidation.heartbeat(second.ownership_token, lease_seconds=TWO.lease_seconds)


def test_a_heartbeat_keeps_the_lock_but_revives_none(store: Store, clock: FixedClock) -> None:
    """§11 item 30"""
    lock = take(store)
    clock.advance(seconds=TWO.lease_seconds - 1)
    assert store.consolidation.heartbeat(lock.ownership_token, lease_seconds=TWO.lease_seconds)
    clock.advance(seconds=TWO.lease_seconds - 1)
    assert store.consolidation.claim(worker_id="other", stage=TWO) == Running()
    clock.advance(seconds=1)
    assert not store.consolidation.heartbeat(lock.ownership_token, lease_seconds=TWO.lease_seconds)


def test_a_success_is_followed_by_a_cooldown_that_new_work_does_not_lift(store: Store, clock: FixedClock) -> None:
    """51"""
    lock = take(store)
    assert store.consolidation.succeed(lock.ownership_token, watermark=5, selected=[])
    until = clock.now() + TWO.success_cooldown_seconds
    assert store.consolidation.claim(worker_id="w", stage=TWO) == Cooldown(until)
    store.consolidation.enqueue(10)
    clock.advance(seconds=TWO.success_cooldown_seconds - 1)
    assert store.consolidation.claim(worker_id="w", stage=TWO) == Cooldown(until)
    clock.advance(seconds=1)
    assert take(store).input_watermark == 10


def test_a_failure_pauses_and_new_work_lifts_the_pause(store: Store, clock: FixedClock) -> None:
    store.consolidation.enqueue(10)
    fail(store)
    assert store.consolidation.claim(worker_id="w", stage=TWO) == RetryBackoff(clock.now() + HOUR)
    store.consolidation.enqueue(10)
    assert take(store).input_watermark == 11


def test_a_failure_starts_no_cooldown(store: Store, clock: FixedClock) -> None:
    fail(store)
    clock.advance(seconds=HOUR)
    take(store)


def test_exhausted_retries_do_not_block_but_new_work_no_longer_lifts_the_pause(store: Store, clock: FixedClock) -> None:
    """52, and §11 item 27: a consolidation that always fails is tried once an hour, not at every pass."""
    for _ in range(3):
        store.consolidation.enqueue(clock.now())
        fail(store)
    store.consolidation.enqueue(clock.now())
    assert store.consolidation.claim(worker_id="w", stage=TWO) == RetryBackoff(clock.now() + HOUR)
    clock.advance(seconds=HOUR)
    fail(store)
    job = store.consolidation.job()
    assert job is not None
    assert job.retry_remaining == 0
    clock.advance(seconds=HOUR)
    consolidate(store, clock)
    job = store.consolidation.job()
    assert job is not None
    assert job.retry_remaining == 3


def test_the_watermarks_only_grow(store: Store, clock: FixedClock) -> None:
    """61"""
    seen = []
    for given in (100, 100, 50, 300, -5):
        store.consolidation.enqueue(given)
        job = store.consolidation.job()
        assert job is not None
        seen.append(job.input_watermark)
    assert seen == [100, 101, 102, 300, 301]
    lock = take(store)
    store.consolidation.enqueue(400)
    job = store.consolidation.job()
    assert job is not None
    assert (job.status, job.input_watermark) == ("running", 400)
    assert store.consolidation.succeed(lock.ownership_token, watermark=301, selected=[])
    clock.advance(seconds=TWO.success_cooldown_seconds)
    assert store.consolidation.succeed(take(store).ownership_token, watermark=7, selected=[])
    job = store.consolidation.job()
    assert job is not None
    assert job.last_success_watermark == 301


def test_a_running_row_without_an_owner_can_be_failed(store: Store, tmp_path: Path) -> None:
    """62"""
    lock = take(store)
    db = sqlite3.connect(tmp_path / "state.sqlite3")
    db.execute("UPDATE jobs SET ownership_token = NULL")
    db.commit()
    db.close()
    token = lock.ownership_token
    assert not store.consolidation.fail(token, reason="no", retry_delay_seconds=HOUR)
    assert store.consolidation.fail(token, reason="no", retry_delay_seconds=HOUR, or_unowned=True)
    job = store.consolidation.job()
    assert job is not None
    assert (job.status, job.last_error) == ("error", "no")


def test_a_foreign_owner_is_never_failed(store: Store) -> None:
    """62"""
    take(store)
    assert not store.consolidation.fail("mine", reason="no", retry_delay_seconds=HOUR, or_unowned=True)


def test_a_success_marks_exactly_the_versions_that_it_was_given(
    store: Store, clock: FixedClock, tmp_path: Path
) -> None:
    """56"""
    extract(store, "a", at=WATERMARK)
    extract(store, "b", at=WATERMARK)
    lock = take(store)
    chosen = store.consolidation.select(limit=10, max_unused_days=30).selected
    extract(store, "a", at=WATERMARK + 7)
    assert store.consolidation.succeed(lock.ownership_token, watermark=1, selected=chosen)
    db = sqlite3.connect(tmp_path / "state.sqlite3")
    flags = db.execute(
        "SELECT thread_id, selected_for_phase2, selected_for_phase2_source_updated_at FROM stage1_outputs ORDER BY 1"
    ).fetchall()
    db.close()
    assert flags == [("a", 0, None), ("b", 1, WATERMARK)]


def test_the_selection_ranks_by_use_then_by_recency(store: Store, clock: FixedClock) -> None:
    """54: with the values of now."""
    for i in range(5):
        extract(store, f"t{i}", at=WATERMARK + i)
    use(store, "t1")
    use(store, "t1", "t0")
    assert selected_ids(store, limit=4) == ["t1", "t0", "t4", "t3"]
    clock.advance(seconds=1)
    use(store, "t3", at=clock.now())
    clock.advance(seconds=1)
    use(store, "t2", at=clock.now())  # older than the one before it, and used later
    assert selected_ids(store, limit=4) == ["t1", "t2", "t3", "t0"]
    assert on_disk_ids(store, limit=4) == ["t0", "t1", "t2", "t3"]


def test_use_long_ago_leaves_the_selection_even_if_the_thread_moved_on(store: Store, clock: FixedClock) -> None:
    """54, but that age counts from the extraction: see decision 3."""
    extract(store, "used", at=WATERMARK)
    use(store, "used")
    extract(store, "beyond", at=WATERMARK)
    clock.advance(seconds=1)
    extract(store, "edge", at=WATERMARK)
    clock.advance(seconds=30 * DAY)
    extract(store, "never-used", at=clock.now() - DAY)
    assert selected_ids(store) == ["never-used", "edge"]


def test_the_age_of_a_memory_counts_from_its_extraction(store: Store, clock: FixedClock) -> None:
    """Ours: a backfill of old sessions pays for nothing that the next pass would remove."""
    extract(store, "old-thread", at=NOW - 400 * DAY)
    clock.advance(seconds=30 * DAY)
    assert selected_ids(store) == ["old-thread"]
    clock.advance(seconds=1)
    assert selected_ids(store) == []


def test_preferences_never_expire_by_age(store: Store, clock: FixedClock) -> None:
    for name, text in PREFERENCES.items():
        extract(store, name, draft=Stage1Draft(raw_memory=text, rollout_summary="summary"))
    clock.advance(seconds=3000 * DAY)
    assert set(selected_ids(store)) == {"close", "apart"}
    assert {each.thread_id for each in store.outputs.prune(max_unused_days=30, limit=9)} == {"empty", "none"}
    store.threads.set_memory_mode("close", "disabled")
    assert [each.thread_id for each in store.outputs.prune(max_unused_days=30, limit=9)] == ["close"]


def test_what_a_session_was_given_is_younger_and_ranks_as_before(store: Store, clock: FixedClock) -> None:
    for number, name in enumerate(("first", "second")):
        extract(store, name, at=WATERMARK + number)
    consolidate(store, clock)
    given = clock.now() + 20 * DAY
    assert store.outputs.give({"first": given, "unknown": given}) == 1
    assert store.outputs.give({"first": given - 1}) == 0
    assert selected_ids(store) == ["second", "first"]
    clock.advance(seconds=29 * DAY)
    assert [each.thread_id for each in store.outputs.leaving(max_unused_days=30, before=clock.now() + 2 * DAY)] == [
        "second"
    ]
    clock.advance(seconds=2 * DAY)
    selection = store.consolidation.select(limit=9, max_unused_days=30)
    assert [output.thread_id for output in selection.selected] == ["first"]
    assert [(each.thread_id, each.name, each.cwd, each.reason) for each in selection.leaving] == [
        ("second", "slug", "/repo", "unused")
    ]


def test_the_previous_selection_stays_on_disk_for_one_more_run(store: Store, clock: FixedClock) -> None:
    extract(store, "a", at=WATERMARK)
    extract(store, "b", at=WATERMARK + 1)
    consolidate(store, clock)
    extract(store, "c", at=WATERMARK + 2)
    extract(store, "d", at=WATERMARK + 3)
    assert selected_ids(store, limit=2) == ["d", "c"]
    assert on_disk_ids(store, limit=2) == ["a", "b", "c", "d"]
    lock = take(store)
    store.consolidation.succeed(
        lock.ownership_token, watermark=1, selected=store.consolidation.select(limit=2, max_unused_days=30).selected
    )
    assert on_disk_ids(store, limit=2) == ["c", "d"]


def test_the_lowest_ranks_of_the_previous_selection_are_dropped_first(store: Store, clock: FixedClock) -> None:
    for i in range(5):
        extract(store, f"t{i}", at=WATERMARK + i)
    use(store, "t0")
    consolidate(store, clock)
    extract(store, "new", at=WATERMARK + 9)
    use(store, "new", at=clock.now())
    assert selected_ids(store, limit=1) == ["new"]
    assert on_disk_ids(store, limit=1) == ["new", "t0"]
    assert on_disk_ids(store, limit=2) == ["new", "t0", "t3", "t4"]


def test_a_thread_that_may_not_be_remembered_leaves_the_disk_at_once(store: Store, clock: FixedClock) -> None:
    """54: disabled, polluted, forgotten, empty."""
    for name in ("disabled", "polluted", "forgotten", "emptied", "kept"):
        extract(store, name)
    consolidate(store, clock)
    store.threads.set_memory_mode("disabled", "disabled")
    store.threads.set_memory_mode("polluted", "polluted")
    forget(store, thread("forgotten"))
    extract(store, "emptied", at=WATERMARK + 1, draft=None)
    assert on_disk_ids(store) == ["kept"]


def test_a_thread_extracted_anew_is_there_once_with_its_new_text(store: Store, clock: FixedClock) -> None:
    """54"""
    extract(store, "a")
    consolidate(store, clock)
    extract(store, "a", at=WATERMARK + 5, draft=Stage1Draft(raw_memory="new", rollout_summary="new"))
    selection = store.consolidation.select(limit=5, max_unused_days=30)
    assert selection.selected == selection.on_disk
    assert [(o.source_updated_at, o.raw_memory) for o in selection.on_disk] == [(WATERMARK + 5, "new")]


def test_blank_outputs_are_never_selected(store: Store) -> None:
    extract(store, "blank", draft=Stage1Draft(raw_memory="  ", rollout_summary="\n"))
    extract(store, "half", draft=Stage1Draft(raw_memory="  ", rollout_summary="x"))
    assert selected_ids(store) == ["half"]


def test_nothing_is_selected_when_nothing_is_asked_for(store: Store, clock: FixedClock) -> None:
    extract(store, "a")
    consolidate(store, clock)
    selection = store.consolidation.select(limit=0, max_unused_days=30)
    assert (selection.selected, selection.on_disk) == ((), ())


def test_archived_threads_and_those_whose_rollout_is_gone_keep_their_memory(store: Store) -> None:
    extract(store, "archived")
    extract(store, "gone")
    save(store, thread("archived", archived=True))
    store.threads.mark_missing("codex", ["/sessions/archived.jsonl"])
    assert set(selected_ids(store)) == {"archived", "gone"}


def test_a_clock_that_jumps_back_ends_a_cooldown_or_a_lease_early_rather_than_never(
    store: Store, clock: FixedClock
) -> None:
    consolidate(store, clock)
    take(store)
    clock.advance(seconds=-3650 * DAY)
    lock = take(store)
    assert store.consolidation.succeed(lock.ownership_token, watermark=1, selected=[])
    clock.advance(seconds=-1)
    assert isinstance(store.consolidation.claim(worker_id="w", stage=TWO), Cooldown)
    clock.advance(seconds=-3650 * DAY)
    take(store)
