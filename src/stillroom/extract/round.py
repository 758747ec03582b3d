"""The claims of one round: several threads take from them until none is left."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from stillroom.config import Settings
from stillroom.extract.engine import Engine
from stillroom.extract.leases import Leases
from stillroom.extract.outcome import Capped, Failed, LostLease, ThreadOutcome
from stillroom.extract.thread_job import ExtractThread, extract_thread, hand_back, refuse
from stillroom.pausing import paused_since, told_pause
from stillroom.store import Store
from stillroom.store.records import Stage1Claim

#: Between an end and when it is told: an event loop that wakes takes the interpreter from the threads that work.
_TELL_SECONDS = 0.05


class Round:
    """Some claims, under leases that the event loop keeps."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        claims: Iterable[Stage1Claim],
        leases: Leases,
        *,
        on_outcome: Callable[[ThreadOutcome], None],
    ) -> None:
        """`on_outcome` is called in the event loop, soon after each thread ends."""
        self._settings = settings
        self._store = store
        self._left = deque(claims)  #: all threads take from it
        self._leases = leases
        self._on_outcome = on_outcome
        self._untold: deque[ThreadOutcome] = deque()
        self._is_to_tell = False
        self._loop = asyncio.get_running_loop()
        #: Why no more of them is begun.
        self._capped: str | None = None
        #: Why none of them is asked about any more.
        self._refused: str | None = None

    async def run(self, engine: Engine) -> None:
        """Extract all of them, `extract_concurrency` at a time.

        Cancelling it stops what is at work, which is handed back with its leases.
        """
        at_once = min(max(self._settings.memories.extract_concurrency, 1), len(self._left))
        extract = partial(extract_thread, settings=self._settings, store=self._store, engine=engine)
        pool = ThreadPoolExecutor(at_once, thread_name_prefix="extract")
        try:
            async with asyncio.TaskGroup() as group:
                beat = group.create_task(self._leases.keep())
                threads = [self._loop.run_in_executor(pool, self._work, extract) for _ in range(at_once)]
                try:
                    await asyncio.wait(threads)
                except asyncio.CancelledError:
                    self._leases.stop_all()
                    await asyncio.wait(threads)
                    raise
                beat.cancel()
                await asyncio.gather(*threads)
        finally:
            self._tell()
            pool.shutdown(wait=False)  # they are done, and the event loop must not wait until their threads have ended

    def _work(self, extract: ExtractThread) -> None:
        while (claim := self._next()) is not None:
            if (reason := self._capped or self._paused()) is not None:  # not even read: a long session takes seconds
                self._end(claim, hand_back(claim, reason, store=self._store))
                continue
            if (reason := self._refused) is not None:
                stop = self._leases.stop_of(claim)
                self._end(claim, refuse(claim, stop, reason, settings=self._settings, store=self._store))
                continue
            self._end(claim, extract(claim, self._leases.stop_of(claim)))

    def _next(self) -> Stage1Claim | None:
        try:
            return self._left.popleft()
        except IndexError:
            return None

    def _paused(self) -> str | None:
        since = paused_since(str(self._settings.home))
        return told_pause(since) if since else None

    def _end(self, claim: Stage1Claim, outcome: ThreadOutcome) -> None:
        if isinstance(outcome, Capped) and self._capped is None:
            self._capped = outcome.reason
        if isinstance(outcome, Failed) and outcome.refused and self._refused is None:
            self._refused = outcome.reason
        if not isinstance(outcome, LostLease):  # whether stopped or lost: what is still ours is handed back at the end
            self._leases.done(claim)
        self._untold.append(outcome)
        if not self._is_to_tell:
            self._is_to_tell = True
            self._loop.call_soon_threadsafe(self._loop.call_later, _TELL_SECONDS, self._tell)

    def _tell(self) -> None:
        self._is_to_tell = False  # ahead of the look: what ends meanwhile asks anew
        while self._untold:
            self._on_outcome(self._untold.popleft())
