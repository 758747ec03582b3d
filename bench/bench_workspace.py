"""Phase 2 without its agent on 2,000 summaries, beside plain `git` on an ordinary repository of the same files.

    python bench/bench_workspace.py [--summaries 2000] [--rounds 5]

Paired: each round does ours, then git's, on the same disk. Medians in milliseconds, and of the CPU's. Creating a file
costs what the disk asks for it, so that is also given as the bare system calls; ext4 asks much more for a few seconds
after many files were deleted, so nothing is deleted before the end. `nothing changed` is the check that a pass makes
before it opens a copy; git's is `add -A` and `status`. A run remembers what earlier ones hashed: `10 edited` is the
first after everything was new, `10 more edited` what any later one takes.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stillroom.config import StageTwo
from stillroom.store.records import Stage1Output
from stillroom.workspace.artifacts import render
from stillroom.workspace.history import History
from stillroom.workspace.staging import look, open_staging
from stillroom.workspace.syncing import sync

MAX_DIFF = StageTwo().max_diff_bytes
#: What was written within the last tick of a coarse clock is not remembered; real passes are hours apart.
SETTLED_SECONDS = 2.5
Times = dict[str, list[tuple[float, float]]]


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


@contextmanager
def timed(times: Times, name: str) -> Iterator[None]:
    start, cpu = time.perf_counter(), cpu_seconds()
    yield
    times[name].append(((time.perf_counter() - start) * 1000, (cpu_seconds() - cpu) * 1000))


def cpu_seconds() -> float:
    """Of this process and of every git that it waited for."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def one_round(base: Path, count: int, times: Times) -> None:
    root, home = base / "memories", base / "home"
    root.mkdir(parents=True)
    home.mkdir()
    (root / "MEMORY.md").write_text("# Memory\n", encoding="utf-8")
    (root / "memory_summary.md").write_text("v1\n", encoding="utf-8")
    history = History(home / "history.git")
    history.ensure(root, now=0)

    def stage(name: str, wanted: list[Stage1Output]) -> None:
        with timed(times, f"ours: {name}, copied, synced and diffed"):
            staging = open_staging(root, home / "staging", history, run_id=name.replace(" ", "-"))
            sync(staging.path, render(wanted), present=staging.copied)
            staging.seal()
            staging.write_diff(max_bytes=MAX_DIFF)
        with staging, timed(times, f"ours: {name}, published"):
            staging.publish(name, now=1)
        time.sleep(SETTLED_SECONDS)

    stage("all new", outputs(count))
    stage("10 edited", outputs(count, edited=10))
    later = outputs(count, edited=20)
    stage("10 more edited", later)
    with timed(times, "ours: nothing changed, first look"):
        look(root, history, render(later))
    with timed(times, "ours: nothing changed, later looks"):
        look(root, history, render(later))

    plain = base / "plain"
    shutil.copytree(root, plain)
    with timed(times, "disk: as many files created"):
        create(base / "created", count)
    environment = {"PATH": os.environ["PATH"], "HOME": str(base), "GIT_CONFIG_NOSYSTEM": "1"}

    def git(*arguments: str) -> None:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@x", *arguments]
        subprocess.run(command, cwd=plain, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=120)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "empty")

    with timed(times, "git: all new, add -A and diff (no copy, no sync)"):
        git("add", "-A")
        git("diff", "--cached", "HEAD")
    with timed(times, "git: all new, commit"):
        git("commit", "-q", "-m", "all")
    with timed(times, "git: nothing changed, add -A and status"):
        git("add", "-A")
        git("status", "--porcelain")
    sync(plain, render(outputs(count)))
    with timed(times, "git: 20 edited, add -A and diff (no copy, no sync)"):
        git("add", "-A")
        git("diff", "--cached", "HEAD")


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
    with tempfile.TemporaryDirectory(prefix="stillroom-bench-") as base:
        for number in range(asked.rounds):
            one_round(Path(base) / str(number), asked.summaries, times)
    print(f"{asked.summaries} summaries, {asked.rounds} rounds: median (fastest … slowest) ms, and of the CPU")
    for name, values in sorted(times.items()):
        wall, cpu = ([row[column] for row in values] for column in (0, 1))
        span = f"({min(wall):.0f} … {max(wall):.0f})"
        print(f"{name:52} {statistics.median(wall):7.0f} {span:16} {statistics.median(cpu):6.0f} ({min(cpu):.0f} …)")


if __name__ == "__main__":
    main()
