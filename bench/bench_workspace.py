"""Phase 2 without its agent on 2,000 summaries, beside plain `git` on an ordinary repository of the same files.

    python bench/bench_workspace.py [--summaries 2000] [--rounds 5]

Paired: each round does ours, then git's, on the same disk. Medians in milliseconds. Creating a file costs what the disk
asks for it, so that is also given as the bare system calls. `nothing changed` is the check that a pass makes
before it opens a copy; git's is `add -A` and `status`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from stillroom.config import StageTwo
from stillroom.store.records import Stage1Output
from stillroom.workspace.artifacts import sync
from stillroom.workspace.history import History
from stillroom.workspace.staging import look, open_staging

MAX_DIFF = StageTwo().max_diff_bytes
Times = dict[str, list[float]]


def outputs(count: int, *, edited: int = 0) -> list[Stage1Output]:
    made = []
    for number in range(count):
        text = f"line {number} of what was learned, at some length\n" * 25 + ("edited\n" if number < edited else "")
        made.append(
            Stage1Output(
                thread_id=str(
                    uuid.UUID(int=(1_739_288_200_000 + number * 1000 << 80) | 7 << 76 | 2 << 62 | number * 7919)
                ),
                source_updated_at=1_739_288_200 + number,
                raw_memory=text,
                rollout_summary=text,
                rollout_slug=f"task-{number}",
                rollout_path=f"/codex/sessions/{number}.jsonl",
                cwd="/work/app",
                git_branch="main",
                git_origin_url=None,
                generated_at=1_739_290_000,
                engine="offline",
            )
        )
    return made


def timed(times: Times, name: str, work: Callable[[], object]) -> None:
    start = time.perf_counter()
    work()
    times[name].append((time.perf_counter() - start) * 1000)


def one_round(base: Path, count: int, times: Times) -> None:
    root, home = base / "memories", base / "home"
    root.mkdir()
    home.mkdir()
    (root / "MEMORY.md").write_text("# Memory\n", encoding="utf-8")
    (root / "memory_summary.md").write_text("v1\n", encoding="utf-8")
    history = History(home / "history.git")
    history.ensure(root, now=0)
    first, later = outputs(count), outputs(count, edited=10)

    def stage(name: str, wanted: list[Stage1Output], *, publish: bool) -> None:
        start = time.perf_counter()
        with open_staging(root, home / "staging", history, run_id=name.replace(" ", "-")) as staging:
            sync(staging.path, wanted, present=staging.copied)
            staging.seal()
            staging.write_diff(max_bytes=MAX_DIFF)
            times[f"ours: {name}, copied, synced and diffed"].append((time.perf_counter() - start) * 1000)
            if publish:
                timed(times, f"ours: {name}, published", lambda: staging.publish(name, now=1))

    stage("all new", first, publish=True)
    stage("10 edited", later, publish=True)
    time.sleep(2.5)  # what was written within the last tick of a coarse clock is not remembered
    timed(times, "ours: nothing changed, first look", lambda: look(root, history, later))
    timed(times, "ours: nothing changed, later looks", lambda: look(root, history, later))

    plain = base / "plain"
    shutil.copytree(root, plain)
    timed(times, "disk: as many files created", lambda: create(base / "created", count))
    environment = {"PATH": os.environ["PATH"], "HOME": str(base), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*arguments: str) -> None:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
        subprocess.run(command, cwd=plain, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=120)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "empty")

    def stage_all() -> None:
        git("add", "-A")
        git("diff", "--cached", "HEAD")

    timed(times, "git: all new, add -A and diff (no copy, no sync)", stage_all)
    timed(times, "git: all new, commit", lambda: git("commit", "-q", "-m", "all"))

    def unchanged() -> None:
        git("add", "-A")
        git("status", "--porcelain")

    timed(times, "git: nothing changed, add -A and status", unchanged)
    sync(plain, first)
    timed(times, "git: 10 edited, add -A and diff (no copy, no sync)", stage_all)


def create(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.md").write_bytes(b"x" * 1300)


def main() -> None:
    parser = argparse.ArgumentParser(description="phase 2 without its agent")
    parser.add_argument("--summaries", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    times: Times = defaultdict(list)
    for _ in range(asked.rounds):
        with tempfile.TemporaryDirectory(prefix="stillroom-bench-") as base:
            one_round(Path(base), asked.summaries, times)
    print(f"{asked.summaries} summaries, {asked.rounds} rounds: median (fastest … slowest) ms")
    for name, values in sorted(times.items()):
        print(f"{name:52} {statistics.median(values):7.0f} ({min(values):.0f} … {max(values):.0f})")


if __name__ == "__main__":
    main()
