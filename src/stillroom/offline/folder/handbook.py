"""`MEMORY.md`, in the shape of spec §1.15."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stillroom.offline.folder.merge import Block, Entry, Line
from stillroom.offline.folder.notes import Note
from stillroom.offline.text.words import shorten

TITLE = "# Memory"
NOTES_TITLE = "# Notes"
_SECTIONS = (
    ("## User preferences", "preference"),
    ("## Reusable knowledge", "knowledge"),
    ("## Failures and how to do differently", "failure"),
)

Wanted = Callable[[str], bool]
"""Whether a generated line may be written: false for those that a person took out."""


def handbook(blocks: Sequence[Block], notes: Sequence[Note], wanted: Wanted) -> list[str]:
    """The lines of `MEMORY.md`."""
    lines: list[str] = []
    if not blocks:
        lines += [TITLE, "", "Nothing is remembered of any session yet."]
    for block in blocks:
        lines += ["", *_block(block, wanted)]
    kept = [f"- {note.render()}" for note in notes]
    kept = [line for line in kept if wanted(line)]
    if kept:
        lines += ["", NOTES_TITLE, "", *kept]
    return lines[1:] if lines and not lines[0] else lines


def references(numbers: Sequence[int]) -> str:
    """`[Task 1][Task 3]`."""
    return "".join(f"[Task {number}]" for number in sorted(numbers))


def _block(block: Block, wanted: Wanted) -> list[str]:
    group = block.group
    where = ", ".join(group.cwds[:4])
    lines = [f"# Task Group: {group.title}", ""]
    lines.append(f"scope: work in {where}; look here first for anything in this repository, not for others.")
    reuse = "safe in every checkout of this repository; re-check versions and paths" if "/" in group.key else "re-check"
    lines.append(f"applies_to: cwd={where}; reuse_rule={reuse}")
    for entry in block.tasks:
        lines += ["", *_task(entry)]
    for title, kind in _SECTIONS:
        bullets = [_bullet(line) for line in block.lines if line.kind == kind]
        bullets = [bullet for bullet in bullets if wanted(bullet)]
        if bullets:
            lines += ["", title, "", *bullets]
    return lines


def _bullet(line: Line) -> str:
    return f"- {line.render()} {references(line.tasks)}"


def _task(entry: Entry) -> list[str]:
    lines = [
        f"## Task {entry.number}: {shorten(entry.name, 120)} ({entry.outcome})",
        "",
        "### rollout_summary_files",
        "",
    ]
    for session in entry.sessions:
        output = session.output
        lines.append(
            f"- {session.reference} (cwd={_flat(session.cwd)}, rollout_path={_flat(output.rollout_path)}, "
            f"updated_at={session.moment}, thread_id={_flat(output.thread_id)})"
        )
    return [*lines, "", "### keywords", "", f"- {', '.join(entry.keywords)}"]


def _flat(text: str) -> str:
    return " ".join(text.split())
