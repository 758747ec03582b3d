"""Outputs of phase 1, their use and their end; threads and their modes. Numbers are those of spec §10.4."""

from __future__ import annotations

from pathlib import Path

import msgspec
from store_samples import (
    DAY,
    DRAFT,
    MEMORIES,
    NOW,
    ONE,
    STAMP,
    claim,
    claimed_ids,
    consolidate,
    extract,
    forget,
    save,
    selected_ids,
    thread,
    try_claim,
    use,
)

from stillroom.clock import FixedClock
from stillroom.release import VERSION
from stillroom.store import Stage1Claim, Stage1Draft, Stage1Output, Store
from stillroom.store.records import Stage1Restored
from stillroom.thread import FileStamp, Thread

WATERMARK = NOW - DAY


def watermark(store: Store) -> int | None:
    """Up to where phase 2 was asked to go; None: it never was."""
    job = store.consolidation.job()
    return job and job.input_watermark


def test_an_output_comes_back_with_what_is_known_of_its_thread(store: Store) -> None:
    save(store, msgspec.structs.replace(thread("a"), git_branch="main", git_origin_url="git@host:x"))
    (taken,) = claim(store)
    assert store.extraction.finish(taken, DRAFT, engine="openai:x", prompt="0123456789ab")
    assert store.outputs.latest() == [
        Stage1Output(
            thread_id="a",
            source_updated_at=WATERMARK,
            raw_memory="raw",
            rollout_summary="summary",
            rollout_slug="slug",
            rollout_path="/sessions/a.jsonl",
            cwd="/repo",
            git_branch="main",
            git_origin_url="git@host:x",
            generated_at=NOW,
            engine="openai:x",
            prompt="0123456789ab",
            release=VERSION,
        )
    ]


def test_a_success_asks_for_a_consolidation(store: Store) -> None:
    """59"""
    extract(store, "a", at=WATERMARK)
    assert watermark(store) == WATERMARK
    extract(store, "b", at=WATERMARK - 10)
    assert watermark(store) == WATERMARK + 1


def test_no_output_asks_for_one_only_if_it_replaced_something(store: Store) -> None:
    """49"""
    extract(store, "a", draft=None)
    assert watermark(store) is None
    extract(store, "b", at=WATERMARK)
    assert watermark(store) == WATERMARK
    extract(store, "b", at=WATERMARK + 5, draft=None)
    assert watermark(store) == WATERMARK + 5
    assert store.outputs.latest() == []


def test_a_new_extraction_replaces_the_texts_but_not_the_use(store: Store, clock: FixedClock) -> None:
    extract(store, "a")
    use(store, "a")
    clock.advance(seconds=60)
    extract(store, "a", at=WATERMARK + 1, draft=Stage1Draft(raw_memory="new", rollout_summary="new"))
    (output,) = store.outputs.latest()
    assert (output.raw_memory, output.rollout_slug, output.generated_at) == ("new", None, NOW + 60)
    assert (output.usage_count, output.last_usage) == (1, NOW)


def test_an_older_extraction_never_replaces_a_newer_one(store: Store) -> None:
    save(store, thread("a"))
    extract(store, "b", at=WATERMARK)
    taken = try_claim(store, "a")
    assert isinstance(taken, Stage1Claim)
    assert store.extraction.finish(taken, DRAFT, engine="offline")
    store.extraction.reopen_offline()
    late = try_claim(store, "a", at=WATERMARK - 5)
    assert isinstance(late, Stage1Claim)
    assert store.extraction.finish(late, Stage1Draft(raw_memory="old", rollout_summary="old"), engine="offline")
    assert {o.raw_memory for o in store.outputs.latest()} == {"raw"}


def test_the_list_is_newest_first_without_blank_and_refused_ones(store: Store) -> None:
    """53"""
    for i in range(4):
        extract(store, f"t{i}", at=WATERMARK + i)
    extract(store, "blank", at=WATERMARK + 9, draft=Stage1Draft(raw_memory=" \n", rollout_summary="\t"))
    extract(store, "polluted", at=WATERMARK + 9)
    store.threads.set_memory_mode("polluted", "polluted")
    assert [o.thread_id for o in store.outputs.latest(limit=3)] == ["t3", "t2", "t1"]


