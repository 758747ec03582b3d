"""A process that claims and finishes threads until all are done: `python store_worker.py DATABASE FOLDER SEED TOTAL`.

While it has a thread it holds a file of that name, which only one process can create.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

from store_samples import DRAFT, MEMORIES, ONE

from stillroom.clock import SystemClock
from stillroom.config import StageTwo
from stillroom.store import ConsolidationClaim, Stage1Claim, Store


def hold(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def main(database: str, folder: str, seed: str, total: str) -> None:
    chance, held = random.Random(seed), Path(folder)
    stage_two = StageTwo(success_cooldown_seconds=0)
    with Store.open(Path(database), clock=SystemClock()) as store:
        claims: list[Stage1Claim] = []
        while claims or len(store.outputs.latest(limit=int(total))) < int(total):
            claims = store.extraction.claim(
                worker_id=seed, current_thread_id=None, memories=MEMORIES, stage=ONE, max_claims=chance.randint(1, 16)
            )
            for claim in claims:
                hold(held / claim.thread_id)
            for claim in claims:
                assert store.extraction.heartbeat(claim, lease_seconds=ONE.lease_seconds)
                (held / claim.thread_id).unlink()
                if chance.random() < 0.02:
                    assert store.extraction.fail(claim, reason="chance", retry_delay_seconds=0)
                else:
                    assert store.extraction.finish(claim, DRAFT, engine="offline")
                    print(claim.thread_id)
            lock = store.consolidation.claim(worker_id=seed, stage=stage_two)
            if isinstance(lock, ConsolidationClaim):
                hold(held / "the-lock")
                selection = store.consolidation.select(limit=20, max_unused_days=30)
                (held / "the-lock").unlink()
                assert store.consolidation.succeed(
                    lock.ownership_token, watermark=lock.input_watermark, selected=selection.selected
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
