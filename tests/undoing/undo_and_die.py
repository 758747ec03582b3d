"""Undoes the last consolidation and dies, as by `kill -9`, at the checkpoint that it is told: `HOME CODEX NOW_MS N`."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

from stillroom.clock import FixedClock
from stillroom.config import Settings, Source
from stillroom.store import Store
from stillroom.undoing.alone import alone
from stillroom.undoing.undo import plan_undo, undo
from stillroom.undoing.versions import open_history


def main() -> None:
    home, codex, now_ms, last = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    settings = Settings(home=home, sources=(Source(format="codex", root=codex),))
    clock = FixedClock(int(now_ms))
    counter = itertools.count(1)

    def checkpoint(name: str) -> None:
        number = next(counter)
        print(f"{number} {name}", flush=True)
        if number == last:
            os._exit(9)

    with alone(home), Store.open(settings.database, clock=clock) as store:
        history = open_history(settings)
        plan = plan_undo(settings, history, None, now=clock.now())
        undo(settings, store, plan, checkpoint=checkpoint)
    print("undone", flush=True)


main()
