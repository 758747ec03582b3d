"""Registers thousands of session files of several clients, beside the loop that one would write by hand.

    python bench/bench_register.py                    # a minute or two, 3 GB of disk
    python bench/bench_register.py --files 500 --megabytes 300

The files are recorded sessions of the tests, each with an id of its own and its middle repeated to size (20 kB to 8
MB). `cold` starts with an empty state database, `unchanged` looks again; the files were just written, so the system
still has them in memory. Each is a process of its own, and `peak` is all that it ever took, Python included. The loop
by hand decodes every line of one file in ten with `json.loads`, keeps what a list of sessions needs, and stores it; its
time is told for all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stillroom.clock import SystemClock
from stillroom.config import Settings, Source
from stillroom.extract.register import register_threads
from stillroom.store import Store

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
SMALLEST, LARGEST = 20_000, 8_000_000
#: The loop by hand reads one file in so many.
SHARE = 10
ROUNDS = 3
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Sample(NamedTuple):
    """A recorded session."""

    agent: str
    home: Path
    file: Path
    #: As it stands in the file's records.
    session: str


#: The share of the files, and where recorded ones are.
MIX = {
    "codex": (35, ROOT / "examples" / "codex-home", "sessions/**/rollout-*.jsonl"),
    "claude-code": (35, DATA / "claude-code" / "2.1.332-interactive-hooks", "projects/*/*.jsonl"),
    "qwen-code": (10, DATA / "qwen-code" / "0.24.4", "projects/*/chats/*.jsonl"),
    "gemini-cli": (8, DATA / "gemini-cli" / "0.61.0-interactive-hooks", "tmp/*/chats/*.jsonl"),
    "copilot-cli": (6, DATA / "copilot-cli" / "1.0.102", "session-state/*/events.jsonl"),
    "pi": (6, DATA / "pi" / "1.6.0", "sessions/*/*.jsonl"),
}


def samples() -> dict[str, list[Sample]]:
    """Those that name their session in their first line."""
    found: dict[str, list[Sample]] = {}
    for agent, (_, home, pattern) in MIX.items():
        for file in sorted(home.glob(pattern)):
            text = file.read_text(encoding="utf-8")
            if ids := _UUID.findall(f"{file.parent.name} {file.name} {text.splitlines()[0]}"):
                # In a name ahead of all others: records name other things, too.
                found.setdefault(agent, []).append(Sample(agent, home, file, ids[0]))
    return found


def write_homes(folder: Path, *, files: int, total_bytes: int) -> None:
    """Write so many sessions, of so many bytes in all."""
    luck, known = random.Random(7), samples()
    weights = [luck.lognormvariate(0, 1.3) for _ in range(files)]
    scale = total_bytes / sum(weights)
    agents = luck.choices(list(MIX), [share for share, _, _ in MIX.values()], k=files)
    for weight, agent in zip(weights, agents, strict=True):
        size = round(min(max(weight * scale, SMALLEST), LARGEST))
        write_copy(
            luck.choice(known[agent]), folder / agent, size, str(uuid.UUID(int=luck.getrandbits(128), version=4))
        )


def write_copy(sample: Sample, home: Path, size: int, session: str) -> None:
    """The session under another id, its middle repeated to size."""

    def renamed(text: str) -> str:
        return text.replace(sample.session, session).replace(sample.session[:8], session[:8])

    lines = renamed(sample.file.read_text(encoding="utf-8")).splitlines(keepends=True)
    first, middle, last = lines[: len(lines) // 2], lines[len(lines) // 2 : -1], lines[-1:]
    body = "".join(middle).encode() or b"\n"
    path = home / renamed(str(sample.file.relative_to(sample.home)))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write("".join(first).encode())
        for _ in range(max(size // len(body), 1)):
            file.write(body)
        file.write("".join(last).encode())
    for beside in sample.file.parent.iterdir():
        if sample.agent == "copilot-cli" and beside != sample.file and beside.is_file():
            (path.parent / beside.name).write_text(renamed(beside.read_text(encoding="utf-8")), encoding="utf-8")


def register(folder: Path) -> None:
    """In a process of its own: one registration, and what it took."""
    sources = tuple(Source(format=agent, root=str(folder / agent)) for agent in MIX)
    settings = Settings(home=folder / "home", sources=sources)
    with Store.open(settings.database, clock=SystemClock()) as store:
        start, cpu = time.perf_counter(), time.process_time()
        report = asyncio.run(register_threads(settings, store))
        took = time.perf_counter() - start
        print(json.dumps([took, time.process_time() - cpu, _peak_mb(), report.found, report.unchanged, report.missing]))


def register_by_hand(folder: Path) -> None:
    """In a process of its own: the same list, by decoding every line."""
    start, cpu = time.perf_counter(), time.process_time()
    rows = [read_by_hand(path) for path in _session_files(folder)[::SHARE]]
    with sqlite3.connect(folder / "by-hand.sqlite3") as db:
        db.execute(
            "CREATE TABLE threads (path TEXT PRIMARY KEY, id TEXT, cwd TEXT, first TEXT, preview TEXT, last TEXT)"
        )
        db.executemany("INSERT INTO threads VALUES (?, ?, ?, ?, ?, ?)", rows)
    print(json.dumps([time.perf_counter() - start, time.process_time() - cpu, _peak_mb(), len(rows), 0, 0]))


def read_by_hand(path: Path) -> tuple[str, ...]:
    """Id, folder, first words and times; the keys of each client in turn."""
    found = {"id": "", "cwd": "", "first": "", "preview": "", "last": ""}
    with path.open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            payload = record.get("payload") or record.get("data") or record
            if not isinstance(payload, dict):
                continue
            found["id"] = found["id"] or payload.get("id") or record.get("sessionId") or ""
            found["cwd"] = found["cwd"] or payload.get("cwd") or ""
            found["first"] = found["first"] or str(record.get("timestamp") or "")
            found["last"] = str(record.get("timestamp") or found["last"])
            message = payload.get("message") or payload
            if not found["preview"] and isinstance(message, dict) and message.get("role", record.get("type")) == "user":
                found["preview"] = json.dumps(message.get("content"))[:200]
    return (str(path), *found.values())


def _session_files(folder: Path) -> list[Path]:
    return sorted(path for agent, (_, _, pattern) in MIX.items() for path in (folder / agent).glob(pattern))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(folder: Path, part: str) -> list[float]:
    command = [sys.executable, __file__, "--part", part, "--folder", str(folder)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # type: ignore[no-any-return]


def row(name: str, rounds: list[list[float]], *, times: int = 1) -> None:
    took, cpu, peak, *counts = (statistics.median(column) for column in zip(*rounds, strict=True))
    found, unchanged, missing = counts
    told = f"{found:,.0f} found, {unchanged:,.0f} unchanged, {missing:,.0f} missing"
    print(f"| {name} | {took * times:.2f} | {cpu * times:.2f} | {peak:.0f} | {told} |")


def rounds(folder: Path) -> Iterator[tuple[list[float], list[float]]]:
    for _ in range(ROUNDS):
        shutil.rmtree(folder / "home", ignore_errors=True)
        yield measure(folder, "register"), measure(folder, "register")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    options.add_argument("--files", type=int, default=5000)
    options.add_argument("--megabytes", type=int, default=3000)
    options.add_argument("--part", choices=("register", "by-hand", "write"), help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.part == "register":
        register(chosen.folder)
        return
    if chosen.part == "by-hand":
        register_by_hand(chosen.folder)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = chosen.folder or Path(name)
        write_homes(folder, files=chosen.files, total_bytes=chosen.megabytes * 1_000_000)
        if chosen.part == "write":
            return
        paths = _session_files(folder)
        size = sum(path.stat().st_size for path in paths) / 1e9
        print(f"{len(paths):,} files of {len(MIX)} clients, {size:.1f} GB; medians of {ROUNDS} rounds\n")
        print("| | seconds | of CPU | peak MB | |\n|---|---|---|---|---|")
        cold, unchanged = zip(*rounds(folder), strict=True)
        row("cold", list(cold))
        row("unchanged", list(unchanged))
        row(f"`json.loads`, by hand, from one file in {SHARE}", [measure(folder, "by-hand")], times=SHARE)


if __name__ == "__main__":
    main()
