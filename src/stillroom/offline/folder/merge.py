"""One group's lines: doubles merged, what a newer session ended marked as superseded."""

from __future__ import annotations

import re
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
#: How an error is told: the cure first, or, in older outputs, the error first.
_WHEN = late(r" when (`.+?` fails with \".+?\")(?= \(|$)")
_FAILED = late(r"^(`[^`]+` failed(?: \([^()]*\))?: [^|]+?)(?= \||$)")
#: A command that failed, and another one did the work; and a failure that a command cured.
_TAKEN_OVER = late(
    r"^`([^`]+)` failed\b.*\| what worked: `[^`]+`"
    r"|^Run `([^`]+)` when `([^`]+)` fails\b(?!.*(?:it passed|\(then (?!`\2` passed)))"
)
_CURED_BY = late(r"\| what worked: `([^`]+)`|^Run `([^`]+)` when ")
_CODE = late(r"`([^`]+)`")
_NEARLY_EQUAL = 0.95
_MAX_CHARS = 480


@dataclass(slots=True)
class Line:
    """One line of the handbook, with the tasks that it rests on."""

    kind: BulletKind
    text: str
    claim: Claim
    moment: str  #: when the session ended that says it, ISO 8601
    tasks: list[int]
    #: The sessions that say it, by their references.
    sessions: list[str] = field(default_factory=list)
    supersedes: list[str] = field(default_factory=list)  #: `"old words", 2026-11-02`

    @property
    def day(self) -> str:
        return self.moment[:10]

    def render(self, *, with_history: bool = True) -> str:
        #: A fork says again what its origin says, of the same task.
        times = min(len(self.tasks), len(self.sessions))
        often = f" ({'said in' if self.kind == 'preference' else 'in'} {times} sessions, last {self.day})"
        history = f" (supersedes: {'; '.join(self.supersedes[:3])})" if self.supersedes and with_history else ""
        return f"{self.text}{often if times > 1 else ''}{history}"


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
    first_said = _first_said(group.sessions)
    for session in group.sessions:
        for task in session.tasks:
            name = first_said.get(id(task), task.name)
            known = next((e for e in entries if words.folded(e[0]) == words.folded(name)), None)
            if known is None:
                entries.append((name, task.outcome, [session], [task]))
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
                        _add(lines, kind, bullet, session, number)
    lines += _endings(lines, group.sessions, entries)
    lines, ended = _without_superseded(lines)
    lines = _without_retired(lines)
    return Block(
        group=group,
        tasks=tuple(
            Entry(number, _named(name, ended), outcome, tuple(sessions), _keywords(sessions, tasks, name))
            for number, (name, outcome, sessions, tasks) in enumerate(entries, 1)
        ),
        lines=(*(line for line in lines if line.kind != "reference"), *_commands(lines)),
    )


def _first_said(sessions: Sequence[Session]) -> dict[int, str]:
    """The name of an earlier task for each task, by its id, that says nothing new and did nothing: a talk about the
    memory, or a wish told once more, is no task of its own."""
    seen: list[tuple[Line, str]] = []
    found: dict[int, str] = {}
    for session in reversed(sessions):
        for task in session.tasks:
            lines = [
                Line(kind, text, conflict.claim(said(text)), session.moment, [], [])
                for kind, bullets in task.bullets.items()
                for text in bullets
            ]
            earlier = [
                next((name for old, name in seen if old.kind == line.kind and _says_the_same(old, line)), None)
                for line in lines
            ]
            if task.bullets.keys() == {"preference"} and earlier[0] and all(earlier):
                found[id(task)] = earlier[0]
            else:
                seen += [(line, task.name) for line in lines]
    return found


def said(text: str) -> str:
    """The quoted words of a line, or the line itself."""
    match = _QUOTE.search(text) or _ANY_QUOTE.search(text)
    return match[1] if match else text


def _add(lines: list[Line], kind: BulletKind, text: str, session: Session, number: int) -> None:
    """Put a bullet to the line that says the same; sessions come newest first, and the newest words stay."""
    line = Line(kind, text, conflict.claim(said(text)), session.moment, [number], [session.reference])
    known = next((each for each in lines if each.kind == kind and _says_the_same(each, line)), None)
    if known is None:
        lines.append(line)
        return
    if kind == "failure" and session.reference == known.sessions[0]:
        known.text = _with_cure(known.text, text)
    if number not in known.tasks:
        known.tasks.append(number)
    if session.reference not in known.sessions:
        known.sessions.append(session.reference)


def _says_the_same(one: Line, other: Line) -> bool:
    if words.folded(one.text) == words.folded(other.text):
        return True
    if one.kind == "preference":
        return conflict.same(one.claim, other.claim)
    if one.kind == "failure":
        sign = _sign(one.text)
        return sign != "" and sign == _sign(other.text)
    return one.kind == "knowledge" and _are_nearly_equal(one, other)


def _are_nearly_equal(one: Line, other: Line) -> bool:
    """The same names and numbers, and all but one word in twenty."""
    if one.claim.numbers != other.claim.numbers or one.claim.negative != other.claim.negative:
        return False
    near = words.jaccard(one.claim.subject, other.claim.subject) >= _NEARLY_EQUAL
    return near and set(words.identifiers(one.text)) == set(words.identifiers(other.text))


def _sign(text: str) -> str:
    """By what a failure is known: the command and its error; "" where no error is told."""
    match = _WHEN.search(text) or _FAILED.match(text)
    return words.folded(match[1]) if match else ""


