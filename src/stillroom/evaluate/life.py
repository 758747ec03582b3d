"""What becomes of a memory: does it leak, does it repeat what no longer holds, does it grow by echo, does it forget?

Three made-up projects with rules that contradict each other live through two rounds in a throw-away home. Then one
session is forgotten, and every byte is looked at; at last a session repeats all that memory told it, ten times over.
"""

from __future__ import annotations

import re
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from stillroom.config import Provider
from stillroom.evaluate.labels import bullets_of
from stillroom.evaluate.measures import Cost, cost_of
from stillroom.evaluate.scenario import Block, Scenario, from_table
from stillroom.evaluate.trial import Trial
from stillroom.progress import Progress, ProgressListener, silent

ECHO_CYCLES = 10
_ROUNDS = (1, 2)
_LISTS = re.compile(r"^### .*\n(?:(?!#).*\n)*", re.MULTILINE)
_SAID = re.compile(r'the user (?:said|asked|decided): "([^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large the memory is."""

    statements: int  #: bullets of `MEMORY.md` but its lists of summary files and keywords
    bytes: int  #: of `MEMORY.md`


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What became of the memory of the made-up projects."""

    own: int  #: things of one project, each looked for in every other one
    leaked: tuple[str, ...]  #: lines that give one of them in another project
    replaced: int  #: things that no longer hold
    still_given: int  #: of these: given without a word of what took its place
    still_told: tuple[str, ...]  #: the lines that give them
    newer_given: int  #: of `replaced`: what took its place is given
    sizes: tuple[Size, ...]  #: before the first echo, and after each
    words_before: int  #: bytes of the words of the forgotten session under the home, before
    residue: int  #: the same afterwards
    returned: int  #: the same after all passes that followed
    places: tuple[str, ...]  #: where they are then
    cost: Cost

    @property
    def growth(self) -> float:
        """Statements after all echoes for each one before them: 1.0 is as it must be."""
        before = self.sizes[0].statements
        return self.sizes[-1].statements / before if before else 1.0

    def table(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "growth": round(self.growth, 3)}


def measure_life(
    path: Path,
    *,
    engine: str,
    providers: Mapping[str, Provider] | None = None,
    cycles: int = ECHO_CYCLES,
    on_progress: ProgressListener = silent,
) -> Life:
    """Live through the set in `path`."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    sessions = {entry["name"]: from_table(entry["name"], entry) for entry in table["sessions"]}
    steps = len(_ROUNDS) + cycles
    with tempfile.TemporaryDirectory(prefix="stillroom-eval-") as folder:
        trial = Trial(Path(folder), engine=engine, providers=providers)
        for number in _ROUNDS:
            on_progress(Progress(stage="evaluate", done=number - 1, total=steps, note="two rounds"))
            for entry in table["sessions"]:
                if entry["round"] == number:
                    trial.add(sessions[entry["name"]])
            trial.run()
        given = {cwd: bullets_of(trial.given(cwd)) for cwd in {session.cwd for session in sessions.values()}}
        replaced = [_Replaced.of(entry) for entry in table["replaced"]]
        still = [lines for each in replaced if (lines := each.still_in(given[each.cwd]))]
        words = table["forgotten"]["words"]
        before, _ = trial.residue(words)
        trial.forget([sessions[table["forgotten"]["session"]].thread_id])
        residue, places = trial.residue(words)
        trial.run()
        sizes = [_size(trial)]
        newest = max(session.started for session in sessions.values())
        for number in range(cycles):
            on_progress(Progress(stage="evaluate", done=number + 2, total=steps, note="echoes"))
            trial.add(_echo(trial, table["echo"]["cwd"], number, newest + timedelta(days=number + 1)))
            trial.run()
            sizes.append(_size(trial))
        returned, returned_to = trial.residue(words)
        return Life(
            own=sum(len(entry["all"]) for entry in table["own"]),
            leaked=_leaked(table["own"], given),
            replaced=len(replaced),
            still_given=len(still),
            still_told=tuple(dict.fromkeys(line for lines in still for line in lines)),
            newer_given=sum(each.newer_in(given[each.cwd]) for each in replaced),
            sizes=tuple(sizes),
            words_before=before,
            residue=residue,
            returned=returned,
            places=tuple(dict.fromkeys((*places, *returned_to))),
            cost=cost_of(trial),
        )


def scenarios_of(path: Path) -> list[Scenario]:
    """The sessions of such a set, without the echoes."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return [from_table(entry["name"], entry) for entry in table["sessions"]]


def _size(trial: Trial) -> Size:
    handbook = trial.handbook()
    listed = _LISTS.sub("", handbook)
    return Size(statements=len(bullets_of(listed)), bytes=len(handbook.encode()))


def _leaked(own: Sequence[Mapping[str, Any]], given: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for entry in own:
        wanted = re.compile("|".join(f"(?:{pattern})" for pattern in entry["all"]), re.I)
        for cwd, lines in given.items():
            mine = {pattern for other in own if other["cwd"] == cwd for pattern in other["all"]}
            if cwd != entry["cwd"]:
                found.update(dict.fromkeys(line for line in lines if wanted.search(line) and not _of(line, mine)))
    return tuple(found)


def _of(line: str, patterns: set[str]) -> bool:
    """Whether a line tells something of a project's own: `300 seconds` may stand beside another one's timeout."""
    return any(re.search(pattern, line, re.I) for pattern in patterns)


@dataclass(frozen=True, slots=True)
class _Replaced:
    cwd: str
    old: re.Pattern[str]
    new: re.Pattern[str]

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> _Replaced:
        old, new = ("|".join(entry[key]) for key in ("old", "new"))
        return cls(entry["cwd"], re.compile(old, re.I), re.compile(new, re.I))

    def still_in(self, lines: Sequence[str]) -> list[str]:
        """Lines that tell the old without the new."""
        return [line for line in lines if self.old.search(line) and not self.new.search(line)]

    def newer_in(self, lines: Sequence[str]) -> bool:
        return any(self.new.search(line) for line in lines)


def _echo(trial: Trial, cwd: str, number: int, started: datetime) -> Scenario:
    """A session that is given the memory, as a client would put it in. The assistant says it all again, the person one
    line of it."""
    given = trial.given(cwd)
    lines = bullets_of(given)
    wishes = [quoted[1] for line in lines if (quoted := _SAID.search(line))]
    again = wishes[number % len(wishes)] if wishes else "go on as before"
    said = "What I know of this project:\n\n" + "\n".join(f"- {line}" for line in lines)
    blocks: list[Block] = [
        ("h", given, ""),
        ("u", f"what do we know of this project? ({number})", ""),
        ("c", said, ""),
        ("u", again, ""),
        ("f", "You are welcome. In short:\n\n" + "\n".join(lines), ""),
    ]
    return Scenario(
        name=f"echo-{number}",
        language="en",
        cwd=cwd,
        started=started,
        script="",
        tools="exec_command",
        source="cli",
        branch="main",
        origin=None,
        table={},
        said=tuple(blocks),
    )