def test_pruning_removes_only_unselected_outputs_that_nobody_used(store: Store, clock: FixedClock) -> None:
    """58"""
    extract(store, "selected", at=NOW - 40 * DAY)
    use(store, "selected")
    consolidate(store, clock)
    now = clock.now()
    extract(store, "used", at=now - 40 * DAY)
    extract(store, "stale", at=now - DAY)
    clock.advance(seconds=1)
    extract(store, "on-the-edge", at=now - 40 * DAY)
    clock.advance(seconds=30 * DAY)
    use(store, "used", at=clock.now())
    (gone,) = store.outputs.prune(max_unused_days=30, limit=200)
    assert (gone.thread_id, gone.name, gone.cwd) == ("stale", "slug", "/repo")
    assert {o.thread_id for o in store.outputs.latest()} == {"selected", "used", "on-the-edge"}
    assert claimed_ids(store, backfill=True) == []  # a pruned thread is done until it changes
    job = store.extraction.job("stale")
    assert job is not None and job.expired_at == clock.now()
    extract(store, "stale", at=now)
    job = store.extraction.job("stale")
    assert job is not None and job.expired_at is None


def test_pruning_takes_the_oldest_and_no_more_than_its_batch(store: Store, clock: FixedClock) -> None:
    """58"""
    for i in range(5):
        extract(store, f"t{i}", at=NOW - 100 * DAY + i)
    clock.advance(seconds=31 * DAY)
    assert len(store.outputs.prune(max_unused_days=30, limit=2)) == 2
    assert [o.thread_id for o in store.outputs.latest()] == ["t4", "t3", "t2"]
    assert store.outputs.prune(max_unused_days=30, limit=0) == ()


def test_forgotten_text_is_gone_from_the_files(store: Store, tmp_path: Path) -> None:
    secret = "a very particular sentence " * 500
    extract(store, "a", draft=Stage1Draft(raw_memory=secret, rollout_summary="x"))
    extract(store, "b", draft=Stage1Draft(raw_memory=secret, rollout_summary="x"))
    extract(store, "b", at=WATERMARK + 1, draft=None)
    forget(store, thread("a"))
    assert store.compact()
    for file in tmp_path.iterdir():
        assert b"very particular" not in file.read_bytes(), file


def test_forgetting_a_thread_removes_its_output_and_asks_for_a_consolidation(store: Store, clock: FixedClock) -> None:
    """48"""
    extract(store, "a")
    extract(store, "b")
    consolidate(store, clock)
    forget(store, thread("a"))
    assert watermark(store) == clock.now()
    assert [o.thread_id for o in store.outputs.latest()] == ["b"]
    assert store.extraction.job("a") is None
    assert store.threads.get("a") is None
    forget(store, thread("never-there"))


def test_a_forgotten_thread_refuses_the_worker_that_runs_it(store: Store) -> None:
    """§11 item 23: no orphan."""
    save(store, thread("a"))
    (taken,) = claim(store)
    forget(store, thread("a"))
    assert not store.extraction.finish(taken, DRAFT, engine="offline")
    assert store.outputs.latest() == []


def test_a_forgotten_thread_does_not_come_back_with_the_next_scan(store: Store) -> None:
    extract(store, "a")
    forget(store, thread("a"))
    save(store, thread("a", updated_at=WATERMARK + 60))
    assert claim(store, backfill=True) == []
    assert store.outputs.latest() == []


def test_a_copy_of_a_forgotten_thread_and_its_sub_agents_are_refused(store: Store) -> None:
    gone = thread("a", preview="what was asked first")
    save(store, gone)
    forget(store, gone)
    copy = msgspec.structs.replace(gone, thread_id="copy", rollout_path="/sessions/copy.jsonl")
    child = msgspec.structs.replace(thread("child"), parent_thread_id="a")
    assert store.threads.save([(copy, STAMP), (child, STAMP), (thread("other"), STAMP)]) == 2
    assert [t.thread_id for t in store.threads.newest()] == ["other"]


def test_pollution_asks_for_forgetting_each_time_for_a_selected_thread(store: Store, clock: FixedClock) -> None:
    """55"""
    extract(store, "a")
    extract(store, "b")
    consolidate(store, clock)
    extract(store, "not-selected")
    before = watermark(store)
    assert store.threads.set_memory_mode("not-selected", "polluted")
    assert watermark(store) == before
    assert store.threads.set_memory_mode("a", "polluted")
    assert watermark(store) == clock.now()
    assert not store.threads.set_memory_mode("a", "polluted")
    assert watermark(store) == clock.now() + 1
    assert selected_ids(store) == ["b"]
    assert not store.threads.set_memory_mode("unknown", "polluted")


def test_a_mode_set_here_outlives_a_scan(store: Store) -> None:
    save(store, thread("a"), thread("b"), thread("c", mode="disabled"))
    store.threads.set_memory_mode("a", "polluted")
    store.threads.set_memory_mode("b", "disabled")
    store.threads.set_memory_mode("c", "enabled")
    save(store, thread("a"), thread("b"), thread("c", mode="disabled"))
    assert [t.memory_mode for t in store.threads.newest()] == ["enabled", "disabled", "polluted"]


