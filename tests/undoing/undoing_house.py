"""A home with a memory of real sessions, and what taking back must come to."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

from stillroom.clock import FixedClock
from stillroom.config import Settings, Source
from stillroom.offline.folder.byhand import split_record
from stillroom.pipeline import Options, PipelineReport, run_pipeline
from stillroom.store import Store
from stillroom.undoing.choosing import Choice
from stillroom.undoing.forgetting import Forgotten, forget
from stillroom.undoing.planning import plan_forgetting

PROJECT = Path(__file__).parents[2]
CODEX_HOME = PROJECT / "examples" / "codex-home"
NOW_MS = 1_796_029_200_000  # 2026-11-30T09:00:00Z
HOUR_MS = 3_600_000
#: Sessions of the examples: the two of one project, and the one of another.
SPLIT = "01a2273c-0036-7133-90f0-7698c74b216a"
PARSE = "01a2273c-2009-7911-8e5c-1b6a066aabc6"
SHOP = "01a2273c-0761-7c02-b133-ea717e072038"


class House:
    """A home and the sessions that it learns from."""

    def __init__(self, base: Path, *, home: str = "home") -> None:
        self.codex = base / "codex"
        if not self.codex.exists():
            shutil.copytree(CODEX_HOME, self.codex)
        self.settings = Settings(home=base / home, sources=(Source(format="codex", root=str(self.codex)),))
        self.clock = FixedClock(NOW_MS)

    @property
    def home(self) -> Path:
        return self.settings.home

    @property
    def root(self) -> Path:
        return self.settings.root

    def run(self, *, hours: int = 0, **options: object) -> PipelineReport:
        """A pass, beyond the pause after the last consolidation."""
        self.clock.advance(seconds=hours * 3600)
        wanted = {"backfill": True, **options}
        return asyncio.run(run_pipeline(self.settings, options=Options(**wanted), clock=self.clock))  # type: ignore[arg-type]

    def store(self) -> Store:
        return Store.open(self.settings.database, clock=self.clock)

    def forget(self, choice: Choice) -> Forgotten:
        with self.store() as store:
            return forget(self.settings, store, plan_forgetting(self.settings, store, choice, now=self.clock.now()))

    def lose(self, thread_id: str) -> None:
        """The session's own file is deleted."""
        for path in self.codex.rglob(f"*{thread_id}*"):
            path.unlink()

    def said(self) -> dict[str, str]:
        """What sessions are told of and may look up, without hashes."""
        names = ("MEMORY.md", "memory_summary.md", "raw_memories.md")
        return {name: split_record((self.root / name).read_text(encoding="utf-8"))[0] for name in names}


def run_and_die(script: str, *words: object) -> subprocess.CompletedProcess[str]:
    """A script beside this one, in a process of its own."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *map(str, words)]
    environment = {"HOME": os.devnull, "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def every_byte(home: Path) -> str:
    """All that is under a home, with git's objects in clear."""
    texts = []
    for path in home.rglob("*"):
        texts.append(str(path.relative_to(home)))
        if path.is_file():
            texts.append(path.read_bytes().decode("utf-8", "replace"))
    for git_dir in home.glob("*.git*"):
        words = ["git", f"--git-dir={git_dir}", "cat-file", "--batch", "--batch-all-objects"]
        texts.append(
            subprocess.run(words, capture_output=True, timeout=30, check=True).stdout.decode("utf-8", "replace")
        )
    return "\n".join(texts)
