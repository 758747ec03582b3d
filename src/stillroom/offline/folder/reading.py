"""Inputs of the second phase, parsed: sessions with their tasks and bullets, whoever wrote them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from stillroom.pattern import late
from stillroom.store.records import Stage1Output

BulletKind = Literal["preference", "knowledge", "failure", "reference"]
SUMMARIES = "rollout_summaries"

_SECTIONS: dict[str, BulletKind] = {
    "preference signals": "preference",
    "user preferences": "preference",
    "reusable knowledge": "knowledge",
    "failures and how to do differently": "failure",
    "references": "reference",
}
_TASK = late(r"^#{2,4} Task \d+:?\s*(.*)$")
_SECTION = late(r"^(?:#{1,6}\s*)?([A-Za-z][A-Za-z ]{3,60}?):?\s*$")
_FIELD = late(r"^(description|task|task_group|task_outcome|cwd|keywords):\s*(.*)$")
_HEADER = late(r"^thread_id:\s*(\S.*?)\s*$", re.MULTILINE)
_ASIDE = late(r'^- .*?the user said: "(.+?)"(?=$| \()', re.MULTILINE)
_HEADER_BYTES = 2000
_LAST_SECOND = 253_402_300_799


@dataclass(slots=True)
class Task:
    """One task of a session."""

    name: str
    outcome: str
    bullets: dict[BulletKind, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Session:
    """One input."""

    output: Stage1Output
    reference: str  #: path of its summary in the folder
    cwd: str
    project: str
    description: str
    keywords: tuple[str, ...]
    tasks: tuple[Task, ...]
    #: What the person said beside, word for word, in its order: evidence that `raw_memory` does not tell.
    aside: tuple[str, ...] = ()

    @property
    def moment(self) -> str:
        seconds = min(max(self.output.source_updated_at, 0), _LAST_SECOND)
        return datetime.fromtimestamp(seconds, tz=UTC).isoformat()

    @property
    def day(self) -> str:
        return self.moment[:10]


def read_sessions(folder: Path, inputs: Sequence[Stage1Output]) -> list[Session]:
    """The inputs that have a summary file in `folder`; its stem comes from the file that names the thread."""
    references = _references(folder)
    return [_session(output, references[output.thread_id]) for output in inputs if output.thread_id in references]


def _references(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    directory = folder / SUMMARIES
    if directory.is_dir():
        for path in sorted(directory.glob("*.md")):
            if path.is_symlink() or not path.is_file():
                continue
            with path.open("rb") as file:
                head = file.read(_HEADER_BYTES).decode("utf-8", "replace").split("\n\n", 1)[0]
            match = _HEADER.search(head)
            if match:
                found[match[1]] = f"{SUMMARIES}/{path.name}"
    return found


def _session(output: Stage1Output, reference: str) -> Session:
    front: dict[str, str] = {}
    tasks: list[Task] = []
    kind: BulletKind | None = None
    in_front = False
    for number, line in enumerate(output.raw_memory.splitlines()):
        if line.strip() == "---" and (number == 0 or in_front):
            in_front = not in_front
            continue
        heading = _TASK.match(line)
        if heading:
            tasks.append(Task(name=heading[1].strip() or "task", outcome="uncertain"))
            kind = None
            continue
        entry = _FIELD.match(line)
        if entry:
            if not tasks:
                front.setdefault(entry[1], entry[2].strip())
            elif entry[1] == "task_outcome":
                tasks[-1].outcome = entry[2].strip()
            continue
        section = _SECTION.match(line)
        if section and section[1].strip().casefold() in _SECTIONS:
            kind = _SECTIONS[section[1].strip().casefold()]
            continue
        if line.lstrip().startswith(("- ", "* ")) and kind is not None:
            if not tasks:
                tasks.append(Task(name=front.get("task", "task"), outcome=front.get("task_outcome", "uncertain")))
            tasks[-1].bullets.setdefault(kind, []).append(" ".join(line.strip()[2:].split()))
        elif line.startswith("  ") and line.strip() and kind is not None and tasks and tasks[-1].bullets.get(kind):
            tasks[-1].bullets[kind][-1] += " " + " ".join(line.split())
    if not tasks:
        tasks = [Task(name=front.get("task") or "task", outcome=front.get("task_outcome", "uncertain"))]
    cwd = front.get("cwd", "")
    return Session(
        output=output,
        reference=reference,
        cwd=cwd if cwd and cwd != "unknown" else output.cwd,
        project=front.get("task_group", ""),
        description=front.get("description", tasks[0].name),
        keywords=tuple(word.strip() for word in front.get("keywords", "").split(",") if word.strip()),
        tasks=tuple(tasks),
        aside=tuple(quote for quote in _ASIDE.findall(output.rollout_summary) if quote not in output.raw_memory),
    )
