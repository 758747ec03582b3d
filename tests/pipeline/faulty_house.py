"""A home with two real sessions, ways to break it, and what must hold whatever was broken."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stillroom.clock import Clock, FixedClock
from stillroom.config import Settings, Source
from stillroom.consolidate.outcome import Consolidated, Failed
from stillroom.pipeline import Options, PipelineReport, encode_report, run_pipeline
from stillroom.progress import ProgressListener, silent

PROJECT = Path(__file__).parents[2]
EXAMPLES = PROJECT / "examples" / "codex-home" / "sessions" / "2026" / "11" / "29"
FIRST = "rollout-2026-11-29T12-16-21-01a2273c-2009-7911-8e5c-1b6a066aabc6.jsonl"
SECOND = "rollout-2026-11-29T12-16-13-01a2273c-0036-7133-90f0-7698c74b216a.jsonl"
NOW_MS = 1_796_029_200_000  # 2026-11-30T09:00:00Z
NOW = "2026-11-30T09:00:00Z"
HOUR = 3600
YEAR = 365 * 24 * HOUR
#: Permissions bind a root without these.
NOT_ALMIGHTY = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")


@dataclass
class FaultyHouse:
    base: Path
    clock: FixedClock = field(default_factory=lambda: FixedClock(NOW_MS))
    #: It is there already.
    prepared: bool = False

    def __post_init__(self) -> None:
        self.codex = self.base / "codex"
        self.sessions = self.codex / "sessions" / "2026" / "11" / "29"
        if not self.prepared:
            self.sessions.mkdir(parents=True)
            shutil.copy(EXAMPLES / FIRST, self.sessions)
        source = Source(format="codex", root=str(self.codex))
        self.settings = Settings(home=self.base / "home", sources=(source,))

    @property
    def root(self) -> Path:
        return self.settings.root

    @property
    def handbook(self) -> Path:
        return self.root / "MEMORY.md"

    def set(self, **changes: Any) -> None:
        self.settings = msgspec.structs.replace(self.settings, **changes)

    def add_second(self) -> None:
        """Something new to extract and consolidate."""
        shutil.copy(EXAMPLES / SECOND, self.sessions)

    def session(self, number: int, content: bytes | None = None) -> Path:
        """The path of a session that is none of the examples, holding `content`."""
        path = self.sessions / f"rollout-2026-11-29T12-20-{number:02}-01a2273c-4000-7000-8000-{number:012}.jsonl"
        if content is not None:
            path.write_bytes(content)
        return path

    def run(
        self, *, on_progress: ProgressListener = silent, clock: Clock | None = None, **options: Any
    ) -> PipelineReport:
        options = {"backfill": True, **options}
        pipeline = run_pipeline(
            self.settings, options=Options(**options), clock=clock or self.clock, on_progress=on_progress
        )
        report = asyncio.run(pipeline)
        json.loads(encode_report(report))  # whatever happened, it can be told
        return report

    def later(self, *, hours: int = 8, **options: Any) -> PipelineReport:
        """A pass beyond every lease and pause."""
        self.clock.advance(seconds=hours * HOUR)
        return self.run(**options)

    def command(
        self, *words: str, prefix: tuple[str, ...] = (), now: str = NOW, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """`stillroom run` in a process of its own."""
        own = {
            "HOME": str(self.base),
            "CODEX_HOME": str(self.codex),
            "STILLROOM_HOME": str(self.settings.home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PROJECT / "src"),
        }
        command = [*prefix, sys.executable, "-m", "stillroom", "run", "--backfill", "--now", now, *words]
        return subprocess.run(
            command, env=own | environment, capture_output=True, text=True, timeout=100, errors="replace", check=False
        )

    def command_without_powers(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """The same as somebody whom permissions bind."""
        return self.command(*words, prefix=NOT_ALMIGHTY if os.geteuid() == 0 else (), **environment)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def consolidated(report: PipelineReport) -> Consolidated:
    assert isinstance(report.consolidate, Consolidated), (report.stopped, report.consolidate)
    return report.consolidate


def failed(report: PipelineReport) -> Failed:
    assert isinstance(report.consolidate, Failed), (report.stopped, report.consolidate)
    assert report.failed
    return report.consolidate


def fell_back(report: PipelineReport) -> tuple[str, str]:
    """At which step the model's consolidation failed, and why; the offline engine took its place."""
    done = consolidated(report)
    assert done.engine == "offline" and done.fallback_reason and report.failed
    status, _, reason = done.fallback_reason.partition(": ")
    return status, reason


def told(done: subprocess.CompletedProcess[str]) -> str:
    """What a person was told; never a traceback."""
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


def slow(value: Any) -> Any:  # Any: what a test is parametrised with
    """One of several cases of a test, of which the others are quick enough for every run."""
    return pytest.param(value, marks=pytest.mark.slow)
