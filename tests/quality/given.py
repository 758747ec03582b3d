"""How much of what `MEMORY.md` holds of a project a session there is given, in homes with few and with many projects.

python -m tests.quality.given [--split dev] [--homes 1x1 1x8 50x4 200x1] [--verbose]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from tests.quality.build import Scenario, load, thread_of, write_rollout
from tests.quality.score import distil_offline, scenario_paths

from stillroom.config import Settings
from stillroom.evaluate.labels import LINES_OF, Label, Labels, labels_of
from stillroom.offline import consolidate
from stillroom.recall.injection.instructions import Instructions, compose
from stillroom.recall.injection.preparing import make_ready
from stillroom.recall.injection.scopes import KnownFolder
from stillroom.recall.projects.remotes import normalise_remote
from stillroom.recall.projects.repository import Repository
from stillroom.store.records import Stage1Draft, Stage1Output
from stillroom.workspace.artifacts import render
from stillroom.workspace.syncing import sync

_GROUP = "# Task Group:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A labelled session, and what the offline engine made of it."""

    labels: Labels
    output: Stage1Output


@dataclass(slots=True, kw_only=True)
class Given:
    """Sums over the projects of a home."""

    projects: int = 0
    held: int = 0
    given: int = 0
    tokens: int = 0
    missed: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.given / self.held if self.held else 1.0


def distilled(paths: Sequence[Path], home: Path) -> list[Session]:
    """The sessions of which the engine made something."""
    found = []
    for path in paths:
        scenario = load(path)
        rollout = write_rollout(scenario, home)
        draft = distil_offline(scenario, rollout)
        if draft is not None:
            found.append(Session(labels=labels_of(scenario.table), output=_output(scenario, rollout, draft)))
    return found


def homes(sessions: Sequence[Session], projects: int, each: int) -> Iterator[list[Session]]:
    """Homes with so many projects of so many sessions. Of one project: as many homes as the sessions make."""
    if projects == 1:
        for start in range(0, len(sessions) - each + 1, each):
            yield [_moved(session, 0, number) for number, session in enumerate(sessions[start : start + each])]
        return
    yield [
        _moved(sessions[(project * each + number) % len(sessions)], project, number)
        for project in range(projects)
        for number in range(each)
    ]


def _moved(session: Session, project: int, number: int) -> Session:
    """The same session in the folder of a project of another name."""
    output = session.output
    cwd = f"/home/ada/work/project-{project}"
    return Session(
        labels=session.labels,
        output=msgspec.structs.replace(
            output,
            thread_id=f"{output.thread_id[:-6]}{project:03x}{number:03x}",
            cwd=cwd,
            raw_memory=output.raw_memory.replace(f"cwd: {output.cwd}\n", f"cwd: {cwd}\n"),
            git_origin_url=f"https://example.com/ada/project-{project}",
        ),
    )


def measure(sessions: Sequence[Session], work: Path) -> Given:
    """One home with all of these; a session starts in each of the projects."""
    settings = Settings(home=work)
    settings.root.mkdir(parents=True)
    outputs = sorted((session.output for session in sessions), key=lambda output: output.thread_id)
    sync(settings.root, render(outputs))
    consolidate(settings.root, outputs, now=0, limits=settings.stage_two)
    ready = make_ready(settings, [_folder(output) for output in outputs])
    groups = _groups((settings.root / "MEMORY.md").read_text(encoding="utf-8"))
    found = Given()
    for cwd in dict.fromkeys(session.output.cwd for session in sessions):
        facts = [fact for session in sessions if session.output.cwd == cwd for fact in session.labels.facts]
        start = compose(ready, home=str(settings.home), cwd=cwd)
        text = start.text if isinstance(start, Instructions) else ""
        held = _held(facts, groups.get(cwd, "").splitlines())
        given = _held(held, text.splitlines())
        found.projects += 1
        found.held += len(held)
        found.given += len(given)
        found.tokens += start.memory_tokens if isinstance(start, Instructions) else 0
        found.missed += [f"{cwd}: {fact.kind}: {fact.text}" for fact in held if fact not in given]
    return found


def _output(scenario: Scenario, rollout: Path, draft: Stage1Draft) -> Stage1Output:
    thread = thread_of(scenario, rollout)
    return Stage1Output(
        thread_id=thread.thread_id,
        source_updated_at=thread.updated_at,
        raw_memory=draft.raw_memory,
        rollout_summary=draft.rollout_summary,
        rollout_slug=draft.rollout_slug,
        rollout_path=thread.rollout_path,
        cwd=thread.cwd,
        git_branch=thread.git_branch,
        git_origin_url=thread.git_origin_url,
        generated_at=thread.updated_at + 3600,
        engine="offline",
    )


def _folder(output: Stage1Output) -> KnownFolder:
    remote = normalise_remote(output.git_origin_url) if output.git_origin_url else None
    found = Repository(place="", folder=output.cwd, is_git=remote is not None, remote=remote)
    return KnownFolder(output.cwd, found)


def _groups(memory: str) -> dict[str, str]:
    """The task groups by their first folder."""
    found = {}
    for part in memory.split(f"\n{_GROUP}"):
        _, applies, rest = part.partition("applies_to: cwd=")
        if applies:
            found[rest.partition(";")[0].partition(", ")[0]] = part
    return found


def _held(facts: Sequence[Label], lines: Sequence[str]) -> list[Label]:
    return [fact for fact in facts if any(fact.is_kept_in(window) for window in _windows(fact, lines))]


def _windows(fact: Label, lines: Sequence[str]) -> list[str]:
    size = LINES_OF.get(fact.kind, 1)
    return ["\n".join(lines[start : start + size]) for start in range(len(lines))]


def measured(sessions: Sequence[Session], projects: int, each: int, work: Path) -> Given:
    """The sums over all homes of this kind."""
    total = Given()
    for number, home in enumerate(homes(sessions, projects, each)):
        found = measure(home, work / f"home-{projects}-{each}-{number}")
        total.projects += found.projects
        total.held += found.held
        total.given += found.given
        total.tokens += found.tokens
        total.missed += found.missed
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--split", default="dev")
    parser.add_argument("--homes", nargs="+", default=["1x1", "1x8", "50x4", "200x1"], help="PROJECTSxSESSIONS")
    parser.add_argument("--verbose", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        sessions = distilled(scenario_paths(asked.split), base / "codex")
        print("| projects | sessions each | facts in MEMORY.md | given | share | tokens, mean |")
        print("|---|---|---|---|---|---|")
        for home in asked.homes:
            projects, each = map(int, home.split("x"))
            found = measured(sessions, projects, each, base)
            tokens = found.tokens / found.projects
            print(f"| {projects} | {each} | {found.held} | {found.given} | {found.share:.2f} | {tokens:.0f} |")
            if asked.verbose:
                print(*found.missed, sep="\n")


if __name__ == "__main__":
    main()
