"""Reading and rendering a rollout, paired with the loop that one would write by hand with `json`.

    python bench/bench_reading.py             # throughput, a minute
    python bench/bench_reading.py --large     # also peak memory on 2 GB with lines of 43 MB (Linux)

The file is the example sessions over and over: about half of its bytes are records that memory does not keep.
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
from stillroom.rollouts.render import render_string
from stillroom.rollouts.stream import open_items
from stillroom.rollouts.truncate import middle_truncate

ROOT = Path(__file__).parents[1]
MAX_LINE_BYTES = 8 * 1024 * 1024
ROUNDS = 5


def same(text: str) -> str:
    """Stands for redaction, which is measured alone."""
    return text


def by_hand(path: Path, token_limit: int) -> int:
    """Decode every line, keep what memory keeps, serialise, cut."""
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
    return len(middle_truncate(same(text), token_limit))


def stillroom(path: Path, token_limit: int) -> int:
    with open_items(path, max_line_bytes=MAX_LINE_BYTES) as items:
        return len(render_string(items, token_limit=token_limit, redact=same).text)


def rate(run: Callable[[Path, int], int], path: Path, token_limit: int) -> float:
    """MB of file a second of CPU."""
    start = time.process_time()
    run(path, token_limit)
    return path.stat().st_size / 1e6 / (time.process_time() - start)


def throughput(folder: Path, megabytes: int) -> None:
    once = b"".join(path.read_bytes() for path in sorted((ROOT / "examples/codex-home").rglob("*.jsonl")))
    path = folder / "rollout.jsonl"
    path.write_bytes(once * (megabytes * 1_000_000 // len(once)))
    for label, limit in (("uncut", 10**9), ("middle cut away", 150_000)):
        ours, theirs = [], []
        for _ in range(ROUNDS):  # in turns, so that other load on the machine meets both
            ours.append(rate(stillroom, path, limit))
            theirs.append(rate(by_hand, path, limit))
        pairs = [a / b for a, b in zip(ours, theirs, strict=True)]
        print(
            f"{label:16} {path.stat().st_size / 1e6:4.0f} MB   stillroom {statistics.median(ours):4.0f} MB/s"
            f"   json.loads loop {statistics.median(theirs):4.0f} MB/s   ratio {statistics.median(pairs):.1f}"
        )


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


def memory(folder: Path) -> None:
    path = folder / "large.jsonl"
    write_large(path, lines=47, line_bytes=43_000_000)
    code = f"""
import time
from pathlib import Path
from stillroom.rollouts.render import render_string
from stillroom.rollouts.stream import open_items
start = time.process_time()
with open_items(Path({str(path)!r}), max_line_bytes={MAX_LINE_BYTES}) as items:
    rendered = render_string(items, token_limit=150_000, redact=lambda text: text)
status = Path("/proc/self/status").read_text()  # `ru_maxrss` would begin at the parent's size
peak = int(status.partition("VmHWM:")[2].split()[0]) // 1024
print(items.stats)
seconds = time.process_time() - start
print(f"{{items.stats.bytes / 1e6:.0f}} MB in {{seconds:.1f}} s CPU, peak {{peak}} MB; {{rendered.note}}")
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600, env={"PYTHONPATH": str(ROOT / "src")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        throughput(Path(folder), options.megabytes)
        if options.large:
            memory(Path(folder))


if __name__ == "__main__":
    main()
