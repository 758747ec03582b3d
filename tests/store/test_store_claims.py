"""Which threads phase 1 may claim, and in what order. Numbers in docstrings are those of the checklist, spec §10.4."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from store_samples import DAY, DRAFT, HOUR, MEMORIES, NOW, ONE, claim, claimed_ids, extract, save, thread, try_claim

from stillroom.clock import FixedClock
from stillroom.errors import StoreError
from stillroom.store import RetryBackoff, RetryExhausted, Running, Stage1Claim, Store, UpToDate
from stillroom.store.records import ThreadsLeft

WATERMARK = NOW - DAY


def fail(store: Store, taken: object) -> None:
    assert isinstance(taken, Stage1Claim)
    assert store.extraction.fail(taken, reason="no", retry_delay_seconds=HOUR)


def test_a_thread_that_was_extracted_at_this_watermark_is_up_to_date(store: Store) -> None:
    """38"""
    extract(store, "a", at=WATERMARK)
    assert try_claim(store, "a", at=WATERMARK) == UpToDate()
    assert try_claim(store, "a", at=WATERMARK - 1) == UpToDate()
    assert claim(store) == []


def test_no_output_counts_as_done_too(store: Store) -> None:
    """38"""
    extract(store, "a", draft=None)
    assert try_claim(store, "a") == UpToDate()
    assert claim(store) == []


def test_new_activity_makes_a_done_thread_claimable(store: Store) -> None:
    extract(store, "a", at=WATERMARK)
    save(store, thread("a", updated_at=WATERMARK + 1))
    (taken,) = claim(store)
    assert taken.source_updated_at == WATERMARK + 1


def test_a_fresh_lease_is_respected_and_a_stale_one_is_taken_over(store: Store, clock: FixedClock) -> None:
    """39"""
    save(store, thread("a"))
    first = try_claim(store, "a")
    assert isinstance(first, Stage1Claim)
    clock.advance(seconds=ONE.lease_seconds - 1)
    assert try_claim(store, "a") == Running()
    clock.advance(seconds=1)
    second = try_claim(store, "a")
    assert isinstance(second, Stage1Claim)
    assert second.ownership_token != first.ownership_token
    assert not store.extraction.finish(first, DRAFT, engine="offline")
    assert store.extraction.finish(second, DRAFT, engine="offline")


def test_of_many_who_claim_one_thread_at_once_one_wins(store: Store, tmp_path: Path, clock: FixedClock) -> None:
    """40: threads that share a store, and stores of their own on the same file."""
    save(store, thread("a"))
    others = [Store.open(tmp_path / "state.sqlite3", clock=clock) for _ in range(4)]
    gate = threading.Barrier(12)
    outcomes: list[object] = []

    def run(mine: Store) -> None:
        gate.wait()
        outcomes.append(try_claim(mine, "a"))

    workers = [threading.Thread(target=run, args=(mine,)) for mine in [store] * 8 + others]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for other in others:
        other.close()
    assert len(outcomes) == 12
    assert [o for o in outcomes if not isinstance(o, Stage1Claim)] == [Running()] * 11


def test_many_who_claim_at_once_keep_the_cap_together(store: Store) -> None:
    """41"""
    save(store, *(thread(f"t{i}", updated_at=WATERMARK + i) for i in range(40)))
    gate = threading.Barrier(8)
    taken: list[str] = []

    def run() -> None:
        gate.wait()
        taken.extend(claimed_ids(store, max_claims=5))

    workers = [threading.Thread(target=run) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(taken) == len(set(taken)) == 5


def test_only_threads_of_the_right_age_that_are_quiet_and_not_the_current_one_are_claimed(store: Store) -> None:
    """42: both ends of the span belong to it."""
    save(
        store,
        thread("too-old", updated_at=NOW - 10 * DAY - 1),
        thread("oldest", updated_at=NOW - 10 * DAY),
        thread("newest", updated_at=NOW - 6 * HOUR),
        thread("too-new", updated_at=NOW - 6 * HOUR + 1),
        thread("current", updated_at=NOW - 8 * HOUR),
        thread("from-the-future", updated_at=NOW + DAY),
    )
    assert claimed_ids(store, current="current") == ["newest", "oldest"]


def test_a_backfill_takes_any_age_but_not_more_at_once(store: Store) -> None:
    save(store, *(thread(f"t{i}", updated_at=NOW - 400 * DAY - i) for i in range(5)))
    save(store, thread("busy", updated_at=NOW - HOUR))
    assert claim(store) == []
    assert claimed_ids(store, backfill=True, max_claims=3) == ["t0", "t1", "t2"]


def test_an_upgrade_takes_what_is_to_be_done_again_at_any_age_and_of_the_rest_what_is_young(store: Store) -> None:
    old = NOW - 400 * DAY
    extract(store, "old", at=old)
    store.extraction.reopen_offline()
    save(store, thread("old-and-never-extracted", updated_at=old), thread("young"))
    assert left(store, upgrade=True).too_old == 1
    assert claimed_ids(store, upgrade=True) == ["young", "old"]


def test_a_retry_takes_what_failed_at_any_age_and_nothing_else(store: Store) -> None:
    old = NOW - 400 * DAY
    extract(store, "done-by-rules", at=old)
    save(store, thread("failed", updated_at=old + 2), thread("stopped", updated_at=old + 1))
    failed, stopped = claim(store, backfill=True)
    assert store.extraction.fail(failed, reason="no key", retry_delay_seconds=HOUR)
    assert store.extraction.release(stopped)
    assert store.extraction.reopen_offline() == 1
    save(store, thread("young"))
    assert claim(store, retry=True) == []  # nobody said yet that what failed is to be tried again
    assert store.jobs.retry_failed() == 1
    assert claimed_ids(store, retry=True) == ["failed"]
    assert claimed_ids(store) == ["young"]  # beside it, as ever


def test_a_retry_and_an_upgrade_have_no_scan_limit(store: Store) -> None:
    save(
        store, thread("failed", updated_at=NOW - 3 * DAY), thread("young"), thread("younger", updated_at=NOW - DAY + 1)
    )
    (failed,) = (each for each in claim(store) if each.thread_id == "failed")
    store.extraction.fail(failed, reason="no key", retry_delay_seconds=HOUR)
    store.jobs.retry_failed()
    stage = msgspec.structs.replace(ONE, thread_scan_limit=1)
    for asked in ({"retry": True}, {"upgrade": True}):
        (taken,) = store.extraction.claim(
            worker_id="w", current_thread_id=None, memories=MEMORIES, stage=stage, max_claims=9, **asked
        )
        assert taken.thread_id == "failed"
        store.extraction.release(taken)


def test_the_scan_limit_counts_threads_before_their_jobs_are_looked_at(store: Store) -> None:
    """43: and a backfill has no such edge, or extracted threads would hide the older ones for good."""
    for i in range(4):
        extract(store, f"done{i}", at=WATERMARK + 10 + i)
    save(store, thread("older", updated_at=WATERMARK))
    stage = msgspec.structs.replace(ONE, thread_scan_limit=4)

    def ids(*, backfill: bool, limit: int = 4) -> list[str]:
        claims = store.extraction.claim(
            worker_id="w",
            current_thread_id=None,
            memories=MEMORIES,
            stage=msgspec.structs.replace(stage, thread_scan_limit=limit),
            max_claims=4,
            backfill=backfill,
        )
        return [c.thread_id for c in claims]

    assert ids(backfill=False) == []
    assert ids(backfill=False, limit=0) == []
    assert ids(backfill=True) == ["older"]


def test_the_scan_limit_is_exact_among_threads_of_one_moment(store: Store) -> None:
    save(store, *(thread(f"t{i}") for i in range(6)))
    claims = store.extraction.claim(
        worker_id="w",
        current_thread_id=None,
        memories=MEMORIES,
        stage=msgspec.structs.replace(ONE, thread_scan_limit=4),
        max_claims=6,
    )
    assert [c.thread_id for c in claims] == ["t5", "t4", "t3", "t2"]


@pytest.mark.parametrize("mode", ["disabled", "polluted", "something-new"])
def test_a_thread_that_is_not_enabled_is_skipped(store: Store, mode: str) -> None:
    """44"""
    save(store, thread("a", mode=mode), thread("b"))  # type: ignore[arg-type]
    assert claimed_ids(store) == ["b"]


@pytest.mark.parametrize("source", ["cli", "vscode", "atlas", "chatgpt", '{"custom":"atlas"}', '{"custom":"chatgpt"}'])
def test_sessions_with_a_person_are_claimed(store: Store, source: str) -> None:
    """§4.4; the JSON forms are what Codex stores and then never finds."""
    save(store, thread("a", source=source))
    assert claimed_ids(store) == ["a"]


@pytest.mark.parametrize("source", ["exec", "mcp", "", '{"custom":"other"}', '{"subagent":"review"}', "CLI"])
def test_sessions_without_a_person_are_not(store: Store, source: str) -> None:
    save(store, thread("a", source=source))
    assert claim(store) == []


def test_archived_threads_and_those_without_a_word_of_the_user_are_not_claimed(store: Store) -> None:
    save(store, thread("a", archived=True), thread("b", preview=""))
    assert claim(store) == []


def test_a_thread_whose_rollout_is_gone_is_not_claimed_until_it_is_back(store: Store) -> None:
    save(store, thread("a"), thread("b"))
    assert store.threads.mark_missing("codex", {"/sessions/b.jsonl"}) == 1
    assert store.threads.mark_missing("codex", {"/sessions/b.jsonl"}) == 0
    assert list(store.threads.file_stamps("codex")) == ["/sessions/b.jsonl"]
    assert claimed_ids(store) == ["b"]
    save(store, thread("a"))
    assert claimed_ids(store) == ["a"]


def test_running_jobs_of_all_workers_count_against_the_cap(store: Store, clock: FixedClock) -> None:
    """46"""
    save(store, *(thread(f"t{i}", updated_at=WATERMARK + i) for i in range(6)))
    assert claimed_ids(store, max_claims=2) == ["t5", "t4"]
    assert claim(store, max_claims=2) == []
    assert try_claim(store, "t0", max_running=2) == Running()
    assert claimed_ids(store, max_claims=3) == ["t3"]
    clock.advance(seconds=ONE.lease_seconds)
    assert claimed_ids(store, max_claims=2) == ["t5", "t4"]


def test_two_passes_take_two_full_batches(store: Store) -> None:
    """47"""
    save(store, *(thread(f"t{i}", updated_at=WATERMARK + i) for i in range(5)))
    batches = []
    for _ in range(3):
        batch = claim(store, max_claims=2)
        batches.append([c.thread_id for c in batch])
        for taken in batch:
            assert store.extraction.finish(taken, DRAFT, engine="offline")
    assert batches == [["t4", "t3"], ["t2", "t1"], ["t0"]]


def test_no_claims_are_made_when_none_are_asked_for(store: Store) -> None:
    save(store, thread("a"))
    assert claim(store, max_claims=0) == []
    assert claim(store, max_claims=-1) == []


def test_a_failure_pauses_the_thread_and_three_exhaust_it(store: Store, clock: FixedClock) -> None:
    save(store, thread("a"))
    for left in (2, 1, 0):
        fail(store, try_claim(store, "a"))
        job = store.extraction.job("a")
        assert job is not None
        assert (job.status, job.retry_remaining, job.last_error) == ("error", left, "no")
        if left:
            assert try_claim(store, "a") == RetryBackoff(clock.now() + HOUR)
            assert claim(store) == []
        clock.advance(seconds=HOUR)
    assert try_claim(store, "a") == RetryExhausted()
    assert claim(store) == []


def test_new_activity_revives_an_exhausted_thread(store: Store, clock: FixedClock) -> None:
    """50"""
    save(store, thread("a"))
    for _ in range(3):
        fail(store, try_claim(store, "a"))
        clock.advance(seconds=HOUR)
    assert try_claim(store, "a") == RetryExhausted()
    assert isinstance(try_claim(store, "a", at=WATERMARK + 1), Stage1Claim)
    job = store.extraction.job("a")
    assert job is not None
    assert (job.retry_remaining, job.last_error, job.retry_at) == (3, None, None)


def test_new_activity_lifts_a_pause(store: Store) -> None:
    save(store, thread("a"))
    fail(store, try_claim(store, "a"))
    assert isinstance(try_claim(store, "a", at=WATERMARK + 1), Stage1Claim)


def test_a_lease_that_runs_out_costs_a_retry_so_that_a_deadly_rollout_ends(store: Store, clock: FixedClock) -> None:
    """§11 item 26: three workers that die are three failures."""
    save(store, thread("a"), thread("b", updated_at=WATERMARK - 1))
    for left in (3, 2, 1):
        assert claimed_ids(store, max_claims=1) == ["a"]
        job = store.extraction.job("a")
        assert job is not None
        assert job.retry_remaining == left
        clock.advance(seconds=ONE.lease_seconds)
    assert claimed_ids(store, max_claims=1) == ["b"]
    assert try_claim(store, "a") == RetryExhausted()
    job = store.extraction.job("a")
    assert job is not None
    assert (job.status, job.retry_remaining, job.finished_at) == ("error", 0, clock.now())
    assert job.last_error is not None
    assert "silent" in job.last_error
    assert isinstance(try_claim(store, "a", at=WATERMARK + 1), Stage1Claim)


def test_a_heartbeat_keeps_a_lease_but_revives_none(store: Store, clock: FixedClock) -> None:
    """§11 items 25 and 30."""
    save(store, thread("a"))
    first = try_claim(store, "a")
    assert isinstance(first, Stage1Claim)
    clock.advance(seconds=ONE.lease_seconds - 1)
    assert store.extraction.heartbeat(first, lease_seconds=ONE.lease_seconds)
    clock.advance(seconds=ONE.lease_seconds - 1)
    assert try_claim(store, "a") == Running()
    clock.advance(seconds=1)
    assert not store.extraction.heartbeat(first, lease_seconds=ONE.lease_seconds)
    assert isinstance(try_claim(store, "a"), Stage1Claim)
    assert not store.extraction.heartbeat(first, lease_seconds=ONE.lease_seconds)


def test_a_result_that_is_late_is_kept_while_nobody_else_has_claimed_the_thread(
    store: Store, clock: FixedClock
) -> None:
    """A laptop that slept through the lease: the call was paid for."""
    save(store, thread("a"))
    first = try_claim(store, "a")
    assert isinstance(first, Stage1Claim)
    clock.advance(seconds=10 * ONE.lease_seconds)
    assert store.extraction.finish(first, DRAFT, engine="offline")
    assert not store.extraction.finish(first, DRAFT, engine="offline")
    assert not store.extraction.fail(first, reason="again", retry_delay_seconds=1)


def test_a_thread_that_is_not_known_can_not_be_claimed(store: Store) -> None:
    with pytest.raises(StoreError, match="`a`") as caught:
        try_claim(store, "a")
    assert caught.value.hint


@pytest.mark.parametrize("jump", [-HOUR // 2, -2 * HOUR, -3650 * DAY])
def test_a_clock_that_jumps_back_does_not_hold_a_dead_workers_thread_for_long(
    store: Store, clock: FixedClock, jump: int
) -> None:
    save(store, thread("a"))
    assert isinstance(try_claim(store, "a"), Stage1Claim)
    clock.advance(seconds=jump)
    waited = 0
    while try_claim(store, "a") == Running():
        clock.advance(seconds=600)
        waited += 600
    assert waited <= 2 * ONE.lease_seconds


def test_a_living_worker_keeps_its_lease_over_a_jump_back(store: Store, clock: FixedClock) -> None:
    save(store, thread("a"))
    first = try_claim(store, "a")
    assert isinstance(first, Stage1Claim)
    clock.advance(seconds=-30 * DAY)
    assert store.extraction.heartbeat(first, lease_seconds=ONE.lease_seconds)
    assert try_claim(store, "a") == Running()
    job = store.extraction.job("a")
    assert job is not None
    assert job.lease_until == clock.now() + ONE.lease_seconds


def test_a_clock_that_jumps_back_does_not_prolong_a_pause_for_long(store: Store, clock: FixedClock) -> None:
    save(store, thread("a"))
    fail(store, try_claim(store, "a"))
    clock.advance(seconds=-3650 * DAY)
    assert isinstance(try_claim(store, "a"), Stage1Claim)


def test_reopened_threads_are_extracted_once_more_and_keep_their_output_until_then(store: Store) -> None:
    """`run --upgrade`"""
    extract(store, "rules", engine="offline")
    extract(store, "model", engine="openai:x")
    assert store.extraction.reopen_offline() == 1
    assert [o.thread_id for o in store.outputs.latest()] == ["rules", "model"]
    (taken,) = claim(store)
    assert taken.thread_id == "rules"
    assert store.extraction.finish(taken, DRAFT, engine="openai:x")
    assert claim(store) == []
    assert store.extraction.reopen_offline() == 0
    assert {o.thread_id: o.engine for o in store.outputs.latest()} == {"rules": "openai:x", "model": "openai:x"}


def test_reopening_gives_exhausted_upgrades_their_retries_back(store: Store, clock: FixedClock) -> None:
    extract(store, "a")
    store.extraction.reopen_offline()
    for _ in range(3):
        (taken,) = claim(store)
        fail(store, taken)
        clock.advance(seconds=HOUR)
    assert claim(store) == []
    assert store.extraction.reopen_offline() == 1
    assert claimed_ids(store) == ["a"]


def test_reopening_leaves_a_running_job_alone(store: Store) -> None:
    extract(store, "a")
    store.extraction.reopen_offline()
    (taken,) = claim(store)
    assert store.extraction.reopen_offline() == 0
    assert store.extraction.finish(taken, None, engine="openai:x")
    assert claim(store) == []
    assert store.outputs.latest() == []


def left(
    store: Store, *, backfill: bool = False, upgrade: bool = False, current: str | None = None, cwd: str | None = None
) -> ThreadsLeft:
    return store.extraction.count_left(
        current_thread_id=current, memories=MEMORIES, backfill=backfill, upgrade=upgrade, cwd=cwd
    )


def test_every_thread_that_is_left_has_its_reason(store: Store) -> None:
    extract(store, "done")
    save(
        store,
        thread("fresh", updated_at=NOW - HOUR),
        thread("old", updated_at=NOW - 11 * DAY),
        thread("off", mode="disabled"),
        thread("put-away", archived=True),
        thread("script", source="exec"),
        thread("silent", preview=""),
        thread("me"),
    )
    expected = ThreadsLeft(not_idle=1, too_old=1, switched_off=1, archived=1, not_interactive=2, current=1)
    assert left(store, current="me") == expected
    assert left(store, current="me", cwd="/elsewhere") == ThreadsLeft()
    assert left(store, current="me", backfill=True) == msgspec.structs.replace(expected, too_old=0, waiting=1)


def test_a_thread_is_left_to_who_holds_it_to_a_pause_and_in_the_end_for_good(store: Store, clock: FixedClock) -> None:
    save(store, thread("a"))
    assert left(store) == ThreadsLeft(waiting=1)
    (taken,) = claim(store)
    assert left(store) == ThreadsLeft(running=1)
    fail(store, taken)
    assert left(store) == ThreadsLeft(retry_later=1)
    clock.advance(seconds=HOUR)
    assert left(store) == ThreadsLeft(waiting=1)
    for _ in range(2):
        fail(store, try_claim(store, "a"))
        clock.advance(seconds=HOUR)
    assert left(store) == ThreadsLeft(given_up=1)
    save(store, thread("a", updated_at=NOW - DAY + 1))
    assert left(store) == ThreadsLeft(waiting=1)
