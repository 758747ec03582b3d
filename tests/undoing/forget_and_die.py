"""Forgets a session and dies, as by `kill -9`, at the checkpoint that it is told: `HOME CODEX THREAD NOW_MS N`."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

from stillroom.clock import FixedClock
from stillroom.config import Settings, Source
from stillroom.store import Store
from stillroom.undoing.alone import alone
from stillroom.undoing.choosing import Choice
from stillroom.undoing.forgetting import forget
from stillroom.undoing.planning import plan_forgetting


def main() -> None:
    home, codex, thread_id, now_ms, last = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])
    settings = Settings(home=home, sources=(Source(format="codex", root=codex),))
    clock = FixedClock(int(now_ms))
    counter = itertools.count(1)

    def checkpoint(name: str) -> None:
        number = next(counter)
        print(f"{number} {name}", flush=True)
        if number == last:
            os._exit(9)

    with alone(home), Store.open(settings.database, clock=clock) as store:
        plan = plan_forgetting(settings, store, Choice(threads=(thread_id,)), now=clock.now())
        done = forget(settings, store, plan, checkpoint=checkpoint)
    print("complete" if done.is_complete else done.left, flush=True)


main()
