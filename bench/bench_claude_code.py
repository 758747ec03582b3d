"""Finds and reads Claude Code sessions, beside the loop that one would write by hand with `json.loads`.

python bench/bench_claude_code.py [MEGABYTES]
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from stillroom.sessions.agents.claude_code.reader import discover, open_items
from stillroom.sessions.discovery import Found
from stillroom.thread import FileStamp

MAX_LINE_BYTES = 8 * 1024 * 1024
ROUNDS = 3
FILES = 1000
FILE_BYTES = 200_000


def write_session(path: Path, size_bytes: int) -> None:
    """A session as the client writes it: short talk, calls, outputs of 1 to 30 KB stored twice, bookkeeping."""
    envelope = {
        "userType": "external",
        "entrypoint": "cli",
        "cwd": "/home/dev/demo-app",
        "sessionId": path.stem,
        "version": "2.1.332",
        "gitBranch": "main",
    }
    parent, number = None, 0
    with path.open("w", encoding="utf-8") as file:

        def put(record: dict[str, object]) -> None:
            file.write(json.dumps(record, separators=(",", ":")) + "\n")

        def write(**fields: object) -> None:
            nonlocal parent
            name = str(uuid.uuid4())
            record = {"parentUuid": parent, "isSidechain": False, **fields, "uuid": name}
            put({**record, "timestamp": "2026-11-29T11:48:16.889Z", **envelope})
            parent = name

        while file.tell() < size_bytes:
            number += 1
            call = f"toolu_{number:024x}"
            output = f'line {number} of the output, with "quotes" and a path /srv/app/{number}\n' * (15 + number % 400)
            usage = {"input_tokens": 12, "cache_read_input_tokens": 14426, "output_tokens": 57}
            if number % 10 == 1:
                write(type="user", message={"role": "user", "content": f"Please look at case {number} again."})
            message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "usage": usage}
            thought = [{"type": "thinking", "thinking": "hm " * 100, "signature": "s" * 600}]
            write(message={**message, "content": thought}, type="assistant")
            write(message={**message, "content": [{"type": "text", "text": "I look at it. " * 8}]}, type="assistant")
            asked = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"./run {number}"}}
            write(message={**message, "content": [asked]}, type="assistant")
            result = {"tool_use_id": call, "type": "tool_result", "content": output, "is_error": False}
            told = {"stdout": output, "stderr": "", "interrupted": False}
            write(type="user", message={"role": "user", "content": [result]}, toolUseResult=told)
            put({"type": "mode", "mode": "normal", "sessionId": path.stem})


def by_hand(path: Path) -> Iterator[tuple[str, str]]:
    """The talk, the calls and the outputs, with no regard to who wrote what, repetition, branches or damage."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if record["type"] not in ("user", "assistant") or record.get("isMeta") or record.get("isSidechain"):
                continue
            content = record["message"]["content"]
            if isinstance(content, str):
                yield "user", json.dumps({"role": "user", "text": content})
                continue
            for block in content:
                if block["type"] == "text":
                    yield "message", json.dumps({"role": record["type"], "text": block["text"]})
                elif block["type"] == "tool_use":
                    yield "call", json.dumps({"name": block["name"], "arguments": json.dumps(block["input"])})
                elif block["type"] == "tool_result":
                    yield "output", json.dumps({"id": block["tool_use_id"], "output": block["content"]})


def to_items(path: Path) -> int:
    with open_items(path, max_line_bytes=MAX_LINE_BYTES) as items:
        return sum(1 for _ in items)


def to_texts(path: Path) -> int:
    with open_items(path, max_line_bytes=MAX_LINE_BYTES) as items:
        return sum(len(text) for text in items.texts())


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def row(case: str, size: int, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]  # in turns: other load meets both
    mine, hand = (size / 1e6 / statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(hand / mine for mine, hand in pairs)
    print(f"| {case} | {mine:.0f} | {hand:.0f} | {ratio:.1f} |", flush=True)


def register(home: Path, known: dict[str, FileStamp]) -> dict[str, FileStamp]:
    found = [each for each in discover(home, known, max_line_bytes=MAX_LINE_BYTES) if isinstance(each, Found)]
    return {each.thread.rollout_path: each.stamp for each in found}


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{uuid.uuid4()}.jsonl"
        write_session(path, megabytes * 1_000_000)
        size = path.stat().st_size
        print("| case | stillroom MB/s | `json.loads` loop MB/s | ratio |\n|---|---:|---:|---:|")
        row(f"{megabytes} MB to items", size, lambda: to_items(path), lambda: deque(by_hand(path), maxlen=0))
        row(f"{megabytes} MB to a model's text", size, lambda: to_texts(path), lambda: deque(by_hand(path), maxlen=0))
        path.unlink()
        home = Path(folder) / "home"
        for number in range(FILES):
            session = home / "projects" / f"-srv-{number % 20}" / f"{uuid.uuid4()}.jsonl"
            session.parent.mkdir(parents=True, exist_ok=True)
            write_session(session, FILE_BYTES)
        known: dict[str, FileStamp] = {}
        cold = seconds(lambda: known.update(register(home, {})))
        again = seconds(lambda: register(home, known))
        print(f"\n{FILES:,} files of {FILE_BYTES // 1000} kB found: {cold:.2f} s of CPU cold, {again:.2f} s unchanged.")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"Peak of memory, with the writing of the files: {peak} MB.")


if __name__ == "__main__":
    main()
