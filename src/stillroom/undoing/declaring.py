"""Which projects there are, and what a person says of them: these folders are one, this folder is apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import msgspec

from stillroom.config import Settings
from stillroom.errors import InvalidRequest, WorkspaceError, way_out
from stillroom.recall.injection.folders import origins_of
from stillroom.recall.projects.declared import FILE, Declared, is_of, save_declared
from stillroom.recall.projects.remotes import repository_name
from stillroom.recall.projects.repository import Repository, identify, same_project
from stillroom.recall.projects.switched_off import SwitchedOff, load_switched_off
from stillroom.store import Store
from stillroom.undoing.projects import declared_projects, folders_of_threads, place_of, with_first_commit


class ProjectFolders(msgspec.Struct, frozen=True, kw_only=True):
    """A project, and the folders in which its sessions ran, newest first."""

    name: str
    folders: tuple[str, ...]
    remote: str | None
    sessions: int
    #: Of these: in the memory.
    remembered: int
    #: A person said which folders it is.
    is_joined: bool
    #: The folder that a person set apart.
    part: str | None
    is_off: bool


def list_projects(settings: Settings, store: Store) -> list[ProjectFolders]:
    """Every project that sessions ran in, the newest first. Raises `WorkspaceError`."""
    declared, off = declared_projects(settings), load_switched_off(str(settings.home))
    origins = origins_of(settings, store)
    groups: list[tuple[list[Repository], list[str]]] = []
    heads: list[Repository] = []
    seen: dict[Repository | str, int] = {}
    for folder in islice(folders_of_threads(store), settings.recalling.max_folders):
        cwd, project = place_of(folder, declared)
        known = origins.get(cwd, project)
        if known not in seen:
            seen[known] = min(declared.same(project, heads), default=len(heads))
            if seen[known] == len(heads):
                heads.append(project)
                groups.append(([], []))
            groups[seen[known]][0].append(project)
        groups[seen[known]][1].append(cwd)
    return [_told(projects, cwds, store, declared, off) for projects, cwds in groups]


def join(settings: Settings, store: Store | None, folders: Sequence[Path]) -> list[str]:
    """From now on these folders are one project; returns all that are. One without git brings all that is below it.

    Raises `InvalidRequest` where they are so already, and `WorkspaceError`.
    """
    declared = declared_projects(settings)
    wanted = [with_first_commit(_project(folder, store, declared), settings) for folder in folders]
    if len(wanted) == 1 and wanted[0].is_git:
        raise InvalidRequest(
            f"`{wanted[0].folder}` is one project already, with its worktrees and clones",
            hint="name the folders that are to be one project with it",
        )
    touched = [group for group in declared.joined if any(is_of(each, group) for each in wanted)]
    group = [each for known in touched for each in known]
    group += [each for number, each in enumerate(wanted) if not is_of(each, group + wanted[:number])]
    if touched == [group]:
        raise InvalidRequest("these are one project already", hint="`stillroom projects` lists all")
    others = [known for known in declared.joined if known not in touched]
    _save(settings, Declared(joined=[*others, group], apart=declared.apart))
    return _folders_of(group)


def set_apart(settings: Settings, folder: Path) -> str:
    """From now on this folder is a project of its own, with all below it. Raises `InvalidRequest` where it is one
    already, and `WorkspaceError`."""
    declared, place = declared_projects(settings), str(folder.resolve())
    found = identify(place)
    if place in declared.apart or (place == found.folder and not any(is_of(found, group) for group in declared.joined)):
        raise InvalidRequest(
            f"`{place}` is a project of its own already", hint="name a folder below the top of a project"
        )
    _save(settings, Declared(joined=declared.joined, apart=[*declared.apart, place]))
    return place


def take_back(settings: Settings, store: Store | None, folder: Path) -> str:
    """What was said of this folder holds no more. Raises `InvalidRequest` where nothing was, and `WorkspaceError`."""
    declared, place = declared_projects(settings), str(folder.resolve())
    apart = [known for known in declared.apart if known != place]
    joined = declared.joined
    if apart == declared.apart:
        project = _project(folder, store, declared)
        joined = [[each for each in group if not same_project(each, project)] for group in declared.joined]
        if joined == declared.joined:
            raise InvalidRequest(f"nothing was said of `{place}`", hint="`stillroom projects` lists all")
        # What is left alone is what it was: a folder without git was alone from the beginning.
        whole = [group for group, before in zip(joined, declared.joined, strict=True) if group == before]
        joined = [group for group in joined if len(group) > 1 or group in whole]
    _save(settings, Declared(joined=joined, apart=apart))
    return place


def _project(folder: Path, store: Store | None, declared: Declared) -> Repository:
    """The project of a folder; of one that is gone, what it was to the sessions that ran there."""
    cwd = str(folder.absolute())
    if store is not None and not folder.is_dir():
        for known in folders_of_threads(store):
            if known.cwd.rstrip("/") == cwd:
                return place_of(known, declared)[1]
    return declared.project_of(cwd, identify(cwd))


def _told(
    projects: Sequence[Repository], cwds: Sequence[str], store: Store, declared: Declared, off: SwitchedOff
) -> ProjectFolders:
    sessions, remembered = store.folders.count(cwds)
    first = projects[0]
    remote = next((project.remote for project in projects if project.remote), None)
    return ProjectFolders(
        name=Path(first.part or first.folder).name or repository_name(remote) or cwds[0],
        folders=tuple(cwds),
        remote=remote,
        sessions=sessions,
        remembered=remembered,
        is_joined=any(is_of(project, group) for group in declared.joined for project in projects),
        part=first.part or None,
        is_off=any(off.covers(project.part or project.folder, project, declared) for project in projects),
    )


def _folders_of(group: Sequence[Repository]) -> list[str]:
    return [each.part or each.folder for each in group]


def _save(settings: Settings, declared: Declared) -> None:
    try:
        save_declared(str(settings.home), declared)
    except OSError as error:
        raise WorkspaceError(
            f"`{settings.home / FILE}` can't be written: {error.strerror}", hint=way_out(error, settings.home)
        ) from error
