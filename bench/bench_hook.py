"""What a session waits for: `stillroom-hook claude-code session-start`, 40 kB of summary, beside `python -c pass`.

Runs are paired: each round starts every case once, and the ratio is taken within the round. The hook is started as pip
installs it, by a script that imports and calls it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from stillroom.recall.injection.instructions import Stale, fast_instructions

ROUNDS = 41
SUMMARY_BYTES = 40_000
#: As uv and pip write it; pip before version 25 with `import re`, which costs more than our own modules.
SCRIPTS = {
    "by uv": "import sys\nfrom stillroom.integrations.hook import main\nsys.exit(main())\n",
    "by an old pip": "import re\nimport sys\nfrom stillroom.integrations.hook import main\nsys.exit(main())\n",
}
BARE = "`python -c pass`"


class Run(NamedTuple):
    """One process: how long it took, and how long it computed, in milliseconds."""

    wall: float
    cpu: float


class Case(NamedTuple):
    """What is started, and what is put in order before each time."""

    words: list[str]
    before: Callable[[], object]


def run(words: list[str], environ: dict[str, str]) -> Run:
    files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    began = time.perf_counter()
    process = os.posix_spawn(words[0], words, environ, file_actions=files)
    _, status, used = os.wait4(process, 0)
    wall = time.perf_counter() - began
    if status:
        raise SystemExit(f"{' '.join(words)} ended with {os.waitstatus_to_exitcode(status)}")
    return Run(1000 * wall, 1000 * (used.ru_utime + used.ru_stime))


def prepare(home: Path) -> None:
    (home / "memories").mkdir(parents=True)
    rules = (
        f"- Rule {n}: when the thing with the number {n} fails, look at `file_{n}.py` first." for n in range(10_000)
    )
    text = "v1\n\n## User Profile\n\nA developer.\n\n## User preferences\n\n"
    while len(text) < SUMMARY_BYTES:
        text += next(rules) + "\n"
    (home / "memories" / "memory_summary.md").write_text(text, encoding="utf-8")
    (home / "config.toml").write_text('[memories]\nextract_model = "offline"\n', encoding="utf-8")


def edit(home: Path, name: str) -> None:
    """Change a line in the middle of a file, once the copy is made that the last edit called for."""
    give_up = time.monotonic() + 10
    while isinstance(fast_instructions(str(home), None, str(home.parent)), Stale) and time.monotonic() < give_up:
        time.sleep(0.01)
    path = home / name
    rows = path.read_text(encoding="utf-8").splitlines()
    mark = " # edited"
    middle = len(rows) // 2
    rows[middle] = rows[middle].removesuffix(mark) if rows[middle].endswith(mark) else rows[middle] + mark
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / ".stillroom"
        prepare(home)
        environ = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH")}
        environ |= {"HOME": folder, "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX", f"{folder}/pycache")}
        stamp, copy = home / "pass.stamp", home / "recall.json"
        cases = {BARE: Case([sys.executable, "-c", "pass"], stamp.touch)}
        for number, (installed, text) in enumerate(SCRIPTS.items()):
            script = Path(folder) / f"hook-{number}"
            script.write_text(text, encoding="utf-8")
            start = [sys.executable, str(script), "claude-code", "session-start"]
            cases[f"`stillroom-hook claude-code session-start`, installed {installed}"] = Case(start, stamp.touch)
        cases["the same after the summary was edited by hand"] = Case(
            start, lambda: edit(home, "memories/memory_summary.md")
        )
        cases["the same after `config.toml` was edited by hand"] = Case(start, lambda: edit(home, "config.toml"))
        cases["the same after an upgrade"] = Case(start, lambda: copy.unlink(missing_ok=True))
        runs: dict[str, list[Run]] = {name: [] for name in cases}
        for case in cases.values():  # modules are compiled, files are in memory
            case.before()
            run(case.words, environ)
        for _ in range(ROUNDS):
            for name, case in cases.items():
                case.before()
                runs[name].append(run(case.words, environ))
        size = (home / "memories" / "memory_summary.md").stat().st_size
        said = subprocess.run(start, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60)
    print("| start | wall ms, median | times `python -c pass` | CPU ms, median | CPU ms, most |\n|---|---|---|---|---|")
    for name, measured in runs.items():
        ratio = statistics.median(run.wall / bare.wall for run, bare in zip(measured, runs[BARE], strict=True))
        wall, cpu = statistics.median(run.wall for run in measured), statistics.median(run.cpu for run in measured)
        print(f"| {name} | {wall:.1f} | {ratio:.2f} | {cpu:.1f} | {max(run.cpu for run in measured):.1f} |")
    print(f"\nThe summary has {size:,} bytes; the hook says {len(said.stdout):,}.")


if __name__ == "__main__":
    main()
