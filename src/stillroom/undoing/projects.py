"""Switches the memory off and on for a project: sessions there are told nothing, and nothing of them is learnt."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from stillroom.clock import SystemClock
from stillroom.config import Settings
from stillroom.errors import StoreError, WorkspaceError, way_out
from stillroom.recall.injection.folders import ask_first_commit
from stillroom.recall.projects.declared import FILE as PROJECTS
from stillroom.recall.projects.declared import Declared, load_declared
from stillroom.recall.projects.repository import Repository, identify
from stillroom.recall.projects.switched_off import FILE, SwitchedOff, load_switched_off, save_switched_off
from stillroom.store import Store
from stillroom.store.records import Folder


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project as a person knows it."""

    folder: str
    #: A repository, with all its worktrees and clones; else the folder and everything below it.
    is_git: bool
    remote: str | None = None


class Switch(msgspec.Struct, frozen=True, kw_only=True):
    """What switching a project did."""

    project: Project
    changed: bool
    #: Sessions of it that are known.
    threads: int = 0
    #: Of these: in the memory until the next consolidation.
    remembered: int = 0
    #: Why they could not be looked at; the next pass does.
    unsure: str | None = None


def switch_project(settings: Settings, cwd: Path, *, on: bool) -> Switch:
    """Switch the memory of the project that `cwd` is in off, or on again. Works without the state database.

    Raises `WorkspaceError` when the list of switched off projects can't be read or written.
    """
    home, folder = str(settings.home), str(cwd.absolute())
    off, declared = _loaded(settings), declared_projects(settings)
    project = declared.project_of(folder, identify(folder))
    known = off.which(folder, project, declared)
    changed = (known is not None) == on
    if changed and known is not None:
        off.projects.remove(known)
    elif changed:
        off.projects.append(with_first_commit(project, settings))
    if changed:
        try:
            save_switched_off(home, off)
        except OSError as error:
            raise WorkspaceError(
                f"`{settings.home / FILE}` can't be written: {error.strerror}", hint=way_out(error, settings.home)
            ) from error
    told = Project(folder=project.folder, is_git=project.is_git, remote=project.remote)
    if known is not None:
        told = Project(folder=known.folder, is_git=known.is_git, remote=known.remote)
    threads, remembered, unsure = 0, 0, None
    try:
        if settings.database.is_file():
            with Store.open(settings.database, clock=SystemClock(), limits=settings.database_limits) as store:
                obey_switches(settings, store)
                meant = SwitchedOff([known or project])
                places = (place_of(each, declared) for each in folders_of_threads(store))
                cwds = [cwd for cwd, place in places if meant.covers(cwd, place, declared)]
                threads, remembered = store.folders.count(cwds)
    except StoreError as error:
        unsure = str(error)
    return Switch(project=told, changed=changed, threads=threads, remembered=remembered, unsure=unsure)


def switched_off_projects(settings: Settings) -> list[Project]:
    """All of them. Raises `WorkspaceError` when the list can't be read."""
    return [Project(folder=p.folder, is_git=p.is_git, remote=p.remote) for p in _loaded(settings).projects]


def obey_switches(settings: Settings, store: Store) -> int:
    """Bring the threads in line with what is switched off; how many of them changed.

    What is remembered of a project that is newly off leaves at the next consolidation. Raises `WorkspaceError` when the
    list can't be read: whatever it says must not be learnt, nor forgotten, by mistake.
    """
    off = _loaded(settings)
    if not off and not store.folders.has_switched_off():
        return 0
    declared = declared_projects(settings)
    places = (place_of(folder, declared) for folder in folders_of_threads(store))
    return store.folders.switch_off([cwd for cwd, place in places if off.covers(cwd, place, declared)])


def _loaded(settings: Settings) -> SwitchedOff:
    off = load_switched_off(str(settings.home))
    if off.unreadable:
        raise WorkspaceError(
            f"`{settings.home / FILE}` can't be read, so nobody knows what is switched off",
            hint="mend it; or delete it, and say `stillroom memories --off` again where you want it",
        )
    return off


def folders_of_threads(store: Store) -> list[Folder]:
    """Every folder that is one, the newest first."""
    return [folder for folder in store.folders.newest(limit=sys.maxsize) if Path(folder.cwd).is_absolute()]


def declared_projects(settings: Settings) -> Declared:
    """What a person said of projects. Raises `WorkspaceError` when that can't be read."""
    declared = load_declared(str(settings.home))
    if declared.unreadable:
        raise WorkspaceError(
            f"`{settings.home / PROJECTS}` can't be read, so nobody knows which folders are one project",
            hint="mend it; or delete it, and say `stillroom projects --join` or `--apart` again",
        )
    return declared


def place_of(folder: Folder, declared: Declared) -> tuple[str, Repository]:
    """The folder, and the project that it was when it was last there, or is now."""
    known = folder.checkout
    if known is None or not known.folder:
        return folder.cwd, declared.project_of(folder.cwd, identify(folder.cwd))
    project = Repository(
        place=known.place,
        folder=known.folder,
        is_git=known.is_git,
        remote=known.remote,
        first_commit=known.first_commit,
    )
    return folder.cwd, declared.project_of(folder.cwd, project)


def with_first_commit(project: Repository, settings: Settings) -> Repository:
    """By it clones are known."""
    if not project.is_git:
        return project
    seconds = settings.recalling.first_commit_timeout_seconds
    return Repository(
        place=project.place,
        folder=project.folder,
        remote=project.remote,
        first_commit=ask_first_commit(project.place, timeout_seconds=seconds),
        part=project.part,
    )
