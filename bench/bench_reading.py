"""Reading, filtering, redacting and rendering a rollout, paired with the loop that one would write by hand with `json`.

    python bench/bench_reading.py             # a few minutes, 10 GB of disk
    python bench/bench_reading.py --quick     # without the 200 MB, the 2 GB and the 10 GB

MB of the file a second of CPU on one core, medians of paired rounds. Both sides redact with the same function and cut
to the same limit, 150,000 tokens. `lines` are the recorded example sessions over and over: lines of 700 bytes, of which
memory keeps a third. `long items` are made-up sessions of which it keeps nearly everything.
The loop by hand reads only the first lines of the largest file, as it holds what it reads.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from stillroom.rollouts.redact import redact
from stillroom.sessions.records import MEMORY_ITEMS
from stillroom.sessions.render import render_texts
from stillroom.sessions.stream import open_items
from stillroom.sessions.truncate import middle_truncate
from stillroom.testing.sessions import sample_rollout

ROOT = Path(__file__).parents[1]
MAX_LINE_BYTES = 8 * 1024 * 1024
TOKEN_LIMIT = 150_000
ROUNDS = 5
LINE_BYTES = 43_000_000
#: What the loop by hand reads of a large file.
PART_BYTES = 300_000_000
#: Small files are read many times for one measurement.
MEASURED_BYTES = 8_000_000


def by_hand(path: Path) -> int:
    """Decode every line, keep what memory keeps, serialise, redact, cut."""
    items = []
    with path.open(encoding="utf-8") as file:
        for text in file:
            record = json.loads(text)
            if record["type"] != "response_item":
                continue
            item = record["payload"]
            if item["type"] not in MEMORY_ITEMS or item.get("role") == "developer":
                continue
            items.append(item)
    text = json.dumps(items, separators=(",", ":"), ensure_ascii=False)
    if len(text) > 8 * TOKEN_LIMIT:  # redacting what is cut away would be no fair loop
        text = text[: 4 * TOKEN_LIMIT] + text[-4 * TOKEN_LIMIT :]
    return len(middle_truncate(redact(text), TOKEN_LIMIT))


def stillroom(path: Path) -> int:
    with open_items(path, max_line_bytes=MAX_LINE_BYTES) as items:
        return len(render_texts(items.texts(), token_limit=TOKEN_LIMIT, redact=redact).text)


def rate(run: Callable[[Path], int], path: Path) -> float:
    """MB of file a second of CPU."""
    size = path.stat().st_size
    times = max(MEASURED_BYTES // size, 1)
    start = time.process_time()
    for _ in range(times):
        run(path)
    return times * size / 1e6 / (time.process_time() - start)


def row(case: str, path: Path) -> None:
    stillroom(path)  # compiles what is compiled once a process
    ours, theirs = [], []
    for _ in range(ROUNDS):  # in turns, so that other load on the machine meets both
        ours.append(rate(stillroom, path))
        theirs.append(rate(by_hand, path))
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    print(f"| {case} | {statistics.median(ours):.0f} | {statistics.median(theirs):.0f} | {ratio:.1f} |", flush=True)


def repeated(source: bytes, path: Path, size: int) -> Path:
    with path.open("wb") as file:
        for _ in range(size // len(source)):
            file.write(source)
    return path


def write_large(path: Path, *, size: int, texts: bool) -> None:
    """A session, and then lines of 43 MB: images, with `texts` every other one the output of a shell."""
    image = base64.b64encode(os.urandom(LINE_BYTES // 4 * 3))
    log = b"INFO worker 17 finished batch 4711 in 93 ms \\u00e9\\n"
    head = b'{"timestamp":"2026-11-29T12:16:15.270Z","ordinal":7,"type":"response_item","payload":'
    part = b'{"type":"input_image","image_url":"data:image/png;base64,' + image + b'"}'
    shown = head + b'{"type":"message","role":"user","content":[' + part + b"]}}\n"
    printed = head + b'{"type":"function_call_output","call_id":"c","output":"'
    printed += log * (LINE_BYTES // len(log)) + b'"}}\n'
    with path.open("wb") as file:
        file.write(next((ROOT / "examples/codex-home").rglob("*.jsonl")).read_bytes())
        for number in range(size // LINE_BYTES):
            file.write(printed if texts and number % 2 == 0 else shown)


LARGE = """
import sys, time
from pathlib import Path
from bench import bench_reading
path = Path(sys.argv[2])
start = time.process_time()
getattr(bench_reading, sys.argv[1])(path)
rate = path.stat().st_size / 1e6 / (time.process_time() - start)
status = Path("/proc/self/status").read_text()  # `ru_maxrss` would begin at the parent's size
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024, rate)
"""


def measured(reader: str, path: Path) -> tuple[int, float]:
    """Peak memory in MB, and MB a second, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", LARGE, reader, str(path)],
        check=True,
        timeout=600,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    peak, speed = done.stdout.split()
    return int(peak), float(speed)


def large(case: str, path: Path, *, size: int, texts: bool) -> None:
    write_large(path, size=size, texts=texts)
    peak, ours = measured("stillroom", path)
    os.truncate(path, PART_BYTES)
    with path.open("r+b") as file:  # whole lines only, or the loop would fail
        file.seek(-LINE_BYTES, os.SEEK_END)
        file.truncate(PART_BYTES - LINE_BYTES + file.read().index(b"\n") + 1)
    their_peak, theirs = measured("by_hand", path)
    path.unlink()
    peaks = f"peak {peak} MB of memory; by hand {their_peak} MB for {PART_BYTES // 10**6} MB"
    print(f"| {case} ({peaks}) | {ours:.0f} | {theirs:.0f} | {ours / theirs:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    recorded = b"".join(path.read_bytes() for path in sorted((ROOT / "examples/codex-home").rglob("*.jsonl")))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        small = sample_rollout(folder / "a", size_bytes=61_000)
        long_items = sample_rollout(folder / "b", size_bytes=560_000)
        print("| case | stillroom MB/s | `json.loads` loop MB/s | ratio |\n|---|---:|---:|---:|")
        row("lines, 2.5 MB, uncut", repeated(recorded, folder / "lines.jsonl", 2_500_000))
        row("long items, 61 kB, uncut", small)
        row("long items, 560 kB, uncut", long_items)
        if not options.quick:
            row("lines, 200 MB, the middle cut away", repeated(recorded, folder / "big.jsonl", 200_000_000))
            row(
                "long items, 200 MB, the middle cut away",
                repeated(long_items.read_bytes(), folder / "big.jsonl", 200_000_000),
            )
            (folder / "big.jsonl").unlink()
            if sys.platform == "linux":
                large("2 GB, lines of 43 MB", folder / "large.jsonl", size=2_000_000_000, texts=True)
                large("10 GB, lines of 43 MB of base64", folder / "large.jsonl", size=10_000_000_000, texts=False)


if __name__ == "__main__":
    main()
