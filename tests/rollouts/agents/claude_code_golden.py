"""What the reader makes of a home of Claude Code, as text; run it to write the expected files anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stillroom.rollouts.agents.claude_code import discover, open_items
from stillroom.rollouts.events import Ran, Said, read_events
from stillroom.rollouts.found import Found
from stillroom.thread import Thread

SAMPLES = Path(__file__).parents[2] / "data" / "claude-code"
LAYOUTS = ("1.0.100", "2.0.30", "2.1.50", "2.1.150", "2.1.332-headless", "2.1.332-interactive-hooks")
LIMIT = 8 * 1024 * 1024


def describe(home: Path) -> str:
    """Every thread with its parent, and every message and call with its author, outcome and what was left out."""
    found = [discovery for discovery in discover(home, {}, max_line_bytes=LIMIT) if isinstance(discovery, Found)]
    threads = sorted((discovery.thread for discovery in found), key=lambda thread: thread.thread_id)
    return "\n".join(line for thread in threads for line in _thread(thread, home))


def _thread(thread: Thread, home: Path) -> Iterator[str]:
    yield f"# {thread.thread_id}"
    yield f"file: {Path(thread.rollout_path).relative_to(home)}"
    yield f"source: {thread.source}  parent: {thread.parent_thread_id}  version: {thread.cli_version}"
    yield f"cwd: {thread.cwd}  branch: {thread.git_branch}  title: {thread.title!r}  preview: {thread.preview!r}"
    with open_items(Path(thread.rollout_path), max_line_bytes=LIMIT) as items:
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


if __name__ == "__main__":
    for layout in LAYOUTS:
        (SAMPLES / layout / "expected.txt").write_text(describe(SAMPLES / layout), encoding="utf-8")