def _with_cure(known: str, text: str) -> str:
    """One line for an error that took several edits."""
    one, other = _WHEN.search(known), _WHEN.search(text)
    if one and other:
        more = known[: one.start()].split("; ")
        head = text[: other.start()]
        joined = f"{'; '.join([*more, f'{head[:1].lower()}{head[1:]}'])}{known[one.start() :]}"
        is_new = all(words.folded(head) != words.folded(each) for each in more)
        return joined if is_new and len(joined) <= _MAX_CHARS else known
    if one or other:
        return known
    parts = known.split(" | ")
    cures = [part for part in text.split(" | ") if part.startswith("fixed in ") and part not in parts]
    at = next((number for number, part in enumerate(parts) if part.startswith("then ")), len(parts))
    joined = " | ".join([*parts[:at], *cures, *parts[at:]])
    return joined if len(joined) <= _MAX_CHARS else known


def _named(name: str, ended: Sequence[Claim]) -> str:
    """A task that is called by a wish says so when the wish no longer holds."""
    claim = conflict.claim(name)
    return f"{name} (superseded)" if any(conflict.same(claim, other) for other in ended) else name


def _without_superseded(lines: Sequence[Line]) -> tuple[list[Line], list[Claim]]:
    """Newest first: a line that contradicts an older one takes its place and says so. With the claims that ended."""
    ordered = sorted(lines, key=lambda line: line.moment, reverse=True)
    kept: list[Line] = []
    ended: list[Claim] = []
    for line in ordered:
        heir = next((k for k in kept if k.moment > line.moment and _ends(k, line)), None)
        if heir is None:
            kept.append(line)
        else:
            match = _COMMAND.match(line.text) if line.kind == "reference" else None
            old = match[1] if match else f'"{words.shorten(line.claim.text, 120)}"'
            heir.supersedes.append(f"{old}, {line.day}")
            ended.append(line.claim)
    return kept, ended


def _ends(later: Line, earlier: Line) -> bool:
    if later.kind != "preference":
        return False
    if earlier.kind in ("preference", "knowledge"):
        return conflict.supersedes(later.claim, earlier.claim)
    match = _COMMAND.match(earlier.text) if earlier.kind == "reference" else _CURED_BY.search(earlier.text)
    command = next(filter(None, match.groups()), "") if match else ""
    return bool(command) and conflict.ends_program(later.claim, command)


def _endings(
    lines: Sequence[Line], sessions: Sequence[Session], entries: Sequence[tuple[str, str, list[Session], list[Task]]]
) -> list[Line]:
    """What a person said beside which ends a line of an earlier session: "tox is dead" is no memory by itself, and is
    one where the memory says to run tox. What they said next goes with it when it is about the same."""
    found: list[Line] = []
    for session in sessions:
        older = [line for line in lines if line.moment < session.moment]
        number = next(at for at, (_, _, those, _) in enumerate(entries, 1) if session in those)
        taken = ""
        for at, quote in enumerate(session.aside):
            claim = conflict.claim(quote)
            if not claim.changes or quote == taken:
                continue
            line = Line("preference", f'the user said: "{quote}"', claim, session.moment, [number], [session.reference])
            ended = next((each for each in older if _ends(line, each)), None)
            if ended is None:
                continue
            after = session.aside[at + 1] if at + 1 < len(session.aside) else ""
            if after and claim.subject <= claim.refused and conflict.share_a_word(after, ended.claim):
                taken = after
                line.text = f'the user said: "{quote} {after}"'
                line.claim = conflict.claim(f"{quote} {after}")
            found.append(line)
    return found


def _without_retired(lines: Sequence[Line]) -> list[Line]:
    """Without commands that passed, and cures by them, from before they failed for good and another one took over."""
    passed: dict[str, str] = {}
    retired: dict[str, str] = {}
    for line in lines:
        if line.kind == "reference" and _COMMAND.match(line.text) and (name := _named_in(_CODE, line.text)):
            passed[name] = max(passed.get(name, ""), line.day)
    for line in lines:
        match = _TAKEN_OVER.match(line.text) if line.kind == "failure" else None
        name = (match[1] or match[3]) if match else ""
        if name and passed.get(name, "") < line.day:
            retired[name] = max(retired.get(name, ""), line.day)
    if not retired:
        return list(lines)

    def is_retired(line: Line) -> bool:
        if line.kind == "reference":
            return _COMMAND.match(line.text) is not None and line.day < retired.get(_named_in(_CODE, line.text), "")
        return line.kind == "failure" and line.day < retired.get(_named_in(_CURED_BY, line.text), "")

    return [line for line in lines if not is_retired(line)]


def _named_in(expression: re.Pattern[str], text: str) -> str:
    """What the first group that took part has; "" where nothing matches."""
    match = expression.search(text)
    return next(filter(None, match.groups()), "") if match else ""


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
            found[command] = Line("knowledge", command, conflict.claim(command), line.moment, list(line.tasks))
    ranked = sorted(found, key=lambda command: (-len(found[command].tasks), -sum(runs[command].values())))[
        :_MAX_COMMANDS
    ]
    for command in ranked:
        count = sum(runs[command].values())
        times = f", {count} times" if count > 1 else ""
        found[command].text = f"{command} works here (passed{times}, last on {found[command].day})"
    return [found[command] for command in ranked]


def _keywords(sessions: Sequence[Session], tasks: Sequence[Task], name: str) -> tuple[str, ...]:
    """Of a session with several tasks, the keywords that stand in this one's name or lines."""
    bullets = (bullet for task in tasks for each in task.bullets.values() for bullet in each)
    told = words.folded(" ".join([name, *bullets]))
    found = words.unique(
        word
        for session in sessions
        for word in session.keywords
        if len(session.tasks) == 1 or words.folded(word) in told
    )
    return tuple(found[:14]) or tuple(word for word in name.split() if len(word) > 3)[:6] or ("session",)
