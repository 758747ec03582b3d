"""What runs in a worker: it waits until it may begin, then its seats do jobs until the process that it was forked from
has no more, or has gone."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.errors import StillroomError
from stillroom.extract.engine import open_engine
from stillroom.extract.outcome import ThreadOutcome
from stillroom.extract.thread_job import ExtractThread, extract_thread
from stillroom.models.share import Settled, Share
from stillroom.pausing import paused_since
from stillroom.stopping import Stop
from stillroom.store import Store
from stillroom.store.records import Stage1Claim

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_log = logging.getLogger(__name__)

#: A seat's first word.
READY = "ready"
#: They are for the process that it was forked from, which tells what they mean.
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a seat is to do."""

    claim: Stage1Claim
    #: What the rest of the pass has spent by now, in weighted tokens.
    spent_elsewhere: int


class JobEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How that ended."""

    outcome: ThreadOutcome
    settled: Settled


def run_worker(settings: Settings, clock: Clock, control: Connection, seats: Sequence[Connection]) -> None:
    """All that the process does."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    stops = _Stops()
    try:
        if not _may_begin(control):
            return
        with Store.open(settings.database, clock=clock, limits=settings.database_limits) as store:
            share = Share(
                settings.memories,
                spent_since=store.ledger.spent_since,
                clock=clock,
                paused_since=partial(paused_since, str(settings.home)),
            )
            engine = open_engine(settings, store, clock, allowance=share)
            try:
                extract = partial(extract_thread, settings=settings, store=store, engine=engine)
                threads = [threading.Thread(target=_sit, args=(seat, stops, share, extract)) for seat in seats]
                for thread in threads:
                    thread.start()
                stops.listen(control)
                for thread in threads:
                    thread.join()
            finally:
                engine.close()
    except StillroomError as error:
        _log.warning("a second process can't help with the extraction: %s", error)


def _may_begin(control: Connection) -> bool:
    try:
        control.recv()
    except (EOFError, OSError):  # there was nothing to do
        return False
    return True


def _sit(channel: Connection, stops: _Stops, share: Share, extract: ExtractThread) -> None:
    """Do jobs until there are no more."""
    try:
        channel.send(READY)
        while True:
            job: Job = channel.recv()
            share.spent_elsewhere = job.spent_elsewhere
            outcome = extract(job.claim, stops.of(job.claim))
            channel.send(JobEnd(outcome=outcome, settled=share.settle()))
    except (EOFError, OSError):
        return


class _Stops:
    """The jobs at hand, which the other process may stop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  #: of the fields below
        #: By ownership token: the order to stop may come ahead of the claim.
        self._stops: dict[str, Stop] = {}
        self._ended = False

    def of(self, claim: Stage1Claim) -> Stop:
        return self._of(claim.ownership_token)

    def listen(self, control: Connection) -> None:
        """Stop what is to be stopped, and everything at the end."""
        try:
            while True:
                self._of(control.recv()).ask()
        except (EOFError, OSError):
            pass
        with self._lock:
            self._ended = True
            stops = list(self._stops.values())
        for stop in stops:
            stop.ask()

    def _of(self, token: str) -> Stop:
        with self._lock:
            stop = self._stops.setdefault(token, Stop())
            ended = self._ended
        if ended:
            stop.ask()
        return stop
