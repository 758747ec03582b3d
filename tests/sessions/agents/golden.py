"""What a reader makes of an agent's home, as text: every message and call with its author and outcome."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from stillroom.sessions.discovery import Found
from stillroom.sessions.events import Ran, Said, read_events
from stillroom.sessions.readers import Reader
from stillroom.sessions.stats import ReadStats
from stillroom.thread import Thread

DATA = Path(__file__).parents[2] / "data"
LIMIT = 8 * 1024 * 1024


def describe(reader: Reader, home: Path) -> str:
    """Every thread with its parent, and every message and call with its author, outcome and what was left out."""
    found = [each for each in reader.discover(home, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]
    threads = sorted((each.thread for each in found), key=lambda thread: thread.thread_id)
    return "\n".join(line for thread in threads for line in _thread(reader, thread, home))


def placeless(described: str) -> str:
    """The same without the part of a thread's id that depends on where the home is."""
    return re.sub(r"(?<=\.)[0-9a-f]{8}$", "DIGEST", described, flags=re.MULTILINE)


def seen_again(reader: Reader, home: Path) -> set[type]:
    """What a second look at an unchanged home finds."""
    found = [each for each in reader.discover(home, {}, max_line_bytes=LIMIT) if isinstance(each, Found)]
    known = {each.thread.rollout_path: each.stamp for each in found}
    return {type(each) for each in reader.discover(home, known, max_line_bytes=LIMIT)}


def read(reader: Reader, path: Path) -> tuple[list[tuple[str, str]], list[Ran], ReadStats]:
    """Who said what in one session, what was run, and what was counted."""
    with reader.open_items(path, max_line_bytes=LIMIT) as items:
        events = read_events(items)
        said = [(event.who, event.text) for event in events if isinstance(event, Said)]
        return said, [event for event in events if isinstance(event, Ran)], items.stats


def _thread(reader: Reader, thread: Thread, home: Path) -> Iterator[str]:
    yield f"# {thread.thread_id}"
    yield f"file: {Path(thread.rollout_path).relative_to(home)}"
    yield f"source: {thread.source}  parent: {thread.parent_thread_id}  version: {thread.cli_version}"
    yield f"cwd: {thread.cwd}  branch: {thread.git_branch}  title: {thread.title!r}  preview: {thread.preview!r}"
    with reader.open_items(Path(thread.rollout_path), max_line_bytes=LIMIT) as items:
        for event in read_events(items):
            yield _said(event) if isinstance(event, Said) else _ran(event)
        stats = items.stats
    left_out = ", ".join(f"{count} {reason}" for reason, count in sorted(stats.dropped.items()))
    yield f"left out: {left_out or 'nothing'}  unknown: {stats.unknown}  superseded: {stats.superseded}"
    yield ""


def _said(event: Said) -> str:
    return f"  {event.who}{' (final)' if event.final else ''}: {event.text[:300]!r}"


def _ran(event: Ran) -> str:
    edits = "".join(f" {edit.action} {edit.path}" for edit in event.edits)
    asked = event.command or event.arguments
    return f"  {event.tool} {asked[:120]!r} -> exit {event.exit_code}, ok {event.ok}{edits}: {event.output[:80]!r}"