def test_a_thread_switched_on_here_follows_its_files_when_they_switch_it_off_later(store: Store) -> None:
    save(store, thread("a"))
    store.threads.set_memory_mode("a", "polluted")
    store.threads.set_memory_mode("a", "enabled")
    save(store, thread("a", mode="disabled"))
    assert claim(store) == []
    save(store, thread("a", mode="enabled"))
    assert claimed_ids(store) == ["a"]


def test_a_scan_that_finds_a_selected_thread_switched_off_asks_for_forgetting_once(
    store: Store, clock: FixedClock
) -> None:
    extract(store, "a")
    consolidate(store, clock)
    save(store, thread("a", mode="disabled"))
    assert watermark(store) == clock.now()
    save(store, thread("a", mode="disabled"))
    assert watermark(store) == clock.now()
    assert selected_ids(store) == []


def test_threads_and_stamps_come_back_as_they_were_saved(store: Store) -> None:
    full = Thread(
        thread_id="a",
        agent="codex",
        rollout_path="/sessions/a.jsonl",
        source="vscode",
        cwd="/repo",
        created_at_ms=1,
        updated_at_ms=2_999,
        title="t",
        preview="p",
        memory_mode="polluted",
        archived=True,
        parent_thread_id="parent",
        git_branch="null",
        git_sha="0" * 40,
        git_origin_url="url",
        cli_version="1",
        model_provider="openai",
    )
    store.threads.save([(full, STAMP)])
    assert store.threads.get("a") == full
    assert store.threads.newest() == [full]
    assert store.threads.file_stamps("codex") == {"/sessions/a.jsonl": STAMP}
    assert store.threads.file_stamps("claude-code") == {}
    newer = msgspec.structs.replace(full, updated_at_ms=5_000, archived=False, preview="q", git_branch=None)
    grown = FileStamp(size=11, mtime_ns=21, offset=6)
    store.threads.save([(newer, grown)])
    assert store.threads.get("a") == newer
    assert store.threads.file_stamps("codex") == {"/sessions/a.jsonl": grown}
    assert store.threads.get("b") is None


def test_text_of_any_kind_is_stored(store: Store) -> None:
    """A path that is not UTF-8, a null character, half a surrogate pair in a reply."""
    odd = msgspec.structs.replace(
        thread("odd\udcff"), rollout_path="/r/\udcfe.jsonl", cwd="/\udc80", title="a\0b", preview="\ud83d"
    )
    save(store, odd)
    assert store.threads.get("odd\udcff") == odd
    assert store.threads.file_stamps("codex") == {"/r/\udcfe.jsonl": STAMP}
    assert claim(store, current="odd\udcff") == []
    (taken,) = claim(store)
    assert store.extraction.heartbeat(taken, lease_seconds=ONE.lease_seconds)
    draft = Stage1Draft(raw_memory="x\ud800", rollout_summary="\0y", rollout_slug="\udfff")
    assert store.extraction.finish(taken, draft, engine="offline")
    (output,) = store.consolidation.select(limit=1, max_unused_days=MEMORIES.max_unused_days).on_disk
    assert (output.raw_memory, output.rollout_summary, output.rollout_slug) == ("x\ud800", "\0y", "\udfff")
    assert output.rollout_path == "/r/\udcfe.jsonl"
    use(store, "odd\udcff")
    assert store.threads.mark_missing("codex", set()) == 1
    forget(store, odd)
    assert store.outputs.latest() == []


def test_a_reason_is_cut(store: Store) -> None:
    save(store, thread("a"))
    (taken,) = claim(store)
    assert store.extraction.fail(taken, reason="x" * 10_000 + "\ud800", retry_delay_seconds=0)
    job = store.extraction.job("a")
    assert job is not None
    assert job.last_error == "x" * 2000


def test_an_undo_keeps_the_lines_of_an_output_that_never_came_into_the_folder(store: Store, clock: FixedClock) -> None:
    save(store, thread("a"))
    (taken,) = claim(store)
    whole = "- kept\n- printed [lane: tool; instruction]"
    draft = Stage1Draft(raw_memory=whole, rollout_summary=whole, rollout_slug=None)
    assert store.extraction.finish(taken, draft, engine="openai:x")
    consolidate(store, clock)
    (shown,) = store.consolidation.select(limit=10, max_unused_days=30).selected
    assert "printed" not in f"{shown.raw_memory}{shown.rollout_summary}"
    store.consolidation.undo(
        [
            Stage1Restored(
                thread_id="a",
                source_updated_at=shown.source_updated_at,
                raw_memory=shown.raw_memory,
                rollout_summary=shown.rollout_summary,
                rollout_slug=None,
                generated_at=clock.now(),
            )
        ]
    )
    (output,) = store.outputs.latest()
    assert (output.raw_memory, output.rollout_summary) == (whole, whole)
    assert [each.line.text for each in store.consolidation.select(limit=10, max_unused_days=30).withheld] == ["printed"]
