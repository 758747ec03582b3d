"""What a user waits for before anything happens: CPU time of the smallest commands, beside `python -c pass`."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys

ROUNDS = 15
CASES = {
    "`python -c pass`": ["-c", "pass"],
    "`import stillroom`": ["-c", "import stillroom"],
    "`stillroom --version`": ["-m", "stillroom", "--version"],
    "`stillroom status`, nothing known": ["-m", "stillroom", "status", "--home", "/nonexistent"],
    "`import msgspec, sqlite3, argparse`": ["-c", "import msgspec, sqlite3, argparse"],
}


def cpu_ms(words: list[str]) -> float:
    before = _children_seconds()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, timeout=60)
    return 1000 * (_children_seconds() - before)


def _children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    measured: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(ROUNDS):
        for name, words in CASES.items():
            measured[name].append(cpu_ms(words))
    bare = statistics.median(measured["`python -c pass`"])
    print("| command | CPU ms, median | above `python -c pass` |\n|---|---|---|")
    for name, times in measured.items():
        print(f"| {name} | {statistics.median(times):.0f} | {statistics.median(times) - bare:.0f} |")


if __name__ == "__main__":
    main()
