"""Learns which projects the folders of threads are, while they are there to be looked at."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from stillroom.clock import Clock
from stillroom.config import Recalling, Settings
from stillroom.recall.injection.scopes import KnownFolder
from stillroom.recall.projects.declared import load_declared
from stillroom.recall.projects.objects import holds_commit
from stillroom.recall.projects.questions import ask_git
from stillroom.recall.projects.remotes import normalise_remote, without_git_suffix
from stillroom.recall.projects.repository import Repository, identify, same_project
from stillroom.store import Store
from stillroom.store.records import Checkout, Folder


def learn_folders(settings: Settings, store: Store, clock: Clock) -> int:
    """Look at every new folder, and at those with memories again; how many are known now.

    A folder that is gone keeps what is known of it. Git is asked for a repository's first commit once.
    """
    limits = settings.recalling
    folders = [folder for folder in store.folders.newest(limit=limits.max_folders) if os.path.isabs(folder.cwd)]
    commits = _FirstCommits(folders, now=clock.now(), limits=limits)
    found = [
        (folder.cwd, checkout)
        for folder in folders
        if (folder.has_output or folder.checkout is None) and (checkout := _look(folder, commits)) != folder.checkout
    ]
    store.folders.save(found)
    return len(folders)


def known_folders(settings: Settings, store: Store) -> list[KnownFolder]:
    """Every folder, and its project. One with memories that no pass has looked at is looked at now."""
    declared = load_declared(str(settings.home))
    return [
        KnownFolder(
            folder.cwd,
            declared.project_of(folder.cwd, _repository(folder.checkout or _seen(folder))),
            has_memory=folder.has_output,
        )
        for folder in store.folders.newest(limit=settings.recalling.max_folders)
        if folder.cwd and (folder.checkout or folder.has_output)
    ]


def origins_of(settings: Settings, store: Store) -> dict[str, str]:
    """Of every folder in a repository, or set apart, where that comes from: the same for all checkouts of one project.

    It is a remote, or a folder of the newest checkout. A folder without git is not in it.
    """
    found: dict[str, str] = {}
    origins: dict[Repository, str] = {}
    #: The first of each project, under all that it may have in common with others: there are thousands of folders.
    heads: dict[str, list[Repository]] = {}
    for folder in known_folders(settings, store):
        project = folder.repository
        if not project.is_git and not project.part:
            continue
        if project not in origins:
            alike = (head for mark in _marks(project) for head in heads.get(mark, ()))
            head = next((head for head in alike if same_project(project, head)), None)
            if head is None:
                for mark in _marks(project):
                    heads.setdefault(mark, []).append(project)
            origins[project] = _origin(project) if head is None else origins[head]
        found[folder.cwd] = origins[project]
    return found


def _marks(project: Repository) -> set[str]:
    """What projects that are the same have one of in common."""
    marks = {project.place, project.folder, project.remote, project.first_commit}
    if project.place:
        marks.add(f"file:{without_git_suffix(project.place)}")
    return {mark for mark in marks if mark}


def _origin(project: Repository) -> str:
    if project.part:
        return project.part
    if project.remote:
        return project.remote.removeprefix("file:")
    return project.place.removesuffix("/.git") or project.folder


def ask_first_commit(place: str, *, timeout_seconds: float) -> str | None:
    """The oldest root commit of all that the repository's refs reach; None when git can't say, or it is shallow."""
    if Path(place, "shallow").exists():
        return None  # its oldest commit is where the history was cut
    told = ask_git(place, "rev-list", "--max-parents=0", "--timestamp", "--all", timeout_seconds=timeout_seconds)
    return min(_roots((told or b"").decode("ascii", "replace")), default=(0, None))[1]


def _roots(text: str) -> Iterator[tuple[int, str]]:
    for line in text.splitlines():
        seconds, _, commit = line.partition(" ")
        if seconds.isdigit() and commit:
            yield int(seconds), commit


class _FirstCommits:
    """Asks git for each repository at most once, and for all together no longer than a pass may take."""

    def __init__(self, folders: list[Folder], *, now: int, limits: Recalling) -> None:
        self.now = now
        self.limits = limits
        self.until = time.monotonic() + limits.first_commits_seconds
        self.known = {c.place: c for folder in folders if (c := folder.checkout) and c.is_git and c.place}

    def complete(self, checkout: Checkout) -> Checkout:
        known = self.known.get(checkout.place)
        if known and known.first_commit and holds_commit(checkout.place, known.first_commit):
            return msgspec.structs.replace(checkout, first_commit=known.first_commit, asked_at=known.asked_at)
        asked_at = known.asked_at if known and not known.first_commit else None
        if (asked_at is None or self.now - asked_at >= self.limits.ask_again_seconds) and time.monotonic() < self.until:
            asked_at = self.now
            commit = ask_first_commit(checkout.place, timeout_seconds=self.limits.first_commit_timeout_seconds)
            checkout = msgspec.structs.replace(checkout, first_commit=commit)
        self.known[checkout.place] = checkout = msgspec.structs.replace(checkout, asked_at=asked_at)
        return checkout


def _look(folder: Folder, commits: _FirstCommits) -> Checkout:
    if folder.checkout and not Path(folder.cwd).is_dir():
        return folder.checkout
    checkout = _seen(folder)
    return commits.complete(checkout) if checkout.is_git and checkout.place else checkout


def _seen(folder: Folder) -> Checkout:
    """What the folder is now. Of one that is gone the agent's record may say more than what is left around it.

    One of another machine (`C:\\work\\shop`) is a project of its own: what is here tells nothing of it.
    """
    remote = normalise_remote(folder.git_origin_url) if folder.git_origin_url else None
    if not os.path.isabs(folder.cwd):
        return Checkout(place="", folder=folder.cwd, is_git=remote is not None, remote=remote)
    found = identify(folder.cwd)
    if not Path(folder.cwd).is_dir() and (not found.is_git or (remote and remote != found.remote)):
        return Checkout(place="", folder=folder.cwd, is_git=remote is not None, remote=remote)
    return Checkout(place=found.place, folder=found.folder, is_git=found.is_git, remote=found.remote)


def _repository(checkout: Checkout) -> Repository:
    return Repository(
        place=checkout.place,
        folder=checkout.folder,
        is_git=checkout.is_git,
        remote=checkout.remote,
        first_commit=checkout.first_commit,
    )
