"""A home with finished sessions, a loopback model, and a store: what the tests of phase 1 work on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from stillroom.config import Memories, Settings, Source, StageOne
from stillroom.extract.outcome import Phase1Report
from stillroom.extract.register import RegisterReport, register_threads
from stillroom.extract.run import run_phase1
from stillroom.store import Store
from stillroom.testing import FixedClock, LoopbackModel, sample_rollout

NOW_MS = 1_780_400_000_000
STARTED_MS = NOW_MS - 24 * 3600 * 1000
#: Pauses that a test can wait for.
STAGE = StageOne(retry_pause_seconds=0.001, max_retry_pause_seconds=0.01, request_attempts=2)


class Home:
    """Everything under `tmp_path`; `clock` stands a day after the sessions."""

    def __init__(self, tmp_path: Path, *, model: str = "loopback:model", stage: StageOne = STAGE) -> None:
        self.codex = tmp_path / "codex"
        self.clock = FixedClock(NOW_MS)
        memories = Memories(extract_model=model, max_rollouts_per_startup=128, min_rollout_idle_hours=1)
        self.settings = Settings(
            home=tmp_path / "stillroom",
            memories=memories,
            stage_one=stage,
            sources=(Source(format="codex", root=str(self.codex)),),
        )
        self.settings.home.mkdir()
        self.store = Store.open(self.settings.database, clock=self.clock)

    def change(self, **memories: object) -> None:
        """Set keys of `[memories]`."""
        changed = msgspec.structs.replace(self.settings.memories, **memories)
        self.settings = msgspec.structs.replace(self.settings, memories=changed)

    def add(self, number: int = 0, **options: object) -> Path:
        """A session that ended a day ago; a higher number is older."""
        return sample_rollout(self.codex, number=number, started_at_ms=STARTED_MS - number * 60_000, **options)

    def register(self) -> RegisterReport:
        return asyncio.run(register_threads(self.settings, self.store))

    def use(self, server: LoopbackModel, **options: object) -> None:
        """Have the name `loopback:…` mean this server."""
        providers = {"loopback": server.provider(**options)}
        self.settings = msgspec.structs.replace(self.settings, providers=providers)

    def run(self, server: LoopbackModel | None = None, **options: object) -> Phase1Report:
        if server is not None:
            self.use(server)
        self.register()
        return asyncio.run(run_phase1(self.settings, self.store, self.clock, worker_id="worker", **options))


def thread_id(number: int) -> str:
    return f"01900000-0000-7000-8000-{number:012x}"


Check = Callable[[], None]
