"""How fast ledgers charge: `python bench/bench_budget.py [--seconds 2]`.

1. `RolloutBudget.record_usage` on one core, and from eight threads at once (aim: 500,000 a second; with eight threads
   at most 1.5 times slower). Beside it the same sum by hand, with a lock and nothing else.
2. `SharedBudget.record_usage` from four processes on one database (aim: 3,000 a second, none lost). Beside it a plain
   `sqlite3` loop that adds to one row: in a transaction as ours, and as one writes it at first, read and then write.

Both sides take turns. Prints a table, or JSON with `--json`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import NamedTuple

from stillroom.budget import RolloutBudget, RolloutBudgetConfig
from stillroom.spending import Usage
from stillroom.store.budgets import SharedBudget

CONFIG = RolloutBudgetConfig(limit_tokens=10**12, reminder_at_remaining_tokens=(500_000, 65_536))
USAGE = Usage(input_tokens=6000, cached_input_tokens=4000, output_tokens=150, reasoning_tokens=20)
CHARGE = 2150
THREADS = 8
PROCESSES = 4
CALLS = 200_000
TURNS = 7


class ByHand:
    """The sum, a lock, and nothing else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.used = 0.0

    def record_usage(self, thread_id: str, usage: Usage) -> bool:
        charge = usage.output_tokens * 1.0 + max(usage.input_tokens - max(usage.cached_input_tokens, 0), 0) * 1.0
        with self._lock:
            self.used += charge
            return self.used >= 10**12


def per_second(record: Callable[[str, Usage], object], *, threads: int) -> float:
    """Calls a second of processor time, so that what else the machine does counts little."""

    def work(name: str) -> None:
        for _ in range(CALLS // threads):
            record(name, USAGE)

    workers = [threading.Thread(target=work, args=(f"thread-{number}",)) for number in range(threads)]
    started = time.process_time()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return CALLS / (time.process_time() - started)


def measure_threads() -> dict[str, float]:
    ours: dict[int, list[float]] = {1: [], THREADS: []}
    by_hand: list[float] = []
    for _ in range(TURNS):
        for threads, rates in ours.items():
            budget = RolloutBudget(CONFIG)
            rates.append(per_second(budget.record_usage, threads=threads))
            assert budget.status().used == CALLS * CHARGE
        by_hand.append(per_second(ByHand().record_usage, threads=1))
    one, eight = statistics.median(ours[1]), statistics.median(ours[THREADS])
    return {
        "one thread (calls/s)": one,
        f"{THREADS} threads together (calls/s)": eight,
        "times slower with 8": one / eight,
        "a sum by hand, one thread (calls/s)": statistics.median(by_hand),
    }


class Tally(NamedTuple):
    charges: int
    errors: int


def charge_shared(path: Path, seconds: float, gate: Barrier, answers: Queue[Tally]) -> None:
    name = multiprocessing.current_process().name
    charges = 0
    with SharedBudget.attach(path, tree_id="tree") as budget:
        gate.wait()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            budget.record_usage(name, USAGE)
            charges += 1
    answers.put(Tally(charges, 0))


def charge_plainly(path: Path, seconds: float, gate: Barrier, answers: Queue[Tally]) -> None:
    """One row, one statement, one transaction."""
    charges = errors = 0
    db = sqlite3.connect(path, isolation_level=None, timeout=30)
    db.execute("PRAGMA synchronous = NORMAL")
    gate.wait()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE ledger SET used = used + ?", (CHARGE,))
        db.execute("COMMIT")
        charges += 1
    db.close()
    answers.put(Tally(charges, errors))


def charge_naively(path: Path, seconds: float, gate: Barrier, answers: Queue[Tally]) -> None:
    """Read, add, write, as one writes it at first."""
    charges = errors = 0
    db = sqlite3.connect(path)
    gate.wait()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            (used,) = db.execute("SELECT used FROM ledger").fetchone()
            db.execute("UPDATE ledger SET used = ?", (used + CHARGE,))
            db.commit()
            charges += 1
        except sqlite3.OperationalError:
            errors += 1
            db.rollback()
    db.close()
    answers.put(Tally(charges, errors))


def measure_processes(path: Path, worker: Callable[..., None], *, seconds: float) -> Tally:
    spawn = multiprocessing.get_context("spawn")
    gate, answers = spawn.Barrier(PROCESSES), spawn.Queue()
    workers = [spawn.Process(target=worker, args=(path, seconds, gate, answers)) for _ in range(PROCESSES)]
    for process in workers:
        process.start()
    tallies: list[Tally] = [answers.get(timeout=seconds + 120) for _ in workers]
    for process in workers:
        process.join()
    return Tally(sum(tally.charges for tally in tallies), sum(tally.errors for tally in tallies))


def ours(path: Path, seconds: float) -> dict[str, float]:
    with SharedBudget.open(path, CONFIG, tree_id="tree") as budget:
        tally = measure_processes(path, charge_shared, seconds=seconds)
        used = budget.status().used
    return {"charges/s": tally.charges / seconds, "lost": tally.charges - used / CHARGE, "lock errors": tally.errors}


def theirs(path: Path, seconds: float, worker: Callable[..., None]) -> dict[str, float]:
    db = sqlite3.connect(path)
    db.executescript("PRAGMA journal_mode = WAL; CREATE TABLE ledger (used INTEGER); INSERT INTO ledger VALUES (0);")
    tally = measure_processes(path, worker, seconds=seconds)
    (used,) = db.execute("SELECT used FROM ledger").fetchone()
    db.close()
    return {"charges/s": tally.charges / seconds, "lost": tally.charges - used / CHARGE, "lock errors": tally.errors}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    options.add_argument("--seconds", type=float, default=2.0)
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    results = {"in one process": measure_threads()}
    with tempfile.TemporaryDirectory() as name:
        for turn in range(1, chosen.turns + 1):
            folder = Path(name, str(turn))
            folder.mkdir()
            results[f"{PROCESSES} processes, ours, turn {turn}"] = ours(folder / "state.sqlite3", chosen.seconds)
            for label, worker in (("one UPDATE", charge_plainly), ("read, then write", charge_naively)):
                results[f"{PROCESSES} processes, plain sqlite3, {label}, turn {turn}"] = theirs(
                    folder / f"{worker.__name__}.sqlite3", chosen.seconds, worker
                )
    if chosen.json:
        print(json.dumps(results))
        return
    for part, figures in results.items():
        print(part)
        for label, value in figures.items():
            print(f"  {label:<42} {value:>12,.1f}")


if __name__ == "__main__":
    main()
