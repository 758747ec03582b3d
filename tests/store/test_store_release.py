"""Claims that are handed back, and claims below one folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Memories, StageOne
from stillroom.store import Stage1Claim, Store
from stillroom.thread import FileStamp, Thread

NOW_MS = 1_780_000_000_000
STAGE = StageOne()


@pytest.fixture
def store(tmp_path: Path):
    with Store.open(tmp_path / "state.sqlite3", clock=FixedClock(NOW_MS)) as opened:
        yield opened


def save(store: Store, thread_id: str, *, cwd: str = "/work") -> None:
    thread = Thread(
        thread_id=thread_id,
        agent="codex",
        rollout_path=f"/r/{thread_id}.jsonl",
        source="cli",
        cwd=cwd,
        created_at_ms=NOW_MS - 90_000_000,
        updated_at_ms=NOW_MS - 80_000_000,
        preview="hello",
    )
    store.threads.save([(thread, FileStamp(size=1, mtime_ns=1))])


def claim(store: Store, *, cwd: str | None = None) -> list[Stage1Claim]:
    return store.extraction.claim(
        worker_id="w", current_thread_id=None, memories=Memories(), stage=STAGE, max_claims=10, cwd=cwd
    )


def test_a_released_thread_can_be_claimed_at_once_with_all_its_retries(store: Store):
    save(store, "a")
    (first,) = claim(store)
    assert claim(store) == []
    assert store.extraction.release(first)
    job = store.extraction.job("a")
    assert job is not None
    assert (job.status, job.retry_remaining) == ("pending", STAGE.retries)
    (second,) = claim(store)
    assert second.ownership_token != first.ownership_token


def test_only_the_owner_releases_and_only_once(store: Store):
    save(store, "a")
    (first,) = claim(store)
    assert store.extraction.release(first)
    assert not store.extraction.release(first)
    claim(store)
    assert not store.extraction.release(first)
    assert not store.extraction.finish(first, None, engine="offline")


@pytest.mark.parametrize(
    ("cwd", "claimed"),
    [("/work", {"a", "b"}), ("/work/", {"a", "b"}), ("/work/b", {"b"}), ("/", {"a", "b", "c"}), ("/wor", set())],
)
def test_a_folder_takes_what_ran_in_it_or_below(store: Store, cwd: str, claimed: set[str]):
    save(store, "a", cwd="/work")
    save(store, "b", cwd="/work/b")
    save(store, "c", cwd="/work-2")
    assert {taken.thread_id for taken in claim(store, cwd=cwd)} == claimed
