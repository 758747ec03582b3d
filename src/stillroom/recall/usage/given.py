"""Counts that sessions were given memory: what a session is given at its start is in use, whether it is cited or not.

The hook writes which session was given memory; the project of its folder says whose outputs that were. It is a use of
time, not of rank: what many sessions are given stays, and ranks no higher for it.
"""

from __future__ import annotations

from stillroom.clock import Clock
from stillroom.config import Settings
from stillroom.recall.injection import prepared
from stillroom.recall.injection.folders import known_folders
from stillroom.recall.projects.declared import Declared, load_declared
from stillroom.recall.projects.repository import Repository, identify
from stillroom.recall.usage.sessions import told_sessions
from stillroom.store import Store
from stillroom.store.records import Rested

#: A shorter beginning of a line may be anybody's.
_LEAST_CHARS = 24
_MOST_CHARS = 64


def count_given(settings: Settings, store: Store, clock: Clock) -> int:
    """Note for every output that the memory rests on when a session was last given it; how many were younger then.

    Blocking. The newest few hundred sessions are looked at each time: whatever is noted already stays as it is.
    """
    now = clock.now()
    given: dict[str, int] = {}
    for session in told_sessions(settings.home):
        given[session.cwd] = max(given.get(session.cwd, 0), min(session.at, now))
    outputs = store.outputs.rested_on() if given else []
    if not outputs:
        return 0
    declared = load_declared(str(settings.home))
    projects = {folder.cwd: folder.repository for folder in known_folders(settings, store)}
    known = list(dict.fromkeys(projects.values()))
    everywhere, latest = _everywhere(settings), max(given.values())
    at_of_project: dict[Repository, int] = {}
    for cwd, at in given.items():
        for project in _projects_of(cwd, known, declared):
            at_of_project[project] = max(at_of_project.get(project, 0), at)
    seen: dict[str, int] = {}
    for output in outputs:
        own = projects.get(output.cwd)
        at = max(given.get(output.cwd, 0), at_of_project.get(own, 0) if own is not None else 0)
        if at < latest and _says_one_of(output, everywhere):
            at = latest
        if at:
            seen[output.thread_id] = at
    return store.outputs.give(seen)


def _projects_of(cwd: str, known: list[Repository], declared: Declared) -> list[Repository]:
    session = declared.project_of(cwd, identify(cwd))
    return [known[number] for number in declared.same(session, known)]


def _everywhere(settings: Settings) -> str:
    """The statements that every session is given, whatever its project."""
    ready = prepared.load(str(settings.home))
    try:
        return "\n".join(statement.text for statement in ready.part(-1)) if ready else ""
    except prepared.DAMAGED:
        return ""


def _says_one_of(output: Rested, everywhere: str) -> bool:
    bullets = (line.strip()[2:] for line in output.raw_memory.splitlines() if line.lstrip().startswith("- "))
    return (
        any(len(text) >= _LEAST_CHARS and text[:_MOST_CHARS] in everywhere for text in bullets) if everywhere else False
    )
