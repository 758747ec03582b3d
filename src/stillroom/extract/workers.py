"""Other processes that extract too: Python runs one thread at a time in each.

They are forked while this process has no other thread, which is when forking is safe, and wait. A pass that has enough
to do lets them begin. A worker has some seats, each a thread that does one job at a time: a claim goes in over a
channel of its own, and how the job ended comes back. Leases stay with this process. A worker ends when the process that
it was forked from does, however that ends.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.extract.outcome import LostLease, ThreadOutcome
from stillroom.extract.worker import READY, Job, JobEnd, run_worker
from stillroom.models import Allowance, needs_sdk
from stillroom.models.share import Settled
from stillroom.stopping import Stop, Stopped
from stillroom.store.records import Stage1Claim

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

_log = logging.getLogger(__name__)

#: A worker loads the engine anew, which takes as long as some jobs.
LEAST_JOBS = 16
_END_SECONDS = 5.0
#: Between two looks whether there is still something to wait for.
_POLL_SECONDS = 0.01


class WorkerGone(Exception):
    """The process has ended, and nobody knows how far the job was."""


class Seat:
    """One thread of a worker. Used by one thread of this process."""

    def __init__(self, channel: Connection, worker: Worker) -> None:
        self._channel = channel
        self._worker = worker
        self._is_ready = False

    def wait(self, *, while_there: Callable[[], bool]) -> bool:
        """Wait until the worker has its engine; False if it can't have it, or there is nothing more to do for it."""
        try:
            while not self._is_ready and while_there():
                if self._channel.poll(_POLL_SECONDS):
                    self._is_ready = self._channel.recv() == READY
        except (EOFError, OSError):
            return False
        return self._is_ready

    def extract(self, claim: Stage1Claim, stop: Stop, *, allowance: Allowance) -> ThreadOutcome:
        """Have the job done there. Raises `WorkerGone`."""
        worker = self._worker
        try:
            with stop.waking(lambda: worker.stop(claim)):
                self._channel.send(Job(claim=claim, spent_elsewhere=allowance.run_tokens() - worker.run_tokens))
                end: JobEnd = self._channel.recv()
        except Stopped:
            return LostLease(thread_id=claim.thread_id)
        except (EOFError, OSError) as error:
            raise WorkerGone from error
        worker.settle(end.settled, allowance)
        return end.outcome

    def close(self) -> None:
        self._channel.close()


class Worker:
    """A process that waits until it may begin."""

    def __init__(self, process: ForkProcess, control: Connection, channels: Sequence[Connection]) -> None:
        self.seats = [Seat(channel, self) for channel in channels]
        self.has_begun = False
        #: What it has spent, in weighted tokens, as it last told.
        self.run_tokens = 0
        self._process = process
        self._control = control
        self._lock = threading.Lock()  #: of the control channel

    def begin(self) -> None:
        """Let it open its engine."""
        if not self.has_begun:
            self.has_begun = True
            self._tell("begin")

    def stop(self, claim: Stage1Claim) -> None:
        """Stop this job. Any thread."""
        self._tell(claim.ownership_token)

    def settle(self, settled: Settled, allowance: Allowance) -> None:
        """Count what it has spent."""
        for phase, usage in settled.charges:
            allowance.charge(phase, usage)
        self.run_tokens = settled.run_tokens
        allowance.refused = allowance.refused or settled.refused

    def end(self) -> None:
        """Let it stop what it does, and go."""
        with self._lock:
            self._control.close()
        for seat in self.seats:
            seat.close()

    def wait(self) -> None:
        """Until it has ended."""
        self._process.join(_END_SECONDS)
        if self._process.exitcode is None:
            _log.warning("process %s did not end within %s s and was killed", self._process.pid, _END_SECONDS)
            self._process.kill()
            self._process.join()

    def _tell(self, word: str) -> None:
        with self._lock:
            try:
                self._control.send(word)
            except OSError:  # it has gone, as its seats will tell
                pass


def begin_for(jobs: int, workers: Sequence[Worker]) -> None:
    """Let them begin, if there are enough jobs, or are likely to be; again is fine."""
    if jobs >= LEAST_JOBS:
        for worker in workers:
            worker.begin()


def seats_of(workers: Sequence[Worker]) -> list[Seat]:
    """The seats of those that have begun."""
    return [seat for worker in workers if worker.has_begun for seat in worker.seats]


@contextmanager
def fork_workers(settings: Settings, clock: Clock, *, most_jobs: int | None) -> Iterator[list[Worker]]:
    """All but one of `extract_processes`, forked while there is one thread; they are gone after the block.

    None for a pass of a few jobs (`most_jobs`; None: any number) or a model that needs an SDK, and none where forking
    is not safe: macOS's own libraries don't stand it.
    """
    count = _count(settings, most_jobs)
    seats = settings.memories.extract_concurrency // (count + 1)
    workers: list[Worker] = []
    try:
        for _ in range(count):
            workers.append(_fork(settings, clock, seats=seats, before=workers))
        yield workers
    finally:
        for worker in workers:
            worker.end()
        for worker in workers:
            worker.wait()


def _count(settings: Settings, most_jobs: int | None) -> int:
    if sys.platform != "linux" or threading.active_count() > 1:
        return 0
    if most_jobs is not None and most_jobs < LEAST_JOBS:
        return 0
    memories = settings.memories
    if needs_sdk(memories.extract_model, settings):  # it waits for the network, and takes long to import
        return 0
    processes = memories.extract_processes or len(os.sched_getaffinity(0))
    return min(processes, memories.extract_concurrency) - 1


def _fork(settings: Settings, clock: Clock, *, seats: int, before: Sequence[Worker]) -> Worker:
    from multiprocessing import get_context  # what a hook's pass has no need of

    context = get_context("fork")
    control, far_control = context.Pipe()
    pairs = [context.Pipe() for _ in range(seats)]
    near, far = [pair[0] for pair in pairs], [pair[1] for pair in pairs]

    def run() -> None:
        for connection in (control, *near):  # or it would never see their end
            connection.close()
        for worker in before:
            worker.end()
        run_worker(settings, clock, far_control, far)

    process = context.Process(target=run, daemon=True)
    process.start()
    for connection in (far_control, *far):
        connection.close()
    return Worker(process, control, near)
