"""Leases under any interleaving of workers and any movement of the clock, against a model that is written anew here."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from store_samples import DRAFT, MEMORIES, NOW, ONE, TWO, save, thread

from stillroom.clock import FixedClock
from stillroom.store import (
    ConsolidationClaim,
    Cooldown,
    RetryBackoff,
    RetryExhausted,
    Running,
    Stage1Claim,
    Store,
    UpToDate,
)

THREADS = ("a", "b", "c", "d")
CAP = 2
LEASE = ONE.lease_seconds
DELAY = 1800
thread_ids = st.sampled_from(THREADS)
moves = st.one_of(
    st.integers(1, 2 * LEASE), st.sampled_from([LEASE - 1, LEASE, LEASE + 1, DELAY, TWO.success_cooldown_seconds])
)
jumps = st.one_of(st.integers(-3 * LEASE, -1), st.sampled_from([-LEASE, -2 * LEASE, -(10**8), 10**8]))


@dataclass
class Model:
    """One job, as the spec tells it."""

    token: str | None = None  # of whoever has the job now
    leased: tuple[int, int] = (0, 0)  # made at, until
    retries: int = 3
    paused: tuple[int, int] = (0, 0)  # made at, until
    input: int = -1
    done: int = -1
    cooled: int | None = None  # the last success, if nothing failed since

    def holds(self, promise: tuple[int, int], now: int) -> bool:
        made, until = promise
        return now < until <= now + 2 * (until - made)

    def is_leased(self, now: int) -> bool:
        return self.token is not None and self.holds(self.leased, now)


class Leases(RuleBasedStateMachine):
    """Several workers keep every claim that they were ever given, and use old ones too."""

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FixedClock(NOW * 1000)
        path = Path(self.folder.name) / "state.sqlite3"
        self.stores = [Store.open(path, clock=self.clock) for _ in range(2)]
        self.updated = dict.fromkeys(THREADS, NOW - 86_400)
        save(self.stores[0], *(thread(t) for t in THREADS))
        self.jobs = {t: Model() for t in THREADS}
        self.claims: list[Stage1Claim] = []
        self.lock = Model()
        self.locks: list[str] = []

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.folder.cleanup()

    @rule(seconds=moves)
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @rule(seconds=jumps)
    def the_clock_jumps(self, seconds: int) -> None:
        if self.clock.now() + seconds > NOW // 2:
            self.clock.advance(seconds=seconds)

    @rule(thread_id=thread_ids, seconds=st.integers(1, 100))
    def a_thread_moves_on(self, thread_id: str, seconds: int) -> None:
        self.updated[thread_id] += seconds
        save(self.stores[0], thread(thread_id, updated_at=self.updated[thread_id]))

    def running(self) -> int:
        return sum(job.is_leased(self.clock.now()) for job in self.jobs.values())

    @rule(thread_id=thread_ids, worker=st.integers(0, 1), behind=st.integers(0, 1))
    def a_worker_tries_one(self, thread_id: str, worker: int, behind: int) -> None:
        now, job, watermark = self.clock.now(), self.jobs[thread_id], self.updated[thread_id] - behind
        outcome = self.stores[worker].extraction.try_claim(
            thread_id, worker_id=str(worker), source_updated_at=watermark, stage=ONE, max_running=CAP
        )
        newer = watermark > job.input
        left = 3 if newer else job.retries - (job.token is not None)
        if job.done >= watermark:
            assert outcome == UpToDate()
        elif job.is_leased(now):
            assert outcome == Running()
        elif not newer and (job.retries <= 0 or left <= 0):
            assert outcome == RetryExhausted()
            job.token, job.retries = None, 0
        elif not newer and job.token is None and job.holds(job.paused, now):
            assert outcome == RetryBackoff(job.paused[1])
        elif self.running() >= CAP:
            assert outcome == Running()
        else:
            assert isinstance(outcome, Stage1Claim), outcome
            self.taken(outcome, left, now)

    def taken(self, claim: Stage1Claim, left: int, now: int) -> None:
        job = self.jobs[claim.thread_id]
        job.token, job.leased, job.retries = claim.ownership_token, (now, now + LEASE), left
        job.input, job.paused = claim.source_updated_at, (0, 0)
        self.claims.append(claim)

    @rule(worker=st.integers(0, 1), cap=st.integers(0, 3), backfill=st.booleans())
    def a_worker_claims_what_there_is(self, worker: int, cap: int, backfill: bool) -> None:
        now, before = self.clock.now(), self.running()
        claims = self.stores[worker].extraction.claim(
            worker_id=str(worker),
            current_thread_id="a",
            memories=MEMORIES,
            stage=ONE,
            max_claims=cap,
            backfill=backfill,
        )
        assert len(claims) <= max(cap - before, 0)
        for claim in claims:
            job = self.jobs[claim.thread_id]
            assert claim.thread_id != "a"
            assert claim.source_updated_at == self.updated[claim.thread_id] > job.done
            assert not job.is_leased(now)
            newer = claim.source_updated_at > job.input
            assert newer or not (job.token is None and job.holds(job.paused, now))
            left = 3 if newer else job.retries - (job.token is not None)
            assert left > 0
            self.taken(claim, left, now)
        # Whatever a scan may take off the list on its way, only jobs without a retry are exhausted.
        for thread_id, job in self.jobs.items():
            stored = self.stores[0].extraction.job(thread_id)
            if stored and job.token and stored.status == "error":
                assert not job.is_leased(now)
                assert job.retries == 1
                job.token, job.retries = None, 0

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), worker=st.integers(0, 1), end=st.sampled_from(["output", "nothing", "fail", "beat"]))
    def an_owner_or_a_former_one_comes_back(self, data: st.DataObject, worker: int, end: str) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        store, job, now = self.stores[worker], self.jobs[claim.thread_id], self.clock.now()
        owns = job.token == claim.ownership_token
        match end:
            case "beat":
                alive = owns and now < job.leased[1]
                assert store.extraction.heartbeat(claim, lease_seconds=LEASE) == alive
                if alive:
                    job.leased = (now, now + LEASE)
            case "fail":
                assert store.extraction.fail(claim, reason="x", retry_delay_seconds=DELAY) == owns
                if owns:
                    job.token, job.retries, job.paused = None, job.retries - 1, (now, now + DELAY)
            case _:
                assert store.extraction.finish(claim, DRAFT if end == "output" else None, engine="offline") == owns
                if owns:
                    job.token, job.done, job.paused = None, job.input, (0, 0)

    @precondition(lambda self: any(job.token for job in self.jobs.values()))
    @rule(data=st.data(), late=st.integers(-1, 1))
    def an_owner_sleeps_until_its_lease_ends(self, data: st.DataObject, late: int) -> None:
        owners = [c for c in self.claims if self.jobs[c.thread_id].token == c.ownership_token]
        claim = data.draw(st.sampled_from(owners))
        job = self.jobs[claim.thread_id]
        self.clock.advance(seconds=max(job.leased[1] + late - self.clock.now(), 0))
        alive = self.clock.now() < job.leased[1]
        assert self.stores[0].extraction.heartbeat(claim, lease_seconds=LEASE) == alive
        if alive:
            job.leased = (self.clock.now(), self.clock.now() + LEASE)

    @rule(worker=st.integers(0, 1))
    def a_worker_wants_the_lock(self, worker: int) -> None:
        now, lock = self.clock.now(), self.lock
        outcome = self.stores[worker].consolidation.claim(worker_id=str(worker), stage=TWO)
        cooldown = (lock.cooled, lock.cooled + TWO.success_cooldown_seconds) if lock.cooled is not None else (0, 0)
        if lock.token is None and lock.holds(lock.paused, now):
            assert isinstance(outcome, RetryBackoff) or (outcome != Running() and self.was_lifted())
        elif lock.is_leased(now):
            assert outcome == Running()
        elif lock.token is None and lock.holds(cooldown, now):
            assert outcome == Cooldown(cooldown[1])
        else:
            assert isinstance(outcome, ConsolidationClaim), outcome
        if isinstance(outcome, ConsolidationClaim):
            lock.token, lock.leased, lock.cooled, lock.paused = (
                outcome.ownership_token,
                (now, now + LEASE),
                None,
                (0, 0),
            )
            self.locks.append(outcome.ownership_token)

    def was_lifted(self) -> bool:
        """Whether new extractions lifted the pause; they may while retries are left."""
        return self.lock.retries > 0

    @precondition(lambda self: self.locks)
    @rule(data=st.data(), worker=st.integers(0, 1), end=st.sampled_from(["succeed", "fail", "beat"]))
    def a_holder_or_a_former_one_comes_back(self, data: st.DataObject, worker: int, end: str) -> None:
        token = data.draw(st.sampled_from(self.locks))
        store, lock, now = self.stores[worker], self.lock, self.clock.now()
        owns = lock.token == token
        match end:
            case "beat":
                alive = owns and now < lock.leased[1]
                assert store.consolidation.heartbeat(token, lease_seconds=LEASE) == alive
                if alive:
                    lock.leased = (now, now + LEASE)
            case "fail":
                assert store.consolidation.fail(token, reason="x", retry_delay_seconds=DELAY) == owns
                if owns:
                    lock.token, lock.retries, lock.paused = None, max(lock.retries - 1, 0), (now, now + DELAY)
            case _:
                chosen = store.consolidation.select(limit=3, max_unused_days=30).selected
                assert store.consolidation.succeed(token, watermark=now, selected=chosen) == owns
                if owns:
                    lock.token, lock.retries, lock.paused, lock.cooled = None, 3, (0, 0), now

    @invariant()
    def every_job_has_at_most_one_owner_and_retries_that_are_not_negative(self) -> None:
        for thread_id, model in self.jobs.items():
            job = self.stores[1].extraction.job(thread_id)
            if job is not None:
                assert (job.ownership_token if job.status == "running" else None) == model.token
                assert job.retry_remaining == model.retries >= 0
        lock = self.stores[1].consolidation.job()
        if lock is not None:
            assert (lock.ownership_token if lock.status == "running" else None) == self.lock.token
            assert lock.retry_remaining == self.lock.retries >= 0


TestLeases = Leases.TestCase
TestLeases = pytest.mark.slow(TestLeases)
TestLeases.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
