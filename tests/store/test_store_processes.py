"""Eight processes on one database."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from store_samples import HOUR, save, thread

from stillroom.clock import SystemClock
from stillroom.store import Store

TOTAL = 400
PROCESSES = 8


@pytest.mark.slow
def test_eight_processes_do_every_thread_once_and_never_meet_a_lock(tmp_path: Path) -> None:
    """No thread is run by two at a time, the global lock has one holder, and nobody gets "database is locked"."""
    database, held = tmp_path / "state.sqlite3", tmp_path / "held"
    held.mkdir()
    clock = SystemClock()
    with Store.open(database, clock=clock) as store:
        save(store, *(thread(f"t{i:03}", updated_at=clock.now() - 8 * HOUR - i) for i in range(TOTAL)))
        workers = [
            subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).with_name("store_worker.py")),
                    str(database),
                    str(held),
                    seed,
                    str(TOTAL),
                ],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]},
            )
            for seed in map(str, range(PROCESSES))
        ]
        answers = [worker.communicate(timeout=100) for worker in workers]
        assert [(worker.returncode, errors) for worker, (_, errors) in zip(workers, answers, strict=True)] == [
            (0, "")
        ] * PROCESSES
        done = [line for output, _ in answers for line in output.splitlines()]
        assert sorted(done) == [f"t{i:03}" for i in range(TOTAL)]
        assert list(held.iterdir()) == []
        assert {(job := store.extraction.job(t)) and job.status for t in done} == {"done"}
