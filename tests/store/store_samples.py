"""What the tests of the store start from."""

from __future__ import annotations

import uuid

from stillroom.clock import FixedClock
from stillroom.config import Memories, StageOne, StageTwo
from stillroom.store import ConsolidationClaim, Stage1Claim, Stage1Draft, Store, Use
from stillroom.thread import FileStamp, MemoryMode, Thread

NOW = 1_800_000_000
HOUR = 3600
DAY = 24 * HOUR
STAMP = FileStamp(size=10, mtime_ns=20, offset=5)
DRAFT = Stage1Draft(raw_memory="raw", rollout_summary="summary", rollout_slug="slug")
#: The rules of a model's extraction: those of the seeds.
MEMORIES = Memories(extract_model="provider:model")
ONE = StageOne()
TWO = StageTwo()


def thread(
    thread_id: str,
    *,
    updated_at: int = NOW - DAY,
    source: str = "cli",
    preview: str = "hello",
    mode: MemoryMode = "enabled",
    archived: bool = False,
) -> Thread:
    return Thread(
        thread_id=thread_id,
        agent="codex",
        rollout_path=f"/sessions/{thread_id}.jsonl",
        source=source,
        cwd="/repo",
        created_at_ms=updated_at * 1000,
        updated_at_ms=updated_at * 1000,
        preview=preview,
        memory_mode=mode,
        archived=archived,
    )


def save(store: Store, *threads: Thread) -> None:
    store.threads.save([(t, STAMP) for t in threads])


def claim(
    store: Store,
    *,
    max_claims: int = 8,
    current: str | None = None,
    backfill: bool = False,
    upgrade: bool = False,
    retry: bool = False,
) -> list[Stage1Claim]:
    return store.extraction.claim(
        worker_id="worker",
        current_thread_id=current,
        memories=MEMORIES,
        stage=ONE,
        max_claims=max_claims,
        backfill=backfill,
        upgrade=upgrade,
        retry=retry,
    )


def claimed_ids(store: Store, **options: object) -> list[str]:
    return [c.thread_id for c in claim(store, **options)]  # type: ignore[arg-type]


def try_claim(
    store: Store, thread_id: str, *, at: int = NOW - DAY, max_running: int = 8, stage: StageOne = ONE
) -> object:
    return store.extraction.try_claim(
        thread_id, worker_id="worker", source_updated_at=at, stage=stage, max_running=max_running
    )


def extract(
    store: Store, thread_id: str, *, at: int = NOW - DAY, draft: Stage1Draft | None = DRAFT, engine: str = "offline"
) -> None:
    """Register, claim and finish a thread."""
    save(store, thread(thread_id, updated_at=at))
    taken = try_claim(store, thread_id, at=at)
    assert isinstance(taken, Stage1Claim), taken
    assert store.extraction.finish(taken, draft, engine=engine)


def use(store: Store, *thread_ids: str, at: int = NOW) -> None:
    """A session cites the memory of these threads, in one message that no other says."""
    said = uuid.uuid4().bytes
    store.uses.record("citing", [Use(kind="citation", digest=said, nth=1, at=at, used=thread_ids)])


def forget(store: Store, *threads: Thread) -> None:
    """Forget these threads; no text of others names them."""
    store.forgetting.forget(threads, str, may_change=lambda text: False)


def consolidate(store: Store, clock: FixedClock) -> None:
    """A whole successful run of phase 2, after which its cooldown is over."""
    lock = store.consolidation.claim(worker_id="worker", stage=TWO)
    assert isinstance(lock, ConsolidationClaim), lock
    selection = store.consolidation.select(limit=100, max_unused_days=30)
    assert store.consolidation.succeed(
        lock.ownership_token, watermark=lock.input_watermark, selected=selection.selected
    )
    clock.advance(seconds=TWO.success_cooldown_seconds)


def selected_ids(store: Store, *, limit: int = 100, max_unused_days: int = 30) -> list[str]:
    return [o.thread_id for o in store.consolidation.select(limit=limit, max_unused_days=max_unused_days).selected]


def on_disk_ids(store: Store, *, limit: int = 100, max_unused_days: int = 30) -> list[str]:
    return [o.thread_id for o in store.consolidation.select(limit=limit, max_unused_days=max_unused_days).on_disk]
