"""Phase 1 against a model that answers at once, in another process: `python bench/bench_extract.py`.

Prints, for each load, medians of five runs: the whole process (start, imports, scan, claims, extraction, exit), its CPU
time, and the time from the first request at the server to the last job in the database.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

LOADS = ((50, 61_000), (128, 61_000), (50, 560_000))
SOURCE = str(Path(__file__).resolve().parents[1] / "src")
STARTED_MS = 1_780_000_000_000
NOW_MS = STARTED_MS + 24 * 3600 * 1000
TIMEOUT_SECONDS = 120


class Run(NamedTuple):
    wall: float
    cpu: float
    first_request_to_last_job: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--engine", default="loopback:model", help="`offline` measures the rules instead")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        asyncio.run(extract(options.inside, engine=options.engine))
        return
    for count, size in LOADS:
        runs = [measure(count, size, engine=options.engine) for _ in range(options.runs)]
        wall, cpu, jobs = (statistics.median(values) for values in zip(*runs, strict=True))
        low, high = min(run.wall for run in runs), max(run.wall for run in runs)
        print(
            f"{count} x {size // 1000} kB: process {wall:.2f} s [{low:.2f}-{high:.2f}], CPU {cpu:.2f} s,"
            f" first request to last job {jobs:.2f} s",
            flush=True,
        )


def measure(count: int, size: int, *, engine: str) -> Run:
    with tempfile.TemporaryDirectory() as name, serve() as server:
        folder = Path(name)
        make_home(folder, count=count, size=size, base_url=server.base_url)
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(
            [sys.executable, __file__, "--inside", str(folder), "--engine", engine],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=TIMEOUT_SECONDS,
            env={**os.environ, "PYTHONPATH": SOURCE},
        )
        wall = time.monotonic() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        extracted, last_job = done.stdout.split()
        assert int(extracted) == count, f"{extracted} of {count} extracted"
        times = server.stop()
        first = times[0] if times else started
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall=wall, cpu=cpu, first_request_to_last_job=float(last_job) - first)


class Server:
    """The loopback model in its own process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.base_url = process.stdout.readline().strip()

    def stop(self) -> list[float]:
        """When its requests came (CLOCK_MONOTONIC)."""
        out, _ = self._process.communicate(timeout=TIMEOUT_SECONDS)
        return [float(line) for line in out.split()]


@contextmanager
def serve() -> Iterator[Server]:
    process = subprocess.Popen(
        [sys.executable, "-m", "stillroom.testing", "--times"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    try:
        yield Server(process)
    finally:
        process.kill()
        process.wait()


def make_home(folder: Path, *, count: int, size: int, base_url: str) -> None:
    from stillroom.testing import sample_rollout

    for number in range(count):
        sample_rollout(folder / "codex", size_bytes=size, number=number, started_at_ms=STARTED_MS - number * 1000)
    (folder / "home").mkdir()
    (folder / "home" / "config.toml").write_text(
        f'[providers.loopback]\nkind = "openai-responses"\nbase_url = "{base_url}"\n'
        f'[[sources]]\nformat = "codex"\nroot = "{folder / "codex"}"\n'
        "[memories]\ndefault_sources = false\nmax_rollouts_per_startup = 128\n",
        encoding="utf-8",
    )


async def extract(folder: Path, *, engine: str) -> None:
    """What the measured process does: the scan and phase 1 of a pass."""
    import msgspec

    from stillroom.clock import FixedClock
    from stillroom.config import load_settings
    from stillroom.extract.register import register_threads
    from stillroom.extract.run import run_phase1
    from stillroom.store import Store

    settings = load_settings(home=folder / "home")
    memories = msgspec.structs.replace(settings.memories, extract_model=engine)
    settings = msgspec.structs.replace(settings, memories=memories)
    clock = FixedClock(NOW_MS)
    with Store.open(settings.database, clock=clock) as store:
        await register_threads(settings, store)
        report = await run_phase1(settings, store, clock, worker_id="bench")
        print(report.with_output if engine != "offline" else report.claimed - report.failed, time.monotonic())


if __name__ == "__main__":
    if "--inside" not in sys.argv:
        sys.path.insert(0, SOURCE)
    main()
