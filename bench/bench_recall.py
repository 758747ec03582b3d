"""What a session's start costs with a 40 kB summary and a `MEMORY.md` of 250 projects, prepared and not."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from stillroom.config import Settings
from stillroom.recall.injection import prepared
from stillroom.recall.injection.instructions import Instructions, fast_instructions
from stillroom.recall.injection.preparing import make_ready
from stillroom.recall.injection.scopes import KnownFolder
from stillroom.recall.projects.repository import Repository, find_same, identify

SUMMARY_BYTES = 40_000
ROUNDS = 60
PROCESSES = 15
PROJECTS = ("shop", "api", "site", "infra")
SECTIONS = {
    "User preferences": '- the user said: "rule {number}: tests first, then code, and ask before a release"',
    "Reusable knowledge": "- the service {number} keeps its totals in cents; `src/part_{number}.py` has them",
    "Failures and how to do differently": '- Run `make sync-{number}` when `make` fails with "no part_{number}"',
}


def summary(base: Path) -> str:
    """Four projects with preferences, tips and topics, as the offline engine writes them."""
    lines = ["v1", "", "## User preferences", ""]
    for number in range(60):
        where = PROJECTS[number % len(PROJECTS)] if number % 6 else "every project"
        lines.append(f'- the user asked: "rule {number}: tests first, then code, then the log" -> default (in {where})')
    lines += ["", "## What's in Memory"]
    for project in PROJECTS:
        lines += ["", f"### {project}", "", "#### 2026-11-29", ""]
        for number in range(35):
            lines += [
                f"- topic {number}: make test, file_{number}.py, AssertionError, retry, timeout",
                f"  - desc: success, 2026-11-29; MEMORY.md, {project}, Task {number}; cwd={base / project}",
                "  - learnings: `make test` failed (exit 1): an assertion; `make test` works here (passed, 3 times)",
            ]
    text = "\n".join(lines)
    return text[: text.rindex("\n", 0, SUMMARY_BYTES)] + "\n"


def handbook(base: Path) -> str:
    """A task group of some kilobytes for each of 250 projects."""
    lines: list[str] = []
    for project in [*PROJECTS, *(f"project-{number}" for number in range(250 - len(PROJECTS)))]:
        lines += [f"# Task Group: {project}", "", f"applies_to: cwd={base / project}; reuse_rule=re-check", ""]
        for title, text in SECTIONS.items():
            lines += [f"## {title}", "", *(text.format(number=number) for number in range(12)), ""]
    return "\n".join(lines)


def median_ms(call: Callable[[], object], *, rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times)


def process(words: list[str]) -> tuple[float, float]:
    """Wall and CPU milliseconds of a Python process, medians."""
    walls, cpus = [], []
    for _ in range(PROCESSES):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, timeout=60)
        walls.append(1000 * (time.perf_counter() - start))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append(1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime))
    return statistics.median(walls), statistics.median(cpus)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        base = Path(name).resolve()
        settings = Settings(home=base / "home")
        settings.root.mkdir(parents=True)
        (settings.root / "memory_summary.md").write_text(summary(base), encoding="utf-8")
        (settings.root / "MEMORY.md").write_text(handbook(base), encoding="utf-8")
        folders = []
        for number, project in enumerate(PROJECTS):
            folder = base / project
            folder.mkdir()
            subprocess.run(["git", "init", "-q", str(folder)], check=True, timeout=60)
            found = identify(folder)
            commit = f"{number + 1:040x}"
            known = Repository(place=found.place, folder=found.folder, first_commit=commit)
            folders.append(KnownFolder(str(folder), known))
        ready = make_ready(settings, folders)
        home, cwd = str(settings.home), str(base / "shop")
        prepared.save(home, ready)
        told = fast_instructions(home, None, cwd)
        assert isinstance(told, Instructions)

        code = f"from stillroom.recall.injection.instructions import fast_instructions as f; f({home!r}, None, {cwd!r})"
        bare, whole = process(["-c", "pass"]), process(["-c", code])
        unknown = identify(base / "api")
        rows = {
            "instructions from the prepared copy": median_ms(lambda: fast_instructions(home, None, cwd)),
            "of that: which repository is this": median_ms(lambda: identify(cwd)),
            "of that: is it one of the known": median_ms(lambda: find_same(unknown, ready.folders)),
            "making the prepared copy (after an edit)": median_ms(lambda: make_ready(settings, folders), rounds=10),
        }
    sizes = [len(text.encode()) for text in (summary(base), handbook(base))]
    print(
        f"A summary of {sizes[0]:,} bytes and a `MEMORY.md` of {sizes[1]:,}; {told.memory_tokens:,} tokens are given."
    )
    print(f"Load {os.getloadavg()[0]:.1f}.\n")
    print("| in process | CPU ms, median |\n|---|---|")
    for row, value in rows.items():
        print(f"| {row} | {value:.2f} |")
    print("\n| process | wall ms | CPU ms | times the bare one |\n|---|---|---|---|")
    for label, (wall, cpu) in (("`python -c pass`", bare), ("import, and the instructions", whole)):
        print(f"| {label} | {wall:.0f} | {cpu:.0f} | {wall / bare[0]:.2f} |")


if __name__ == "__main__":
    main()
