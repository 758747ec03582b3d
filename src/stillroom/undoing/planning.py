"""Works out what goes when sessions are forgotten, for a person to see. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from stillroom.config import Settings
from stillroom.store import Store
from stillroom.thread import Thread
from stillroom.undoing.choosing import Choice, choose, traces_of
from stillroom.undoing.handbook import GROUP, is_handbook
from stillroom.undoing.purging import Purge
from stillroom.undoing.residue import Left, residue
from stillroom.undoing.traces import Finder, Traces
from stillroom.undoing.unfinished import Forgetting
from stillroom.workspace.history import History
from stillroom.workspace.layout import HANDBOOK, LINES
from stillroom.workspace.scanning import scan
from stillroom.workspace.tree import shown


class PlannedThread(msgspec.Struct, frozen=True, kw_only=True):
    """A session that goes."""

    thread_id: str
    agent: str
    title: str
    cwd: str
    updated_at: int  #: seconds
    has_output: bool


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a file in the memory folder."""

    path: str
    text: str


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """What goes."""

    threads: tuple[PlannedThread, ...]
    #: Lines of the handbook, the summary, skills and notes.
    lines: tuple[Line, ...]
    #: Files that go whole: of the memory folder, and sessions that were recorded into the home.
    files: tuple[str, ...]
    #: Lines that rest on these sessions among others: they stay, for the next consolidation to look at.
    undecided: tuple[Line, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.threads or self.lines or self.files)


class Plan(msgspec.Struct, frozen=True):
    """What is to be forgotten, and what a person is shown of it."""

    work: Forgetting
    preview: Preview


def plan_forgetting(settings: Settings, store: Store, choice: Choice, *, now: int) -> Plan:
    """Work out what goes. Changes nothing. Raises `InvalidRequest` for a session or project that is not known."""
    threads = choose(settings, store, choice)
    history = History(settings.history, limits=settings.stage_two)
    readable = history if settings.history.exists() and history.repository.loads() else None
    traces = traces_of(settings, store, readable, threads, choice)
    traces = msgspec.structs.replace(traces, titles=_emptied(settings, readable, traces))
    files, lines, undecided = preview_of(settings, traces)
    files += [shown(str(path)) for path in own_recordings(settings, threads)]
    made = {stamp.thread_id for stamp in store.outputs.stamps()}
    preview = Preview(
        threads=tuple(
            PlannedThread(
                thread_id=thread.thread_id,
                agent=thread.agent,
                title=thread.title or thread.preview,
                cwd=thread.cwd,
                updated_at=thread.updated_at,
                has_output=thread.thread_id in made,
            )
            for thread in threads
        ),
        lines=tuple(lines),
        files=tuple(files),
        undecided=tuple(undecided),
    )
    return Plan(Forgetting(threads=tuple(threads), traces=traces, at=now), preview)


def still_there(settings: Settings, plan: Plan) -> list[Left]:
    """Where under the home anything speaks of it: also in what no preview shows, as logs and old versions."""
    finder = Finder(plan.work.traces)
    return residue(settings, lambda data: count_lines(finder, data), with_own=False) if plan.work.traces else []


def preview_of(settings: Settings, traces: Traces) -> tuple[list[str], list[Line], list[Line]]:
    """Files that go whole, lines that go, lines that nobody can decide, in the folder as it is now."""
    purge = _purge(settings, traces)
    files: list[str] = []
    lines: list[Line] = []
    undecided: list[Line] = []

    def visit(path: str, data: bytes, _: object) -> None:
        told = shown(path)
        purged = purge.text(data.decode("utf-8", "surrogateescape"))
        if purged.text is None or purge.finder.names_in(path):
            files.append(told)
            return
        lines.extend(Line(path=told, text=text) for text in purged.dropped if text.strip())
        undecided.extend(Line(path=told, text=text) for text in purged.undecided)

    if settings.root.is_dir():
        scan(settings.root, limits=settings.stage_two, visit=visit)
    return files, lines, undecided


def _emptied(settings: Settings, history: History | None, traces: Traces) -> frozenset[str]:
    """Task groups that go whole, in any version, and that nobody else's sessions are in."""
    purge = _purge(settings, traces)
    emptied: set[str] = set()
    there: set[str] = set()
    handbook = settings.root / HANDBOOK
    if handbook.is_file() and not handbook.is_symlink():
        cut = purge.text(handbook.read_text(encoding="utf-8", errors="surrogateescape"))
        emptied |= cut.emptied
        there = {line.removeprefix(GROUP).strip() for line in (cut.text or "").split("\n") if line.startswith(GROUP)}

    def visit(name: str, kind: str, data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        if kind == "blob" and is_handbook(text.split("\n")):
            emptied.update(purge.text(text).emptied)

    if history is not None:
        paths = history.repository.blob_paths()
        history.repository.visit(visit, ids=[blob for blob, path in paths.items() if path == HANDBOOK])
    return frozenset(emptied - there)


def _purge(settings: Settings, traces: Traces) -> Purge:
    purge = Purge(Finder(traces))
    record = settings.root / LINES
    if record.is_file() and not record.is_symlink():
        purge.learn_record(record.read_bytes())
    return purge


def own_recordings(settings: Settings, threads: Iterable[Thread]) -> list[Path]:
    """Sessions that were recorded into the home, or copied there: no agent has them."""
    home = settings.home.resolve()
    paths = [Path(thread.rollout_path) for thread in threads]
    return [path for path in paths if path.is_file() and path.resolve().is_relative_to(home)]


def count_lines(finder: Finder, data: bytes) -> int:
    """Lines that speak of it, also of texts that JSON holds in one line."""
    if not finder.may_be_in(data):
        return 0
    lines = data.decode("utf-8", "replace").replace("\\n", "\n").split("\n")
    return sum(map(finder.is_traced, lines))


__all__ = ["Line", "Plan", "Preview", "count_lines", "own_recordings", "plan_forgetting", "preview_of", "still_there"]
