"""How long `stillroom status` takes among 20,000 threads: `python bench/bench_status.py [--threads 20000]`.

The function, the whole process, and beside them a process that only imports SQLite and counts the rows.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.bench_store import DRAFT, HOUR_MS, fill
from stillroom.clock import SystemClock
from stillroom.config import Memories, Settings, StageOne
from stillroom.insight.status import read_status
from stillroom.store import Store

COUNT = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM threads').fetchone())"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        result = measure(Settings(home=Path(place)), threads=asked.threads, turns=asked.turns)
    if asked.json:
        print(json.dumps(result))
        return
    print(f"| {asked.threads:,} threads | median | CPU |\n|---|---|---|")
    for name, (wall, cpu) in result.items():
        print(f"| {name} | {wall * 1000:.0f} ms | {cpu * 1000:.0f} ms |")


def measure(settings: Settings, *, threads: int, turns: int) -> dict[str, tuple[float, float]]:
    """Seconds on the clock and of CPU, medians."""
    clock = SystemClock()
    with Store.open(settings.database, clock=clock) as store:
        fill(store, threads=threads, now_ms=clock.now_ms() - HOUR_MS)
        extract_some(store, 500)
        inside = timed(lambda: read_status(settings, store, clock), turns, resource.RUSAGE_SELF)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ours = [sys.executable, "-m", "stillroom", "status", "--home", str(settings.home)]
    plain = [sys.executable, "-c", COUNT, str(settings.database)]

    def run(command: list[str]) -> Callable[[], object]:
        return lambda: subprocess.run(command, env=environ, check=True, capture_output=True, timeout=60)

    return {
        "`read_status`": inside,
        "`stillroom status`, the whole process": timed(run(ours), turns, resource.RUSAGE_CHILDREN),
        "Python that counts the rows": timed(run(plain), turns, resource.RUSAGE_CHILDREN),
    }


def extract_some(store: Store, count: int) -> None:
    claims = store.extraction.claim(
        worker_id="w",
        current_thread_id=None,
        memories=Memories(),
        stage=StageOne(),
        max_claims=count,
    )
    for claim in claims:
        store.extraction.finish(claim, DRAFT, engine="offline")


def timed(work: Callable[[], object], turns: int, who: int) -> tuple[float, float]:
    walls, cpus = [], []
    for _ in range(turns):
        before, started = resource.getrusage(who), time.perf_counter()
        work()
        walls.append(time.perf_counter() - started)
        after = resource.getrusage(who)
        cpus.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(walls), statistics.median(cpus)


if __name__ == "__main__":
    main()
