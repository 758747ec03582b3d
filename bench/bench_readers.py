"""Reads one long session of every agent, beside a loop that only decodes it with `json.loads`.

    python bench/bench_readers.py                    # under two minutes
    python bench/bench_readers.py --megabytes 2 pi cline

The sessions are recorded ones of the tests, their middle repeated with ids of its own, so that nothing of it was seen
before. `items` is the whole way: who said what, outcomes, what is to be left out, and what was taken back. The loop
decodes every line, document, cell or event and does nothing with it. Aider's text is no JSON: there it splits lines.
Times are of the processor: the machine may be shared.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.sessions.agents.corpus import Sample, samples_of

from stillroom.homes import HOMES
from stillroom.sessions.discovery import Found
from stillroom.sessions.readers import open_thread, reader_of
from stillroom.thread import Thread

MAX_LINE_BYTES = 8 * 1024 * 1024
ROUNDS = 3
#: The list of a document that holds its messages.
LISTS: dict[str, tuple[str | int, ...]] = {
    "atif": ("steps",),
    "chat-messages": ("messages",),
    "cline": ("messages",),
    "continue": ("history",),
    "inspect-ai": ("samples", 0, "messages"),
    "langchain": (),
    "pydantic-ai": (),
    "swe-agent": ("messages",),
}
#: The tables of a database that hold them.
TABLES = {"openai-agents": ("agent_messages",), "opencode": ("message", "part", "session_message")}
#: Where a session is looked for that is long enough to have a middle, if not in the first layout.
LAYOUTS = {"claude-code": "2.1.332-interactive-hooks", "langchain": "messages_to_dict", "opencode": "1.18.33-sqlite"}
#: Whose sessions these ids are of: one session stays one.
_SHARED = re.compile(r"(session|conversation|thread|project|workspace|agent|prompt|run|turn)_?id", re.IGNORECASE)
_FRACTION = re.compile(r"\.\d+")
#: What a command that says something says, as a rule.
LONG_CHARS = 3000
_EVENT = re.compile(r"event-(\d{5})-(.*)\.json")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("agents", nargs="*", default=list(HOMES))
    parser.add_argument("--megabytes", type=float, default=4)
    given = parser.parse_args()
    print("| agent | MB | items | to items, MB/s | `json.loads` loop, MB/s | ratio |")
    print("|---|---:|---:|---:|---:|---:|")
    for agent in given.agents:
        with tempfile.TemporaryDirectory() as folder:
            row(agent, Path(folder), round(given.megabytes * 1e6))
    return 0


def row(agent: str, folder: Path, size: int) -> None:
    layouts = {sample.folder.name: sample for sample in samples_of(agent)}
    sample = layouts[LAYOUTS.get(agent, next(iter(layouts)))]
    path = longest(sample, sample.put(folder))
    before = count(threads_of(agent, folder, path))
    times = enlarge(agent, path, size)
    threads = threads_of(agent, folder, path)
    items = count(threads)
    assert items >= before * times // 2, f"{agent}: {items} items of {times} times {before}"
    megabytes = bytes_of(path) / 1e6
    ours, theirs = seconds(lambda: count(threads)), seconds(lambda: decode(path))
    told = f"{megabytes / ours:.0f} | {megabytes / theirs:.0f} | {theirs / ours:.2f}"
    print(f"| {agent} | {megabytes:.1f} | {items:,} | {told} |", flush=True)


def longest(sample: Sample, home: Path) -> Path:
    """The file, database, or folder of events, that holds the most."""
    if sample.agent == "openhands":
        return next(home.rglob("events"))
    kinds = {".db"} if sample.agent in TABLES else {".json"} if sample.agent in LISTS else {".jsonl", ".md"}
    return max((path for path in home.rglob("*") if path.suffix in kinds), key=lambda path: path.stat().st_size)


def threads_of(agent: str, home: Path, path: Path) -> list[Thread]:
    """Those that the file holds."""
    found = reader_of(agent).discover(home, {}, max_line_bytes=MAX_LINE_BYTES)
    threads = [each.thread for each in found if isinstance(each, Found)]
    place = path.parent if path.is_dir() else path
    return [each for each in threads if each.rollout_path.partition("#")[0].startswith(str(place))]


def count(threads: list[Thread]) -> int:
    total = 0
    for thread in threads:
        with open_thread(thread, max_line_bytes=MAX_LINE_BYTES) as items:
            total += sum(1 for _ in items)
    return total


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def bytes_of(path: Path) -> int:
    if path.is_dir():
        return sum(each.stat().st_size for each in path.iterdir())
    return path.stat().st_size


# --- the loop


def decode(path: Path) -> None:
    if path.suffix == ".db":
        with closing(sqlite3.connect(path)) as db:
            for table in (name for names in TABLES.values() for name in names if has_table(db, name)):
                column = "message_data" if table == "agent_messages" else "data"
                for (text,) in db.execute(f'SELECT "{column}" FROM "{table}"'):
                    json.loads(text)
    elif path.is_dir():
        for each in path.glob("*.json"):
            json.loads(each.read_bytes())
    elif path.suffix == ".json":
        json.loads(path.read_bytes())
    else:
        with path.open("rb") as file:
            for line in file:
                if path.suffix == ".jsonl":
                    json.loads(line)


def has_table(db: sqlite3.Connection, name: str) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone() is not None


# --- longer sessions


def enlarge(agent: str, path: Path, size: int) -> int:
    """Make the session about so long; how many times longer it is."""
    if agent in TABLES:
        return more_rows(path, TABLES[agent], size)
    if agent in LISTS:
        return more_elements(path, LISTS[agent], size)
    return more_events(path, size) if path.is_dir() else more_lines(path, size)


def repeated(values: list[Any], size: int) -> list[list[Any]]:
    """The values, as often as it takes to be so long, each time with ids of their own."""
    once = len(json.dumps(list(renamed(values, 1)), default=str))
    return [list(renamed(values, n)) for n in range(max(size // once, 2))]


def more_lines(path: Path, size: int) -> int:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    if path.suffix == ".jsonl":
        middles = repeated([json.loads(line) for line in lines[1:-1] if line.strip()], size)
        texts = [json.dumps(each, separators=(",", ":")) + "\n" for middle in middles for each in middle]
    else:
        talk = [line for line in lines[1:-1] if not line.startswith("# aider chat started")]
        heading = next(line for line in lines if line not in talk and line.startswith("#"))
        lines[0], middles = heading, [talk] * (size // len("".join(talk)))
        texts = [each for middle in middles for each in middle]
    path.write_text("".join([lines[0], *texts, lines[-1]]), encoding="utf-8")
    return len(middles)


def more_elements(path: Path, where: tuple[str | int, ...], size: int) -> int:
    document = json.loads(path.read_bytes())
    inner = document
    for name in where:
        inner = inner[name]
    lists = repeated(inner, size)
    inner[:] = [each for elements in lists for each in elements]
    path.write_text(json.dumps(document), encoding="utf-8")
    return len(lists)


def more_rows(path: Path, tables: tuple[str, ...], size: int) -> int:
    with closing(sqlite3.connect(path)) as db, db:
        read: dict[str, list[Any]] = {}
        for table in tables:
            names = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            rows = [dict(zip(names, values, strict=True)) for values in db.execute(f'SELECT * FROM "{table}"')]
            read[table] = [{name: opened(value) for name, value in row.items()} for row in rows]
        times = repeated([read], size)
        for n, (tabled,) in enumerate(times):
            for table, rows in tabled.items():
                db.execute(f'DELETE FROM "{table}"' if not n else "SELECT 1")
                for row in rows:
                    told: dict[str, Any] = {
                        name: json.dumps(cell) if isinstance(cell, dict) else cell for name, cell in row.items()
                    }
                    if n and isinstance(told.get("id"), int):
                        told["id"] = None
                    if "seq" in told:
                        told["seq"] += n * 10_000
                    places = ", ".join("?" * len(told))
                    db.execute(f'INSERT INTO "{table}" VALUES ({places})', list(told.values()))
        return len(times)


def opened(cell: Any) -> Any:
    """A cell's JSON, if it is some."""
    return json.loads(cell) if isinstance(cell, str) and cell.startswith("{") else cell


def more_events(path: Path, size: int) -> int:
    files = sorted(each for each in path.iterdir() if _EVENT.fullmatch(each.name))
    times = repeated([json.loads(each.read_bytes()) for each in files], size)
    for n, events in enumerate(times[1:], 1):
        for number, event in enumerate(events, n * len(files)):
            (path / f"event-{number:05}-{event['id']}.json").write_text(json.dumps(event), encoding="utf-8")
    return len(times)


def renamed(values: list[Any], n: int) -> Iterator[Any]:
    """The same with ids and times of their own, so that they were not seen before; what refers to one still does.

    Outputs of several lines were trimmed for the tests: they are as long again as recorded ones are.
    """
    for value in values:
        yield _renamed(value, n)


def _renamed(value: Any, n: int, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _renamed(each, n, key) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, n, name) for each in value]
    if not isinstance(value, str):
        return value
    if n and name.lower().endswith(("id", "uuid")) and not _SHARED.fullmatch(name):
        return f"{value}{n:05}"
    if name == "timestamp":
        return _FRACTION.sub(f".{n:06}", value)
    return value * (LONG_CHARS // len(value) + 1) if value.count("\n") > 1 and len(value) < LONG_CHARS else value


if __name__ == "__main__":
    sys.exit(main())
