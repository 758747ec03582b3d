"""One claimed consolidation: up to where it is done, and whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Settings, StageTwo
from stillroom.consolidate.job import Job, StepFailed
from stillroom.errors import StoreError
from stillroom.store import ConsolidationClaim, Selection, Stage1Output, Store
from stillroom.workspace.journal import nothing

NOW = 1_800_000_000


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW * 1000)


@pytest.fixture
def store(tmp_path: Path, clock: FixedClock) -> Iterator[Store]:
    with Store.open(tmp_path / "state.sqlite3", clock=clock) as opened:
        yield opened


def claimed(store: Store, clock: FixedClock, home: Path) -> Job:
    claim = store.consolidation.claim(worker_id="worker", stage=StageTwo())
    assert isinstance(claim, ConsolidationClaim), claim
    return Job(Settings(home=home), store, clock, claim, nothing, allowance=None)


def of(*updated_at: int) -> Selection:
    selected = tuple(
        Stage1Output(
            thread_id=f"t{at}",
            source_updated_at=at,
            raw_memory="raw",
            rollout_summary="summary",
            rollout_slug=None,
            rollout_path="/r.jsonl",
            cwd="/repo",
            git_branch=None,
            git_origin_url=None,
            generated_at=at,
            engine="offline",
        )
        for at in updated_at
    )
    return Selection(selected=selected, on_disk=selected)


def test_a_history_of_many_versions_is_packed_and_one_that_can_not_be_is_told(
    store: Store, clock: FixedClock, tmp_path: Path
) -> None:
    job = claimed(store, clock, tmp_path)
    job.limits = StageTwo(pack_at_loose_objects=3)
    job.settings.root.mkdir()
    job.history.ensure(job.settings.root, now=NOW)
    assert job.pack_history() == []
    (job.settings.root / "MEMORY.md").write_text("more\n", encoding="utf-8")
    job.history.take(job.settings.root, now=NOW)
    packs = job.history.git_dir / "objects" / "pack"
    assert not list(packs.glob("*.pack")) and job.pack_history() == [] and list(packs.glob("*.pack"))
    (job.settings.root / "MEMORY.md").write_text("still more\n", encoding="utf-8")
    job.history.take(job.settings.root, now=NOW)
    packs.rename(packs.with_name("packs"))
    packs.write_bytes(b"")
    (told,) = job.pack_history()
    assert told.startswith("the folder is written, but its history could not be packed: ")


@pytest.mark.parametrize(("asked", "inputs", "done"), [(50, (20, 70), 70), (90, (20, 70), 90), (90, (), 90)])
def test_it_is_done_up_to_what_was_asked_for_or_the_newest_input(
    store: Store, clock: FixedClock, tmp_path: Path, asked: int, inputs: tuple[int, ...], done: int
) -> None:
    store.consolidation.enqueue(asked)
    claimed(store, clock, tmp_path).succeed(of(*inputs))
    job = store.consolidation.job()
    assert job is not None
    assert job.last_success_watermark == done


def test_why_it_failed_is_told_without_secrets(store: Store, clock: FixedClock, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    store.consolidation.enqueue(1)
    failed = claimed(store, clock, tmp_path).fail(StepFailed("failed_agent", f"HTTP 401: bad key {secret}"))
    assert failed.reason == "HTTP 401: bad key [REDACTED_SECRET:github_token]"
    job = store.consolidation.job()
    assert job is not None
    assert job.last_error == failed.reason


def test_one_that_was_taken_over_is_not_brought_into_the_folder(
    store: Store, clock: FixedClock, tmp_path: Path
) -> None:
    first = claimed(store, clock, tmp_path)
    first.confirm()
    clock.advance(seconds=StageTwo().lease_seconds)
    claimed(store, clock, tmp_path).confirm()
    with pytest.raises(StoreError, match="another process took the consolidation over"):
        first.confirm()
