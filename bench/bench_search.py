"""Search over 5,000 notes in one process: ranked over the index, exact over the files, beside a plain scan."""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from stillroom.clock import FixedClock
from stillroom.config import Settings, StageOne
from stillroom.recall.browse.searching import search_memories
from stillroom.recall.fulltext.ranked import RankedSearch
from stillroom.store import Stage1Claim, Stage1Draft, Store
from stillroom.thread import FileStamp, Thread

NOTES = 5000
ROUNDS = 15
CLOCK = FixedClock(1_800_000_000_000)
COMMON = 800


def texts() -> list[str]:
    """Notes of about a kilobyte: words as common as words are, and one that is in one note only."""
    random_ = random.Random(7)
    words = ["".join(random_.choices("abcdefghijklmnoprstuvwy", k=random_.randint(3, 9))) for _ in range(COMMON)]
    weights = [1 / rank for rank in range(1, COMMON + 1)]
    lines = [" ".join(random_.choices(words, weights, k=12)) for _ in range(4000)]
    return [
        f"# Fix {words[number % COMMON]}\n" + "\n".join(random_.choices(lines, k=12)) + f"\nunique{number}\n"
        for number in range(NOTES)
    ]


def fill(settings: Settings, notes: list[str]) -> None:
    """Each note once in the store and once as a file."""
    folder = settings.root / "rollout_summaries"
    folder.mkdir(parents=True)
    with Store.open(settings.database, clock=CLOCK) as store:
        threads = [_thread(number) for number in range(NOTES)]
        store.threads.save([(thread, FileStamp(size=1, mtime_ns=1)) for thread in threads])
        for thread, note in zip(threads, notes, strict=True):
            (folder / f"{thread.thread_id}.md").write_text(note, encoding="utf-8")
            claim = store.extraction.try_claim(
                thread.thread_id, worker_id="b", source_updated_at=1000, stage=StageOne(), max_running=8
            )
            assert isinstance(claim, Stage1Claim)
            store.extraction.finish(claim, Stage1Draft(raw_memory=note, rollout_summary=note), engine="offline")


def _thread(number: int) -> Thread:
    return Thread(
        thread_id=f"t{number:04}",
        agent="codex",
        rollout_path=f"/s/{number}.jsonl",
        source="cli",
        cwd=f"/work/{number % 20}",
        created_at_ms=1_000_000,
        updated_at_ms=1_000_000,
        preview="x",
    )


def plain_scan(root: Path, word: str) -> int:
    """What a short script would do."""
    return sum(word in line for path in root.rglob("*.md") for line in path.read_text(encoding="utf-8").splitlines())


def milliseconds(call: Callable[[], object]) -> tuple[float, float]:
    """Median and 90th percentile."""
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - started))
    return statistics.median(times), sorted(times)[int(ROUNDS * 0.9)]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        notes = texts()
        fill(settings, notes)
        common = notes[0].split()[2]
        search = RankedSearch(settings, clock=CLOCK)
        started = time.perf_counter()
        search.search("unique1")
        built = time.perf_counter() - started
        cases: dict[str, Callable[[], object]] = {
            "ranked, a rare word": lambda: search.search("unique4321", max_results=10),
            "ranked, two words": lambda: search.search(f"{notes[5].split()[2]} {notes[9].split()[3]}", max_results=10),
            "ranked, the commonest word": lambda: search.search(common, max_results=10),
            "ranked, one project": lambda: search.search(common, max_results=10, cwd=Path("/work/3")),
            "exact, a rare word, all files": lambda: search_memories(settings.root, ["unique4321"]),
            "exact, a common word, first page": lambda: search_memories(settings.root, [common]),
            "plain Python scan, a rare word": lambda: plain_scan(settings.root, "unique4321"),
        }
        if rg := shutil.which("rg"):
            command = [rg, "unique4321", str(settings.root)]
            cases["`rg`, a rare word (a process)"] = lambda: subprocess.run(command, capture_output=True, check=True)
        print(f"5,000 notes of {len(notes[0]):,} bytes; the index was built in {built:.1f} s.\n")
        print("| search | ms, median | ms, 90 % |\n|---|---|---|")
        for name, call in cases.items():
            median, slow = milliseconds(call)
            print(f"| {name} | {median:.1f} | {slow:.1f} |")
        search.close()


if __name__ == "__main__":
    main()
