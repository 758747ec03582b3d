"""How long `stillroom why` takes on a memory of 2,000 sessions: `python bench/bench_why.py [--outputs 2000]`.

A handbook with a line of each session in 60 versions, and the session that is asked about has 2 MB. The function, the
whole process, and beside them `git blame` of the same line alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.bench_status import timed
from bench.bench_store import HOUR_MS
from stillroom.clock import SystemClock
from stillroom.config import Memories, Settings, StageOne
from stillroom.insight.why.explaining import explain
from stillroom.store import Store
from stillroom.store.records import Stage1Draft
from stillroom.testing.sessions import sample_rollout
from stillroom.thread import FileStamp, Thread
from stillroom.workspace.history import History

VERSIONS = 60
ROLLOUT_BYTES = 2_000_000
ASKED = "never deploy module number 7 "


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--outputs", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        result = measure(Settings(home=Path(place)), outputs=asked.outputs, turns=asked.turns)
    if asked.json:
        print(json.dumps(result))
        return
    print(f"| {asked.outputs:,} sessions | median | CPU |\n|---|---|---|")
    for name, (wall, cpu) in result.items():
        print(f"| {name} | {wall * 1000:.0f} ms | {cpu * 1000:.0f} ms |")


def measure(settings: Settings, *, outputs: int, turns: int) -> dict[str, tuple[float, float]]:
    """Seconds on the clock and of CPU, medians."""
    clock = SystemClock()
    with Store.open(settings.database, clock=clock) as store:
        fill(settings, store, outputs, now_ms=clock.now_ms() - 24 * HOUR_MS)
        answer = explain(settings, store, ASKED)
        assert answer.lines[0].support == "quoted", answer
        place = answer.lines[0].place
        inside = timed(lambda: explain(settings, store, f"MEMORY.md:{place.line}"), turns, resource.RUSAGE_SELF)
        phrase = timed(lambda: explain(settings, store, ASKED), turns, resource.RUSAGE_SELF)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ours = [sys.executable, "-m", "stillroom", "why", f"MEMORY.md:{place.line}", "--home", str(settings.home)]
    line = f"{place.line},{place.line}"
    blame = ["git", f"--git-dir={settings.history}", "blame", "-L", line, "--porcelain", "main", "--", "MEMORY.md"]

    def run(command: list[str]) -> Callable[[], object]:
        return lambda: subprocess.run(command, env=environ, check=True, capture_output=True, timeout=60)

    return {
        "`explain`, a line": inside,
        "`explain`, a phrase": phrase,
        "`stillroom why`, the whole process": timed(run(ours), turns, resource.RUSAGE_CHILDREN),
        "`git blame` alone": timed(run(blame), turns, resource.RUSAGE_CHILDREN),
    }


def fill(settings: Settings, store: Store, count: int, *, now_ms: int) -> None:
    """Sessions, what was extracted of them, and a handbook that grew with them, version by version."""
    said = "Please never deploy module number 7 before the tests of zone 7 are green."
    rollout = sample_rollout(settings.home / "codex", size_bytes=ROLLOUT_BYTES, messages=(said,))
    threads = [
        Thread(
            thread_id=f"thread-{number:05}",
            agent="codex",
            rollout_path=str(rollout) if number == 7 else f"/gone/{number}.jsonl",
            source="cli",
            cwd=f"/work/{number % 40}",
            created_at_ms=now_ms - number * 1000,
            updated_at_ms=now_ms - number * 1000,
            preview="hello",
        )
        for number in range(count)
    ]
    store.threads.save([(thread, FileStamp(size=1000, mtime_ns=1)) for thread in threads])
    while claims := store.extraction.claim(
        worker_id="w", current_thread_id=None, memories=Memories(), stage=StageOne(), max_claims=500
    ):
        for claim in claims:
            number = int(claim.thread_id[-5:])
            text = f"{line(number)}\n" + f"line of {number} about what was learned there, at some length\n" * 40
            store.extraction.finish(
                claim, Stage1Draft(raw_memory=text, rollout_summary=text, rollout_slug=None), engine="x"
            )
    settings.root.mkdir()
    history = History(settings.history)
    for version in range(1, VERSIONS + 1):
        blocks = [block(number) for number in range(count * version // VERSIONS)]
        (settings.root / "MEMORY.md").write_text("\n".join(blocks), encoding="utf-8")
        if version == 1:
            history.ensure(settings.root, now=now_ms // 1000)
        history.commit(
            settings.root, f"Consolidate {version} threads\n\nStillroom-Run: {version}-a", now=now_ms // 1000
        )


def line(number: int) -> str:
    return f'- the user asked: "never deploy module number {number} before the tests of zone {number} are green"'


def block(number: int) -> str:
    head = f"# Task Group: project {number}\n\nscope: all\napplies_to: cwd=/work/{number % 40}\n\n## Task 1: deploy"
    source = f"- rollout_summaries/{number}.md (cwd=/work, thread_id=thread-{number:05})"
    keywords = "### keywords\n\n- deploy"
    preference = f"## User preferences\n\n{line(number)} [Task 1]"
    return f"{head}\n\n### rollout_summary_files\n\n{source}\n\n{keywords}\n\n{preference}\n"


if __name__ == "__main__":
    main()
