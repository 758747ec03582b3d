"""Reading, filtering, redacting and rendering a rollout, paired with the loop that one would write by hand with `json`.

    python bench/bench_reading.py             # a few minutes, 2 GB of disk
    python bench/bench_reading.py --quick     # without the 200 MB and the 2 GB

MB of the file a second of CPU on one core, medians of paired rounds. Both sides redact with the same function and cut
to the same limit, 150,000 tokens. `lines` are the recorded example sessions over and over: lines of 700 bytes, of which
memory keeps a third. `long items` are made-up sessions of which it keeps nearly everything.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from stillroom.rollouts.policy import MEMORY_ITEMS
from stillroom.rollouts.redact import redact
from stillroom.rollouts.render import render_texts
from stillroom.rollouts.stream import open_items
from stillroom.rollouts.truncate import middle_truncate
from stillroom.testing.sessions import sample_rollout

ROOT = Path(__file__).parents[1]
MAX_LINE_BYTES = 8 * 1024 * 1024
TOKEN_LIMIT = 150_000
ROUNDS = 5
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


def write_large(path: Path, *, lines: int, line_bytes: int) -> None:
    """Outputs of a shell (text), images (base64) and a session around them."""
    text = (b"INFO worker 17 finished batch 4711 in 93 ms \\u00e9\\n" * (line_bytes // 49))[: line_bytes // 49 * 49]
    image = b"iVBORw0KGgo" * (line_bytes // 11)
    head = b'{"timestamp":"2026-11-29T12:16:15.270Z","ordinal":7,"type":"response_item","payload":'
    with path.open("wb") as file:
        file.write(next((ROOT / "examples/codex-home").rglob("*.jsonl")).read_bytes())
        for number in range(lines):
            if number % 2:
                part = b'{"type":"input_image","image_url":"data:image/png;base64,' + image + b'"}'
                file.write(head + b'{"type":"message","role":"user","content":[' + part + b"]}}\n")
            else:
                file.write(head + b'{"type":"function_call_output","call_id":"c","output":"' + text + b'"}}\n')


LARGE = """
import sys, time
from pathlib import Path
from bench.bench_reading import stillroom
start = time.process_time()
stillroom(Path(sys.argv[1]))
seconds = time.process_time() - start
status = Path("/proc/self/status").read_text()  # `ru_maxrss` would begin at the parent's size
print(int(status.partition("VmHWM:")[2].split()[0]) // 1024, seconds)
"""


def large(path: Path) -> None:
    write_large(path, lines=47, line_bytes=43_000_000)
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(path)],
        check=True,
        timeout=600,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        stdout=subprocess.PIPE,
        text=True,
    )
    peak, seconds = done.stdout.split()
    size = path.stat().st_size / 1e6
    print(f"| 2 GB, lines of 43 MB (peak {peak} MB of memory) | {size / float(seconds):.0f} | – | – |")


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
                large(folder / "large.jsonl")


if __name__ == "__main__":
    main()
