"""One group's lines: doubles merged, what a newer session ended marked as superseded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from stillroom.offline.folder.groups import Group
from stillroom.offline.folder.reading import BulletKind, Session, Task
from stillroom.offline.text import conflict, words
from stillroom.offline.text.conflict import Claim
from stillroom.pattern import late

_QUOTE = late(r"the user (?:\w+|agreed to “[^”]*”): \"(.+?)\"(?= ->|$| \(|, then changed)")
_ANY_QUOTE = late(r"\"(.+?)\"(?= ->|$| \(|, then changed)")
_COMMAND = late(r"^\[\d+\] (`[^`]+`.*?) -> passed(?:, (\d+) times)?(, named by the user)?")
_MAX_COMMANDS = 12


@dataclass(slots=True)
class Line:
    """One line of the handbook, with the tasks that it rests on."""

    kind: BulletKind
    text: str
    claim: Claim
    day: str
    tasks: list[int]
    supersedes: list[str] = field(default_factory=list)  #: `"old words", 2026-11-02`

    def render(self, *, with_history: bool = True) -> str:
        history = f" (supersedes: {'; '.join(self.supersedes[:3])})" if self.supersedes and with_history else ""
        return f"{self.text}{history}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One task of the handbook; several sessions when they did the same thing again."""

    number: int
    name: str
    outcome: str
    sessions: tuple[Session, ...]
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A group, ready to be written."""

    group: Group
    tasks: tuple[Entry, ...]
    lines: tuple[Line, ...]

    def of(self, kind: BulletKind) -> list[Line]:
        return [line for line in self.lines if line.kind == kind]


def merge(group: Group) -> Block:
    """Merge a group's sessions, newest first."""
    entries: list[tuple[str, str, list[Session], list[Task]]] = []
    for session in group.sessions:
        for task in session.tasks:
            known = next((e for e in entries if words.folded(e[0]) == words.folded(task.name)), None)
            if known is None:
                entries.append((task.name, task.outcome, [session], [task]))
            else:
                known[3].append(task)
                if session not in known[2]:
                    known[2].append(session)
    lines: list[Line] = []
    for number, (_, _, sessions, tasks) in enumerate(entries, 1):
        for session in sessions:
            for task in tasks:
                if not any(task is own for own in session.tasks):
                    continue
                for kind, bullets in task.bullets.items():
                    for bullet in bullets:
                        _add(lines, kind, bullet, session.day, number)
    lines, ended = _without_superseded(lines)
    return Block(
        group=group,
        tasks=tuple(
            Entry(number, _named(name, ended), outcome, tuple(sessions), _keywords(sessions, name))
            for number, (name, outcome, sessions, _) in enumerate(entries, 1)
        ),
        lines=(*(line for line in lines if line.kind != "reference"), *_commands(lines)),
    )


def said(text: str) -> str:
    """The quoted words of a line, or the line itself."""
    match = _QUOTE.search(text) or _ANY_QUOTE.search(text)
    return match[1] if match else text


def _add(lines: list[Line], kind: BulletKind, text: str, day: str, number: int) -> None:
    claim = conflict.claim(said(text))
    for line in lines:
        if line.kind != kind:
            continue
        near = words.folded(line.text) == words.folded(text)
        if near or (kind == "preference" and conflict.same(line.claim, claim)):
            if number not in line.tasks:
                line.tasks.append(number)
            return
    lines.append(Line(kind=kind, text=text, claim=claim, day=day, tasks=[number]))


def _named(name: str, ended: Sequence[Claim]) -> str:
    """A task that is called by a wish says so when the wish no longer holds."""
    claim = conflict.claim(name)
    return f"{name} (superseded)" if any(conflict.same(claim, other) for other in ended) else name


def _without_superseded(lines: Sequence[Line]) -> tuple[list[Line], list[Claim]]:
    """Newest first: a line that contradicts an older one takes its place and says so. With the claims that ended."""
    ordered = sorted(lines, key=lambda line: line.day, reverse=True)
    kept: list[Line] = []
    ended: list[Claim] = []
    for line in ordered:
        heir = next((k for k in kept if k.day > line.day and _ends(k, line)), None)
        if heir is None:
            kept.append(line)
        else:
            heir.supersedes.append(f'"{words.shorten(line.claim.text, 120)}", {line.day}')
            ended.append(line.claim)
    return kept, ended


def _ends(later: Line, earlier: Line) -> bool:
    if later.kind != "preference" or earlier.kind not in ("preference", "knowledge"):
        return False
    return conflict.supersedes(later.claim, earlier.claim)


def _commands(lines: Sequence[Line]) -> list[Line]:
    """What the references say of commands that passed, as knowledge: each command once.

    Of one task the runs count once, whoever tells them: a fork whose origin is gone tells those of its origin too.
    """
    found: dict[str, Line] = {}
    runs: dict[str, dict[int, int]] = {}
    for line in lines:
        match = _COMMAND.match(line.text) if line.kind == "reference" else None
        if not match:
            continue
        command = match[1]
        of_task = runs.setdefault(command, {})
        of_task.update((number, max(int(match[2] or 1), of_task.get(number, 0))) for number in line.tasks)
        if command in found:
            found[command].tasks.extend(n for n in line.tasks if n not in found[command].tasks)
        else:
            found[command] = Line("knowledge", command, conflict.claim(command), line.day, list(line.tasks))
    ranked = sorted(found, key=lambda command: (-len(found[command].tasks), -sum(runs[command].values())))[
        :_MAX_COMMANDS
    ]
    for command in ranked:
        count = sum(runs[command].values())
        times = f", {count} times" if count > 1 else ""
        found[command].text = f"{command} works here (passed{times}, last on {found[command].day})"
    return [found[command] for command in ranked]


def _keywords(sessions: Sequence[Session], name: str) -> tuple[str, ...]:
    found = words.unique(word for session in sessions for word in session.keywords)
    return tuple(found[:14]) or tuple(word for word in name.split() if len(word) > 3)[:6] or ("session",)
