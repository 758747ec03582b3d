"""The leases of the threads at hand: renewed while the work goes on, handed back when it is stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Self

from stillroom.config import StageOne
from stillroom.errors import StoreError
from stillroom.stopping import Stop
from stillroom.store import Store
from stillroom.store.records import Stage1Claim

_log = logging.getLogger(__name__)


class Leases:
    """All claims of one phase 1, waiting ones too: a long queue must not lose its end to another process."""

    def __init__(self, store: Store, stage: StageOne, claims: Iterable[Stage1Claim]) -> None:
        self._store = store
        self._stage = stage
        self._open = {claim.thread_id: claim for claim in claims}
        self._stops = {thread_id: Stop() for thread_id in self._open}

    def stop_of(self, claim: Stage1Claim) -> Stop:
        """Stops the job when its lease is lost, or all jobs are stopped."""
        return self._stops[claim.thread_id]

    def done(self, claim: Stage1Claim) -> None:
        """The job has its end in the store. Any thread."""
        self._open.pop(claim.thread_id, None)

    def stop_all(self) -> None:
        """Those that are at work end at once, the others do not begin."""
        for stop in self._stops.values():
            stop.ask()

    async def keep(self) -> None:
        """Renew until cancelled."""
        while True:
            await asyncio.sleep(self._stage.heartbeat_seconds)
            for claim in tuple(self._open.values()):
                if not await self._renew(claim):
                    self.done(claim)
                    self.stop_of(claim).ask()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._hand_back()

    def _hand_back(self) -> None:
        """Give up what is still open, because somebody stopped us: it may be claimed again at once, and no retry is
        spent. Blocking: a cancelled task can't wait."""
        for claim in self._open.values():
            try:
                self._store.extraction.release(claim)
            except StoreError as error:
                # Then the lease runs out by itself, at the price of a retry.
                _log.warning("thread %s could not be handed back: %s", claim.thread_id, error)

    async def _renew(self, claim: Stage1Claim) -> bool:
        try:
            return await asyncio.to_thread(
                self._store.extraction.heartbeat, claim, lease_seconds=self._stage.lease_seconds
            )
        except StoreError as error:
            # A database that is busy now is tried at the next beat; the lease is long enough for many.
            _log.warning("the lease of thread %s could not be renewed: %s", claim.thread_id, error)
            return True
