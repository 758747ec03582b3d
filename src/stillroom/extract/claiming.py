"""Which threads a pass takes, a round at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from functools import partial

from stillroom.config import Settings
from stillroom.handover import take
from stillroom.store import Store
from stillroom.store.records import Stage1Claim
from stillroom.store.rules.values import most_threads


async def claim_rounds(
    settings: Settings,
    store: Store,
    *,
    worker_id: str,
    current_thread_id: str | None,
    backfill: bool,
    upgrade: bool,
    retry: bool,
    max_threads: int | None,
    cwd: str | None,
    sessions: frozenset[str],
) -> AsyncIterator[list[Stage1Claim]]:
    """Yield rounds of claims, none empty. One round; with `backfill` as many as it takes, of any age; with `upgrade` as
    many, those that were reopened of any age; with `retry` as many of those that failed, of any age, and no others;
    with `sessions` these.

    `max_threads` takes the place of `max_rollouts_per_startup`. A round is only claimed when the last one is done, so
    that no lease waits for hours.
    """
    memories, stage = settings.memories, settings.stage_one
    left = most_threads(memories, take_all=backfill or upgrade or retry or bool(sessions), max_threads=max_threads)
    seen: set[str] = set()

    def release(claims: Iterable[Stage1Claim]) -> None:
        for claim in claims:
            store.extraction.release(claim)

    while left is None or left > 0:
        size = stage.max_claims_per_round if left is None else min(left, stage.max_claims_per_round)
        claim_round = partial(
            store.extraction.claim,
            worker_id=worker_id,
            current_thread_id=current_thread_id,
            memories=memories,
            stage=stage,
            max_claims=size,
            backfill=backfill,
            upgrade=upgrade,
            retry=retry,
            cwd=cwd,
            sessions=sessions,
        )
        claims = await take(claim_round, give_back=release)
        # A thread that comes a second time would come for ever.
        if not claims or seen.issuperset(claim.thread_id for claim in claims):
            await asyncio.to_thread(release, claims)
            return
        seen.update(claim.thread_id for claim in claims)
        left = None if left is None else left - len(claims)
        yield claims
