"""What was done in a session, from its typed events and no word of a language: turns, commands, failures, files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stillroom.offline import shell
from stillroom.offline.sentences import clip, identifiers, sentences
from stillroom.sessions.directives import is_directive
from stillroom.sessions.events import Edit, Ran, Said
from stillroom.sessions.pasted import own_words

MAX_TURNS = 600
"""The first ones say what was wanted, the last ones what came of it."""
COMMAND_CHARS = 160
ERROR_CHARS = 180
_MAX_COMMANDS, _MAX_FAILURES, _MAX_FILES = 10, 12, 14
_FAR = 400
"""A later run is looked for among so many steps."""
_MOST_REMEDIES = 3
"""Where more commands ran between a failure and the pass, none of them is known to be the remedy."""
Outcome = Literal["success", "partial", "fail", "uncertain"]
_ERRORS = [
    (re.compile(r"^\s*E\s{2,}\S"), 6),
    (re.compile(r"\w+(?:Error|Exception)\b"), 4),
    (
        re.compile(
            r"\b(?:error|exception|panic(?:ked)?|fatal|failed|failure|cannot|can't|refused|denied|not found|no such"
            r"|undefined|unable|timed? ?out|expected|assert\w*|unreachable|invalid|missing|mismatch)\b",
            re.IGNORECASE,
        ),
        4,
    ),
    (re.compile(r"^\s*[→×✗✖]"), 3),
    (re.compile(r"^(?:error|fatal)", re.IGNORECASE), 2),
]
_NOISE = re.compile(
    r"in <module>|^\s*(?:throw|raise)\b|^\s*at |make: \*\*\*|ELIFECYCLE|exit status|^\s*File \"|\d+ (?:passed|failed)"
    r"|Tests? +\d|\| *\d+ *\||^\s*\d+ *\|"
)
_MAX_ERROR_LINES = 400
_DENIED = re.compile(
    r"Sandbox\(Denied|[Ss]andbox(?:ed)? (?:denied|error)|approval (?:denied|required)|Could not resolve host"
    r"|Temporary failure in name resolution|Network is unreachable|\bENOTFOUND\b|\bEAI_AGAIN\b"
)
_DENIED_CHARS = 2000


@dataclass(slots=True)
class Turn:
    """What a person said, and what was done until they spoke again."""

    number: int
    first: int  #: position of its first step among the session's events
    before: str = ""  #: the assistant's last words ahead of it
    task: str = ""  #: what another agent asked for, where no person did: a name for the work, and nobody's word
    said: list[Said] = field(default_factory=list)
    sentences: list[tuple[str, Said]] = field(default_factory=list)  #: the person's own, each with its message
    steps: list[Said | Ran] = field(default_factory=list)

    @property
    def runs(self) -> list[Ran]:
        return [step for step in self.steps if isinstance(step, Ran)]

    @property
    def edits(self) -> list[Edit]:
        return [edit for run in self.runs if run.ok is not False for edit in run.edits]

    @property
    def replies(self) -> list[Said]:
        return [step for step in self.steps if isinstance(step, Said) and step.who == "assistant"]


def turns_of(events: Sequence[Said | Ran]) -> list[Turn]:
    """The session as turns. What was done ahead of the person's first word belongs to none."""
    turns: list[Turn] = []
    last = ""
    for place, event in enumerate(events):
        if isinstance(event, Said) and event.who == "user":
            if not event.text.strip():
                continue
            if not turns or turns[-1].steps:
                turns.append(Turn(len(turns), place + 1, before=last))
            turns[-1].first = place + 1
            turns[-1].said.append(event)
            turns[-1].sentences += [(s, event) for own in own_words(event.text) for s in sentences(own)]
        elif not turns and isinstance(event, Said) and event.who == "agent":
            turns.append(Turn(0, place + 1, task=event.text))
        elif turns and not (isinstance(event, Said) and event.who == "harness"):
            turns[-1].steps.append(event)
            if isinstance(event, Said) and event.who == "assistant":
                last = event.text
    if len(turns) > MAX_TURNS:
        turns = turns[: MAX_TURNS // 2] + turns[-MAX_TURNS // 2 :]
        for number, turn in enumerate(turns):
            turn.number = number
    return turns


def placed(turns: Sequence[Turn]) -> Iterator[tuple[Turn, int, Said | Ran]]:
    """All steps with their turn and place."""
    for turn in turns:
        for place, step in enumerate(turn.steps, turn.first):
            yield turn, place, step


@dataclass(frozen=True, slots=True)
class Command:
    """A command that works in this project."""

    text: str
    runs: int
    turn: int  #: of its last pass
    run: Ran


def commands(turns: Sequence[Turn]) -> list[Command]:
    """Commands that passed and whose last run did not fail: named by the person, then checks, then the most used."""
    named = "\n".join(said.text for turn in turns for said in turn.said)
    counts: Counter[str] = Counter()
    last: dict[str, tuple[bool, int, Ran]] = {}
    for turn, _, run in placed(turns):
        if not isinstance(run, Ran) or not run.command or (good := shell.passed(run)) is None:
            continue
        for part in shell.telling(run.command):
            if not shell.is_chore(part) and len(part) <= COMMAND_CHARS:
                counts[part] += good
                last[part] = (good, turn.number, run)
    best: dict[str, str] = {}
    for part in last:
        name = shell.base(part)
        if last[part][0] and (name not in best or _rank(part, named, counts) < _rank(best[name], named, counts)):
            best[name] = part
    ranked = sorted(best.values(), key=lambda part: _rank(part, named, counts))
    return [Command(part, counts[part], last[part][1], last[part][2]) for part in ranked[:_MAX_COMMANDS]]


def _rank(part: str, named: str, counts: Counter[str]) -> tuple[bool, bool, int, int]:
    return part not in named, not shell.VERIFIES.search(part), -counts[part], len(part)


@dataclass(slots=True)
class Failure:
    """A command that failed, and what made it pass."""

    turn: int
    place: int
    command: str
    run: Ran
    error: str
    tries: int = 1
    passed: Ran | None = None
    passed_place: int = -1
    passed_turn: int = -1
    #: What was changed in between, in the order of the edits.
    edits: list[Edit] = field(default_factory=list)
    #: Other commands that ran in between.
    remedies: list[str] = field(default_factory=list)

    @property
    def passing(self) -> str:
        return clip(shell.unwrapped(self.passed.command or ""), COMMAND_CHARS) if self.passed else ""


def failures(turns: Sequence[Turn]) -> list[Failure]:
    """Failures in order, runs of one command that failed again as one."""
    steps = list(placed(turns))
    found: list[Failure] = []
    used: set[int] = set()
    for at, (turn, place, run) in enumerate(steps):
        if isinstance(run, Ran) and run.command and at not in used and shell.passed(run) is False:
            telling = shell.telling(run.command)
            if (not telling and shell.parts(run.command)) or shell.is_loop(run.command):
                continue  # a look that found nothing, or a script of which nobody knows what failed
            if _DENIED.search(run.output[:_DENIED_CHARS]):
                continue  # the sandbox or the network, and nothing of the project
            telling = telling or [shell.unwrapped(run.command)]
            failure = Failure(
                turn.number, place, clip(" && ".join(telling), COMMAND_CHARS), run, error_line(run.output)
            )
            _follow(failure, {shell.base(part) for part in telling}, steps, at + 1, used)
            found.append(failure)
            if len(found) == _MAX_FAILURES:
                break
    return found


def _follow(
    failure: Failure, bases: set[str], steps: Sequence[tuple[Turn, int, Said | Ran]], start: int, used: set[int]
) -> None:
    """Look for the run that passed, and what was done until then."""
    edits: list[Edit] = []
    between: list[str] = []
    for at, (turn, place, run) in enumerate(steps[start : start + _FAR], start):
        if not isinstance(run, Ran):
            continue
        good = shell.passed(run)
        again = bool(bases & {shell.base(part) for part in shell.parts(run.command or "")})
        if again and good is False:
            used.add(at)
            failure.tries += 1
            failure.error = failure.error or error_line(run.output)
        elif again and good:
            failure.passed, failure.passed_place, failure.passed_turn = run, place, turn.number
            failure.edits = edits
            if len(between) <= _MOST_REMEDIES:
                failure.remedies = [clip(part, COMMAND_CHARS) for part in dict.fromkeys(between)][-2:]
            return
        elif good is not False:
            edits += run.edits
            between += [part for part in shell.telling(run.command or "") if not is_directive(part)]


def error_line(output: str) -> str:
    """The line of an output that tells best what went wrong; the last one if none does."""
    best, text = 0, ""
    for line in output.splitlines()[:_MAX_ERROR_LINES]:
        points = sum(worth for pattern, worth in _ERRORS if pattern.search(line[:1000]))
        points -= 4 * bool(_NOISE.search(line[:1000]))
        if points > best:
            best, text = points, line.strip()
    text = text or output.strip().rpartition("\n")[2]
    return clip(re.sub(r"^(?:E\s+|→\s*)", "", text), ERROR_CHARS)


def tells_error(text: str) -> bool:
    """Whether a text speaks of an error, by the words of programs."""
    return any(pattern.search(text) for pattern, _ in _ERRORS)


def added(edits: Sequence[Edit]) -> list[str]:
    """Lines that the edits put in."""
    return [line[1:].strip() for edit in edits for line in edit.diff.splitlines() if line[:1] == "+" and len(line) > 4]


def changed(turns: Sequence[Turn]) -> list[str]:
    """Files that were edited and not put back, the most edited first."""
    counts: Counter[str] = Counter()
    for turn in turns:
        counts.update(edit.path for edit in turn.edits)
        for run in turn.runs:
            if run.command and shell.UNDOES.search(run.command):
                for path in [path for path in counts if path.rpartition("/")[2] in run.command]:
                    del counts[path]
    return [path for path, _ in counts.most_common(_MAX_FILES)]


@dataclass(slots=True)
class Fate:
    """What became of the lines that one turn put into files."""

    put: int = 0
    lost: int = 0
    #: Names, numbers and words that went with the lines that later turns took out or wrote over.
    gone: set[str] = field(default_factory=set)
    rows: set[tuple[str, str]] = field(default_factory=set)  #: the lost lines, with their file


def fates(turns: Sequence[Turn]) -> list[Fate]:
    """Follows every line through the session's edits and through git, whatever the language.

    A line counts as lost when a later turn removes it; what the lines in its place still say is not gone.
    """
    found = [Fate() for _ in turns]
    owner: dict[tuple[str, str], int] = {}
    open_lines: set[tuple[str, str]] = set()  #: not committed
    for turn in turns:
        for run in turn.runs:
            if run.command and shell.passed(run) is not False:
                command = shell.unwrapped(run.command)
                if shell.committed(run):
                    open_lines.clear()
                elif shell.UNDOES.search(command):
                    for key in [key for key in open_lines if _reaches(command, key[0])]:
                        _lose(found, owner, key, turn.number, frozenset())
                        open_lines.discard(key)
            for edit in run.edits if run.ok is not False else ():
                rows = edit.diff.splitlines()
                plus = [row[1:].strip() for row in rows if row[:1] == "+" and len(row.strip()) > 2]
                instead = details("\n".join(plus))
                for row in rows:
                    if row[:1] == "-":
                        _lose(found, owner, (edit.path, row[1:].strip()), turn.number, instead)
                        open_lines.discard((edit.path, row[1:].strip()))
                for line in plus:
                    found[turn.number].put += (edit.path, line) not in owner
                    owner[edit.path, line] = turn.number
                    open_lines.add((edit.path, line))
    return found


def _lose(
    found: Sequence[Fate], owner: dict[tuple[str, str], int], key: tuple[str, str], turn: int, instead: frozenset[str]
) -> None:
    by = owner.pop(key, turn)
    if by != turn:
        found[by].lost += 1
        found[by].gone |= details(key[1]) - instead
        found[by].rows.add(key)


def rows_of(edit: Edit) -> set[tuple[str, str]]:
    """The lines that an edit put in, with their file."""
    return {(edit.path, row[1:].strip()) for row in edit.diff.splitlines() if row[:1] == "+" and len(row.strip()) > 2}


def _reaches(command: str, path: str) -> bool:
    """Whether a command that undoes changes does so in this file."""
    name = path.rpartition("/")[2]
    return (
        name in command
        or re.search(r"--hard|stash|(?:checkout|restore)(?: --)? (?:\.|:/|HEAD)(?:\s|$)", command) is not None
    )


def details(text: str) -> frozenset[str]:
    """Names and numbers of a line, also those of one digit, and the words that names are made of."""
    numbers = re.findall(r"\d+(?:[.,]\d+)*", text)
    words = re.findall(r"[^\W\d_]{3,}", re.sub(r"(?<=[a-zа-я])(?=[A-ZА-Я])", " ", text))
    return identifiers(text) | frozenset(numbers) | frozenset(word.casefold() for word in words)


def outcome(turns: Sequence[Turn]) -> Outcome:
    """How work ended: by the last check after the last edit."""
    good: bool | None = None
    checked = edited = failed = False
    for turn in turns:
        for run in turn.runs:
            if run.edits and run.ok is not False:
                edited, checked = True, False
            elif run.command and any(shell.VERIFIES.search(part) for part in shell.telling(run.command)):
                good = shell.passed(run)
                checked = good is not None
                failed = failed or good is False
    if checked:
        return "success" if good else "partial" if edited else "fail"
    if any(shell.committed(run) for turn in turns for run in turn.runs):
        return "success"
    return "partial" if failed and edited else "uncertain"
