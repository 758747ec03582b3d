"""A throw-away home in which an engine distils sessions as `stillroom run` does, and a session is given the memory.

Nothing outside of its folder is written, and of the person's home only the table of providers is used.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from stillroom.clock import FixedClock
from stillroom.config import Memories, Provider, Settings, Source
from stillroom.consolidate.outcome import Failed
from stillroom.errors import StillroomError
from stillroom.evaluate.scenario import Scenario, write_rollout
from stillroom.forecast import Forecast
from stillroom.pipeline import Options, PipelineReport, run_pipeline
from stillroom.progress import ProgressListener, silent
from stillroom.recall.fulltext.ranked import RankedSearch
from stillroom.recall.injection.instructions import Nothing, instructions
from stillroom.store import Store
from stillroom.store.records import Stage1Output
from stillroom.undoing.alone import alone
from stillroom.undoing.choosing import Choice
from stillroom.undoing.forgetting import Forgotten, forget
from stillroom.undoing.planning import plan_forgetting
from stillroom.undoing.residue import residue

#: No set is so large: what is measured is not who was left out for want of room.
_MOST_MEMORIES = 4096
#: After the last word of the newest session: every one of them counts as finished.
_LATER_MS = 24 * 3600 * 1000


class TrialError(StillroomError):
    """A pass in the throw-away home did not work, so that there is nothing to measure."""


class Trial:
    """One engine at work in a home of its own under `folder`: `offline`, a model for both phases, or
    `MODEL+offline`, where the second phase is another one's.
    """

    def __init__(self, folder: Path, *, engine: str, providers: Mapping[str, Provider] | None = None) -> None:
        self._sessions = folder / "codex"
        extract, _, consolidate = engine.rpartition("+") if "+" in engine else (engine, "", engine)
        memories = Memories(
            default_sources=False,
            extract_model=extract,
            consolidation_model=consolidate,
            max_unused_days=365,
            max_raw_memories_for_consolidation=_MOST_MEMORIES,
        )
        self.settings = Settings(
            home=folder / "home",
            memories=memories,
            providers=dict(providers or {}),
            sources=(Source(format="codex", root=str(self._sessions)),),
        )
        self._newest_ms = 0
        self.seconds = 0.0
        self.failed = 0  #: sessions whose extraction failed
        self._rounds = 0

    def add(self, scenario: Scenario) -> Path:
        """Write a session where the engine finds it."""
        ended_ms = int(scenario.started.timestamp() * 1000) + len(scenario.blocks) * 15_000
        self._newest_ms = max(self._newest_ms, ended_ms)
        return write_rollout(scenario, self._sessions)

    def forecast(self) -> Forecast | None:
        """What the next `run` would cost. Nothing is sent or changed."""
        return self._pass(Options(backfill=True, dry_run=True), silent).forecast

    def run(self, *, on_progress: ProgressListener = silent) -> None:
        """Distil all that was added, a day after its end. Raises `TrialError` for a pass that fails."""
        started = time.perf_counter()
        self._rounds += 1
        report = self._pass(Options(backfill=True, agreed=True), on_progress)
        self.seconds += time.perf_counter() - started
        if report.skipped or report.stopped:
            stopped = report.stopped.reason if report.stopped else ""
            raise TrialError(f"the pass did not run: {stopped or report.detail or report.skipped}")
        if isinstance(report.consolidate, Failed):
            raise TrialError(f"the consolidation failed: {report.consolidate.reason}")
        self.failed += report.extract.failed if report.extract else 0

    def _pass(self, options: Options, on_progress: ProgressListener) -> PipelineReport:
        return asyncio.run(run_pipeline(self.settings, options=options, clock=self.clock, on_progress=on_progress))

    @property
    def clock(self) -> FixedClock:
        """A day after the newest session, and an hour more with each pass."""
        return FixedClock(self._newest_ms + _LATER_MS + self._rounds * 3_600_000)

    @contextmanager
    def _store(self) -> Iterator[Store]:
        with Store.open(self.settings.database, clock=self.clock, limits=self.settings.database_limits) as store:
            yield store

    def outputs(self) -> dict[str, Stage1Output]:
        """What is stored of each session that gave anything."""
        with self._store() as store:
            found = [store.outputs.get(stamp.thread_id) for stamp in store.outputs.stamps()]
        return {output.thread_id: output for output in found if output}

    def spent(self) -> tuple[int, float | None]:
        """Weighted tokens, and US dollars where every price is known."""
        with self._store() as store:
            totals = list(store.ledger.spending())
        tokens = sum(total.usage.weighted_tokens for total in totals)
        known = not any(total.unpriced_calls for total in totals)
        return tokens, sum(total.cost_usd for total in totals) if known else None

    def given(self, cwd: str) -> str:
        """What a session in this folder is given when it starts; "" where that is nothing."""
        told = instructions(self.settings, cwd)
        return "" if isinstance(told, Nothing) else told.text

    def handbook(self) -> str:
        """`MEMORY.md` as it stands; "" before there is one."""
        path = self.settings.root / "MEMORY.md"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def found(self, questions: Iterable[tuple[str, str]], *, at_most: int) -> Iterator[str]:
        """What a ranked search answers to each (folder, words), in one text each."""
        with RankedSearch(self.settings, clock=self.clock) as search:
            for cwd, words in questions:
                hits = search.search(words, cwd=Path(cwd), max_results=at_most).hits
                yield "\n".join(f"{hit.title}\n{hit.excerpt}" for hit in hits)

    def forget(self, thread_ids: Sequence[str]) -> Forgotten:
        """Forget sessions, as `stillroom forget` does."""
        with alone(self.settings.home), self._store() as store:
            plan = plan_forgetting(self.settings, store, Choice(threads=tuple(thread_ids)), now=self.clock.now())
            return forget(self.settings, store, plan)

    def residue(self, words: Sequence[str]) -> tuple[int, tuple[str, ...]]:
        """Bytes of these words that are anywhere under the home, and the places, relative to it."""
        wanted = [word.encode() for word in words]

        def count(text: bytes) -> int:
            return sum(text.count(word) * len(word) for word in wanted)

        left = residue(self.settings, count)
        places = tuple(each.place.removeprefix(str(self.settings.home)).lstrip("/") for each in left)
        return sum(each.count for each in left if each.kind != "unreadable"), places
