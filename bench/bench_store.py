"""How fast the store claims: `python bench/bench_store.py [--seconds 60] [--part processes] [--processes 4]`.

1. Claiming two threads among 100,000, in several states of the database (aim: a median of at most 20 ms).
2. Processes that claim up to eight threads, finish them, see them move on, and begin again, for some seconds: jobs a
   second, watermarks that were done twice, lock errors.
3. The same with a plain `sqlite3` loop: the same tables, rows and indexes, but deferred transactions that read before
   they write and Python's own five seconds of patience, as one writes it at first.

2 and 3 take turns in this run. Prints a table, or JSON with `--json`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sqlite3
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import NamedTuple

import msgspec

from stillroom.clock import FixedClock, SystemClock
from stillroom.config import Memories, StageOne
from stillroom.store import Stage1Claim, Stage1Draft, Store
from stillroom.thread import FileStamp, Thread

DRAFT = Stage1Draft(raw_memory="raw " * 500, rollout_summary="summary " * 250, rollout_slug="slug")
STAMP = FileStamp(size=1, mtime_ns=2, offset=3)
HOUR_MS = 3600 * 1000


def thread(number: int, updated_at_ms: int) -> Thread:
    return Thread(
        thread_id=str(uuid.UUID(int=number * 0x9E3779B97F4A7C15F39CC0605CEDC834 % 2**128)),
        agent="codex",
        rollout_path=f"/home/user/.codex/sessions/2026/05/01/rollout-{number}.jsonl",
        source="cli",
        cwd="/home/user/project",
        created_at_ms=1,
        updated_at_ms=updated_at_ms,
        preview="please fix the failing test " * 4,
        title="please fix",
    )


def fill(store: Store, *, threads: int, now_ms: int) -> None:
    """Threads over nine days, all eligible."""
    step_ms = 9 * 24 * HOUR_MS // threads
    store.threads.save([(thread(i, now_ms - 7 * HOUR_MS - i * step_ms), STAMP) for i in range(threads)])


def claim(store: Store, *, max_claims: int = 2, backfill: bool = False) -> list[Stage1Claim]:
    return store.extraction.claim(
        worker_id="worker",
        current_thread_id=None,
        memories=Memories(),
        stage=StageOne(),
        max_claims=max_claims,
        backfill=backfill,
    )


def measure_claims(folder: Path, *, threads: int, rounds: int = 25) -> dict[str, float]:
    """Median milliseconds of one call, by what the database looks like."""
    clock = FixedClock(1_800_000_000_000)
    results: dict[str, float] = {}
    with Store.open(folder / "claims.sqlite3", clock=clock) as store:
        started = time.perf_counter()
        fill(store, threads=threads, now_ms=clock.now_ms())
        results["register all (s, once)"] = time.perf_counter() - started

        def timed(*, backfill: bool = False, finish: bool = True) -> float:
            times = []
            for _ in range(rounds):
                started = time.perf_counter()
                claims = claim(store, backfill=backfill)
                times.append((time.perf_counter() - started) * 1000)
                for one in claims if finish else []:
                    store.extraction.finish(one, DRAFT, engine="offline")
            return statistics.median(times)

        results["claim 2, nothing done yet (ms)"] = timed()
        while done := claim(store, max_claims=128):
            for one in done:
                store.extraction.finish(one, DRAFT, engine="offline")
        results["claim, newest 5,000 all done (ms)"] = timed()
        results["claim 2 of a backfill behind these (ms)"] = timed(backfill=True)
    return results


class Tally(NamedTuple):
    lock_errors: int
    done: list[tuple[str, int]]  # thread and watermark


def work(path: Path, seconds: float, gate: Barrier, answers: Queue[Tally]) -> None:
    """Claim some, finish them, until the time is over."""
    done: list[tuple[str, int]] = []
    with Store.open(path, clock=SystemClock()) as store:
        gate.wait()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for one in claim(store, max_claims=8):  # the cap of all workers together
                assert store.extraction.finish(one, DRAFT, engine="offline")
                done.append((one.thread_id, one.source_updated_at))
                found = store.threads.get(one.thread_id)
                assert found is not None
                moved_on = msgspec.structs.replace(found, updated_at_ms=found.updated_at_ms + 1000)
                store.threads.save([(moved_on, STAMP)])
    answers.put(Tally(lock_errors=0, done=done))


def work_plainly(path: Path, seconds: float, gate: Barrier, answers: Queue[Tally]) -> None:
    """What one writes at first: look, then write, in a deferred transaction."""
    done: list[tuple[str, int]] = []
    lock_errors = 0
    db = sqlite3.connect(path, isolation_level="DEFERRED")
    gate.wait()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            now = int(time.time())
            with db:
                db.execute("BEGIN")
                rows = db.execute(
                    "SELECT t.thread_id, t.updated_at_ms / 1000 FROM threads t"
                    " LEFT JOIN jobs j ON j.kind = 'memory_stage1' AND j.job_key = t.thread_id"
                    " WHERE t.is_eligible = 1"
                    " AND (j.job_key IS NULL OR (j.status = 'running' AND j.lease_until <= ?)"
                    " OR (j.status = 'done' AND j.last_success_watermark < t.updated_at_ms / 1000))"
                    " ORDER BY t.updated_at_ms DESC LIMIT 8",
                    (now,),
                ).fetchall()
                for thread_id, updated_at in rows:
                    db.execute(
                        "INSERT OR REPLACE INTO jobs (kind, job_key, status, ownership_token, started_at, lease_until,"
                        " retry_remaining, input_watermark) VALUES ('memory_stage1', ?, 'running', ?, ?, ?, 3, ?)",
                        (thread_id, str(uuid.uuid4()), now, now + 3600, updated_at),
                    )
        except sqlite3.OperationalError:
            lock_errors += 1
            continue
        for thread_id, updated_at in rows:
            while True:
                try:
                    with db:
                        db.execute(
                            "UPDATE jobs SET status = 'done', last_success_watermark = ? WHERE job_key = ?",
                            (updated_at, thread_id),
                        )
                        db.execute(
                            "INSERT OR REPLACE INTO stage1_outputs (thread_id, source_updated_at, raw_memory,"
                            " rollout_summary, generated_at, engine) VALUES (?, ?, ?, ?, ?, 'offline')",
                            (thread_id, updated_at, DRAFT.raw_memory, DRAFT.rollout_summary, int(time.time())),
                        )
                        db.execute(
                            "UPDATE threads SET updated_at_ms = updated_at_ms + 1000 WHERE thread_id = ?", (thread_id,)
                        )
                    break
                except sqlite3.OperationalError:
                    lock_errors += 1
            done.append((thread_id, updated_at))
    db.close()
    answers.put(Tally(lock_errors=lock_errors, done=done))


def measure_processes(
    path: Path, worker: Callable[[Path, float, Barrier, Queue[Tally]], None], *, seconds: float, processes: int
) -> dict[str, float]:
    spawn = multiprocessing.get_context("spawn")
    gate, answers = spawn.Barrier(processes), spawn.Queue()
    workers = [spawn.Process(target=worker, args=(path, seconds, gate, answers)) for _ in range(processes)]
    for process in workers:
        process.start()
    tallies = [answers.get(timeout=seconds + 120) for _ in workers]
    for process in workers:
        process.join()
    done = [job for tally in tallies for job in tally.done]
    return {
        "jobs/s": round(len(done) / seconds, 1),
        "done twice": len(done) - len(set(done)),
        "lock errors": sum(tally.lock_errors for tally in tallies),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    options.add_argument("--seconds", type=float, default=5.0)
    options.add_argument("--threads", type=int, default=100_000)
    options.add_argument("--processes", type=int, default=4)
    options.add_argument("--turns", type=int, default=2)
    options.add_argument("--peer-seconds", type=float, help="for the plain loop; as long as the store if not given")
    options.add_argument("--part", choices=("claims", "processes"), help="measure only this")
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results: dict[str, dict[str, float]] = {}
        if chosen.part != "processes":
            results["claims"] = measure_claims(folder, threads=chosen.threads)
        clock = SystemClock()
        sides = (
            ("stillroom", work, chosen.seconds),
            ("plain sqlite3", work_plainly, chosen.peer_seconds or chosen.seconds),
        )
        for turn in range(chosen.turns if chosen.part != "claims" else 0):
            for label, worker, seconds in sides:
                path = folder / f"{turn}-{worker.__name__}.sqlite3"
                with Store.open(path, clock=clock) as store:
                    fill(store, threads=1000, now_ms=clock.now_ms())
                results[f"{label}, {seconds:g} s, {chosen.processes} processes, turn {turn + 1}"] = measure_processes(
                    path, worker, seconds=seconds, processes=chosen.processes
                )
    if chosen.json:
        print(json.dumps(results))
        return
    for part, figures in results.items():
        print(part)
        for label, value in figures.items():
            print(f"  {label:<42} {value:>10.1f}")


if __name__ == "__main__":
    main()
