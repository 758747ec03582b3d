"""Runs every benchmark and writes `docs/benchmarks.md`: `make bench`, or `python -m bench NAME…` for some of them.

With `--write` a run of some replaces their sections of the page.

Each compares with something real in the same run; machines are noisy, so read ratios and medians.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

BENCH = Path(__file__).parent
PAGE = BENCH.parent / "docs" / "benchmarks.md"


class Section(NamedTuple):
    """One benchmark and what is asked of it."""

    name: str
    title: str
    asked: str
    words: tuple[str, ...]


SECTIONS = (
    Section(
        "quality",
        "Quality of the offline engine",
        "By `stillroom eval` (`docs/eval.md` explains each row), then by set and language: labelled sessions in nine "
        "languages, and a life of three projects. Asked, on sessions that were scored before anybody looked: facts "
        "kept with evidence at least 0.92, told at least 0.75, traps told at most 5 %, told lines right at least 0.88, "
        "causes right at least 0.9, of DevMemBench's words at least 0.5. `heldout` and `blind` were never looked at by "
        "anybody who writes the engine; what each lot read when it was seen for the first time stands in "
        "`tests/quality/README.md`. Written by `python -m bench quality --write`.",
        ("bench/bench_quality.py",),
    ),
    Section(
        "peer",
        "Phase 1 beside the real Codex CLI",
        "The same rollouts, the same loopback model. Asked: the whole process at or below Codex's time with the "
        "machine's certificates; from first request to last job at most half of its time with one certificate. Python "
        "here is built without optimisation; Debian's own build of 3.11 took 0.12, 0.33 and 0.30 s where this one took "
        "0.14, 0.36 and 0.29, measured within minutes.",
        ("bench/bench_peer_codex.py",),
    ),
    Section(
        "reading",
        "Reading, filtering, redacting, rendering",
        "Asked: 100 MB/s on one core, 300 MB/s where the middle is cut away; 2 GB with 43 MB lines in at most 200 MB "
        "of memory; 10 GB with 43 MB lines of base64 in as much, at 400 MB/s.",
        ("bench/bench_reading.py",),
    ),
    Section(
        "status",
        "`stillroom status`",
        "Asked: at most 0.5 s among 20,000 threads.",
        ("bench/bench_status.py",),
    ),
    Section(
        "register",
        "Registering sessions",
        "5,000 session files of mixed formats, 3 GB. Asked: cold at most 5 s, unchanged at most 0.6 s, at most 150 MB "
        "of memory. Other load on the machine shows in the seconds, hardly in those of CPU.",
        ("bench/bench_register.py",),
    ),
    Section(
        "why",
        "`stillroom why`",
        "Asked: at most 0.3 s on a memory of 2,000 sessions, whose handbook has 640 kB in 60 versions.",
        ("bench/bench_why.py",),
    ),
    Section(
        "claude-code",
        "Reading Claude Code's sessions",
        "Asked: 250 MB/s to items on one core. The loop by hand has no regard to who wrote what, repetition or damage.",
        ("bench/bench_claude_code.py",),
    ),
    Section(
        "readers",
        "Reading every agent's sessions",
        "One long session of each agent: a recorded one of the tests, its middle repeated to 2 MB with ids of its own. "
        "The loop only decodes; a reader also tells who said what, how commands ended and what was taken back, for "
        "which many read a session twice. Most of the items are small: the cost is that of items, not of bytes. Times "
        "are of the processor.",
        ("bench/bench_readers.py", "--megabytes", "2"),
    ),
    Section("redact", "Redaction", "Beside Python's own `re`.", ("bench/bench_redact.py",)),
    Section(
        "store",
        "The state database",
        "Asked: a claim among 100,000 threads in at most 20 ms; four processes claiming for a minute: none twice, no "
        "lock error. The minute alone: `python bench/bench_store.py --part processes --seconds 60 --turns 1`.",
        ("bench/bench_store.py", "--seconds", "60", "--peer-seconds", "8", "--turns", "1"),
    ),
    Section(
        "workspace",
        "Phase 2 without its agent",
        "Asked: 2,000 summaries synced and diffed in 0.5 s; nothing changed: 0.1 s.",
        ("bench/bench_workspace.py",),
    ),
    Section(
        "citations",
        "Citations and use",
        "Asked: citations at 20 MB/s, in proportion on hostile text; 20,000 commands a second; counting at 300 MB/s.",
        ("bench/bench_citations.py",),
    ),
    Section(
        "budget",
        "Ledgers",
        "Asked: `record_usage` 500,000 times a second on one core, and no slower than 1.5 times with eight threads; "
        "shared between four processes 3,000 charges a second, none lost. In one process: calls a second of "
        "processor time.",
        ("bench/bench_budget.py",),
    ),
    Section(
        "gateway",
        "The gateway",
        "The same client, a loopback model in a process of its own, direct and through `stillroom budget serve` in "
        "turn. Asked: at most 3 ms to the first byte, 5 % to a stream of 2,000 events. Where events come as fast as "
        "they can be sent, three processes share the cores and the 5 % is missed: the time is their work's. No model "
        "is that fast.",
        ("bench/bench_gateway.py",),
    ),
    Section("sandbox", "The jail", "Start of a worker, and one call.", ("bench/bench_sandbox.py",)),
    Section(
        "recall",
        "What a session's start costs",
        "A 40 kB summary. Asked: the hook in at most 2.5 times `python -c pass`, never over 100 ms of CPU.",
        ("bench/bench_recall.py",),
    ),
    Section(
        "search",
        "Search",
        "Asked: `search` over 5,000 notes in 5 ms, median, in process.",
        ("bench/bench_search.py",),
    ),
    Section(
        "forget",
        "Forgetting",
        "One session of 2,000, without a model: out of the folder, twenty versions of it, the database, logs and "
        "indexes, and every byte looked at once more. Asked: at most 2 s. From the shell and back, the start of the "
        "command included.",
        ("bench/bench_forget.py",),
    ),
    Section(
        "hook",
        "The hook",
        "Asked: `stillroom-hook claude-code session-start` with a summary of 40 kB in at most 2.5 times the wall time "
        "of `python -c pass`, and never over 100 ms of CPU. After an edit it tells what still stands of the "
        "prepared copy, which is renewed beside the session; the last row is paid once after an upgrade.",
        ("bench/bench_hook.py",),
    ),
    Section(
        "start",
        "Start of the command",
        "Asked: `stillroom --version` in at most 0.15 s of CPU, importing `stillroom` in at most 0.05 s.",
        ("bench/bench_start.py",),
    ),
)


def main() -> int:
    """Run the named sections, or all; with all, write the page."""
    wanted = set(sys.argv[1:])
    write = "--write" in wanted or not wanted
    wanted.discard("--write")
    if unknown := wanted - {section.name for section in SECTIONS}:
        print(f"no such benchmark: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    parts = _parts_of_page() if wanted else {}
    for section in SECTIONS:
        if wanted and section.name not in wanted:
            continue
        print(f"== {section.title}", file=sys.stderr)
        started = time.perf_counter()
        output = _run(section)
        print(output)
        print(f"   {time.perf_counter() - started:.0f} s", file=sys.stderr)
        parts[section.title] = f"\n{section.asked}\n\n{_as_markdown(output)}\n"
    if write:
        ordered = [f"## {section.title}\n{parts[section.title]}" for section in SECTIONS if section.title in parts]
        PAGE.write_text("\n".join([_opening(), *ordered]), encoding="utf-8")
    return 0


def _opening() -> str:
    return (
        "# Benchmarks\n\nWritten by `make bench`. What stands in one table was measured in one run. Machines are noisy:"
        f" read ratios\nand medians. This one: {_machine()}.\n"
    )


def _parts_of_page() -> dict[str, str]:
    """What stands in the page now, by title."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    return {title: f"\n{text.strip()}\n" for title, _, text in (section.partition("\n") for section in sections)}


def _machine() -> str:
    return f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}, Python {platform.python_version()}"


def _run(section: Section) -> str:
    # Compiled modules are kept, as they are for whoever installs the package.
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPYCACHEPREFIX": str(BENCH.parent / ".cache" / "pycache"),
        "PYTHONPATH": os.pathsep.join([str(BENCH.parent / "src"), str(BENCH.parent)]),
    }
    done = subprocess.run(
        [sys.executable, *section.words],
        cwd=BENCH.parent,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=3600,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(section.words)} ended with {done.returncode}")
    return done.stdout.strip()


def _as_markdown(output: str) -> str:
    return output if "|---" in output else f"```text\n{output}\n```"


if __name__ == "__main__":
    sys.exit(main())
