"""Runs one consolidation and dies, as by `kill -9`, at the checkpoint that it is told: `kill_at.py HOME CODEX N`."""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
from pathlib import Path

from stillroom.clock import FixedClock
from stillroom.config import Settings, Source
from stillroom.consolidate.run import run_phase2
from stillroom.store import Store


def main() -> None:
    home, codex, last = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    settings = Settings(home=home, sources=(Source(format="codex", root=codex),))
    clock = FixedClock(int(sys.argv[4]))
    counter = itertools.count(1)

    def checkpoint(name: str) -> None:
        number = next(counter)
        print(f"{number} {name}", flush=True)
        if number == last:
            os._exit(9)

    with Store.open(settings.database, clock=clock) as store:
        report = asyncio.run(run_phase2(settings, store, clock, worker_id="killed", checkpoint=checkpoint))
    print(report.status, flush=True)


main()
