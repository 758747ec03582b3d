"""Forgetting one session of 2,000, by the command; beside what no way of doing it can leave out."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from stillroom.clock import FixedClock
from stillroom.config import Settings, StageOne
from stillroom.store import Stage1Claim, Stage1Draft, Store
from stillroom.store.records import Stage1Output
from stillroom.thread import FileStamp, Thread
from stillroom.workspace import artifacts
from stillroom.workspace.history import History
from stillroom.workspace.syncing import sync

THREADS = 2000
#: Consolidations in the history, each with some new sessions.
VERSIONS = 20
ROUNDS = 3
NOW = 1_800_000_000
_FORGET = "`stillroom forget` of one session, best of three"
_LEAST = "database written anew, history packed, pruned and read once"
PROJECT = Path(__file__).parents[1]


def fill(settings: Settings) -> str:
    """Sessions of forty projects, of which 256 are in the folder at a time; one that is, the last, is returned."""
    words = ["".join(random.Random(n).choices("abcdefghijklmnoprstuvwy", k=3 + n % 7)) for n in range(900)]
    history = History(settings.history)
    settings.root.mkdir(parents=True)
    with Store.open(settings.database, clock=FixedClock(NOW * 1000)) as store:
        for version in range(VERSIONS):
            numbers = range(version * THREADS // VERSIONS, (version + 1) * THREADS // VERSIONS)
            store.threads.save([(_thread(number), FileStamp(size=1, mtime_ns=1)) for number in numbers])
            for number in numbers:
                claim = store.extraction.try_claim(
                    _thread(number).thread_id,
                    worker_id="b",
                    source_updated_at=NOW - THREADS + number,
                    stage=StageOne(),
                    max_running=8,
                )
                assert isinstance(claim, Stage1Claim)
                store.extraction.finish(claim, _draft(number, words), engine="offline")
            selected = store.consolidation.select(limit=256, max_unused_days=30).selected
            sync(settings.root, artifacts.render(selected))
            for name, text in (("MEMORY.md", _handbook(selected)), ("memory_summary.md", _summary(selected))):
                (settings.root / name).write_text(text, encoding="utf-8")
            if version:
                history.commit(settings.root, f"Consolidate {len(selected)} threads", now=NOW + version)
            else:
                history.ensure(settings.root, now=NOW)
    return _thread(THREADS - 1).thread_id


def _handbook(outputs: Sequence[Stage1Output]) -> str:
    """A task group for each project, in the shape of the format."""
    lines: list[str] = []
    for cwd in sorted({output.cwd for output in outputs}):
        lines += [f"# Task Group: {cwd[6:]}", "", f"scope: work in {cwd}", f"applies_to: cwd={cwd}; reuse_rule=safe"]
        here = [output for output in outputs if output.cwd == cwd]
        for number, output in enumerate(here, 1):
            file = f"{artifacts.summary_stem(output.thread_id, output.source_updated_at, output.rollout_slug)}.md"
            lines += ["", f"## Task {number}: {_line(output, 6)[12:]}", "", "### rollout_summary_files", ""]
            lines += [f"- rollout_summaries/{file} (cwd={cwd}, thread_id={output.thread_id})"]
            lines += ["", "### keywords", "", "- make, test"]
        lines += ["", "## User preferences", ""]
        lines += [f"{_line(output, row)} [Task {n}]" for n, output in enumerate(here, 1) for row in (12, 13, 14)]
        lines.append("")
    return "\n".join(lines)


def _summary(outputs: Sequence[Stage1Output]) -> str:
    listed = "\n".join(f"{_line(output, 12)[:90]} (in {output.cwd[6:]})" for output in outputs[:60])
    return f"v1\n\n## User Profile\n\n- many\n\n## User preferences\n\n{listed}\n"


def _line(output: Stage1Output, number: int) -> str:
    return output.raw_memory.split("\n")[number - 1]


def _thread(number: int) -> Thread:
    return Thread(
        thread_id=f"01a2273c-0000-7000-8000-{number:012}",
        agent="codex",
        rollout_path=f"/sessions/rollout-{number:012}.jsonl",
        source="cli",
        cwd=f"/work/project{number % 40}",
        created_at_ms=(NOW - THREADS + number) * 1000,
        updated_at_ms=(NOW - THREADS + number) * 1000,
        preview=f"do task {number}",
    )


def _draft(number: int, words: list[str]) -> Stage1Draft:
    """About four kilobytes, as sessions leave them."""
    random_ = random.Random(number)

    def sentence() -> str:
        return " ".join(random_.choices(words, k=14))

    bullets = "\n".join(f"- {sentence()}: {sentence()}" for _ in range(6))
    raw = (
        f"---\ndescription: {sentence()}\ntask: {sentence()}\n---\n\n### Task 1: {sentence()}\n\n"
        f"task_outcome: success\n\nPreference signals:\n{bullets}\n\nReusable knowledge:\n{bullets}\n"
    )
    return Stage1Draft(raw_memory=raw, rollout_summary=f"# {sentence()}\n\n{bullets}\n", rollout_slug="slug")


def forget(home: Path, thread_id: str) -> None:
    """The command, from the shell and back."""
    environment = {"HOME": str(home.parent), "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")}
    command = [sys.executable, "-m", "stillroom", "forget", thread_id, "--yes", "--home", str(home)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def least(home: Path) -> None:
    """The database written anew, the history packed, pruned, and each object of it read once."""
    git = ["git", f"--git-dir={home / 'history.git'}"]
    vacuum = "import sqlite3, sys; sqlite3.connect(sys.argv[1], isolation_level=None).execute('VACUUM')"
    subprocess.run([sys.executable, "-c", vacuum, home / "state.sqlite3"], check=True, timeout=300)
    for words in (["repack", "-a", "-d", "-q"], ["prune", "--expire=now"]):
        subprocess.run([*git, *words], check=True, timeout=300)
    subprocess.run([*git, "cat-file", "--batch-all-objects", "--batch"], stdout=subprocess.DEVNULL, check=True)


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Seconds by the clock, and of processors."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    work()
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    return ended - started, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as base:
        home = Path(base) / "home"
        settings = Settings(home=home)
        thread_id = fill(settings)
        size = sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
        rows: dict[str, list[tuple[float, float]]] = {_FORGET: [], _LEAST: []}
        for _ in range(ROUNDS):
            for name, work in ((_FORGET, lambda copy: forget(copy, thread_id)), (_LEAST, least)):
                copy = shutil.copytree(home, Path(base) / "copy")
                rows[name].append(timed(partial(work, copy)))
                shutil.rmtree(copy)
    print(f"{THREADS:,} sessions, {VERSIONS} versions of the folder, {size / 1e6:.0f} MB under the home\n")
    print("| | seconds | of processors |\n|---|---|---|")
    for name, measured in rows.items():
        wall, processors = min(measured)
        print(f"| {name} | {wall:.2f} | {processors:.2f} |")


if __name__ == "__main__":
    main()
