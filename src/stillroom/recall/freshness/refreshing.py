"""Checks what memory names against the repositories that are at hand: all that is new, or may have changed since."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from stillroom.clock import Clock
from stillroom.config import Recalling, Settings
from stillroom.recall.freshness.anchors import Anchor, anchors
from stillroom.recall.freshness.checking import Checker, Moment
from stillroom.recall.freshness.looks import git_dir_of, look_of
from stillroom.recall.freshness.stored import Checked, Freshness, load_freshness, save_freshness
from stillroom.recall.injection.prepared import Prepared
from stillroom.recall.injection.scopes import KnownFolder
from stillroom.recall.injection.statements import INDEX
from stillroom.recall.projects.repository import Repository
from stillroom.store import Store

#: After so long a repository is looked at again although git wrote nothing: a file may be gone without a commit.
_AGAIN_SECONDS = 24 * 3600


def refresh(
    settings: Settings, store: Store, clock: Clock, ready: Prepared, folders: Sequence[KnownFolder]
) -> Freshness:
    """Check what the statements name, within the time that a pass may take. Raises `StoreError`."""
    limits = settings.recalling
    wanted = _wanted(ready, folders, most=limits.max_checked_facts)
    before = {each.place: each for each in load_freshness(settings.home).repositories}
    moments = _moments(store, folders, wanted)
    until = time.monotonic() + limits.checking_seconds
    now = clock.now()
    checked = [
        _checked(repository, list(named), moments.get(repository.place, ()), before, now, until, limits)
        for repository, named in list(wanted.values())[: limits.max_checked_repositories]
    ]
    found = Freshness(repositories=tuple(each for each in checked if each is not None))
    if found.repositories or before:
        save_freshness(settings.home, found)
    return found


def _wanted(
    ready: Prepared, folders: Sequence[KnownFolder], *, most: int
) -> dict[str, tuple[Repository, dict[Anchor, None]]]:
    """What is named, by repository: those at hand, in the order in which sessions ran there last."""
    at_hand: dict[str, tuple[Repository, dict[Anchor, None]]] = {}
    for folder in folders:
        repository = folder.repository
        if folder.has_memory and repository.is_git and Path(repository.place).is_dir():
            at_hand.setdefault(repository.place, (repository, {}))

    def add(places: Iterable[str], line: str) -> None:
        for place in places:
            if place in at_hand:
                named = at_hand[place][1]
                if len(named) < most:
                    named.update(dict.fromkeys(anchors(line)))

    for scope, (known, _, _) in enumerate(ready.scopes):
        for statement in ready.part(scope):
            if statement.kind != INDEX:  # a list of names says nothing about what they name
                add((ready.folders[number].place for number in known), statement.text)
    return {place: each for place, each in at_hand.items() if each[1]}


def _moments(store: Store, folders: Sequence[KnownFolder], wanted: Iterable[str]) -> dict[str, list[Moment]]:
    """When something was learnt of each repository, oldest first."""
    place_of = {folder.cwd: folder.repository.place for folder in folders}
    found: dict[str, list[Moment]] = {place: [] for place in wanted}
    for learnt in store.outputs.learnt():
        place = place_of.get(learnt.cwd)
        if place in found:
            found[place].append(Moment(learnt.at, learnt.commit))
    return found


def _checked(
    repository: Repository,
    wanted: list[Anchor],
    moments: Sequence[Moment],
    before: Mapping[str, Checked],
    now: int,
    until: float,
    limits: Recalling,
) -> Checked | None:
    known = before.get(repository.place)
    git_dir = git_dir_of(repository.folder, repository.place)
    look = look_of(repository.folder, repository.place)
    facts = {fact.anchor: fact for fact in known.facts} if known else {}
    same = known is not None and known.look == look and 0 <= now - known.at < _AGAIN_SECONDS
    asked = [anchor for anchor in wanted if not (same and anchor in facts)]
    at = known.at if known and same else now
    if not asked:
        if known is None:
            return None
        return msgspec.structs.replace(known, facts=tuple(facts[anchor] for anchor in wanted), left=0)
    checker = Checker(
        place=repository.place,
        folder=repository.folder,
        git_dir=git_dir,
        moments=moments,
        until=until,
        timeout_seconds=limits.check_timeout_seconds,
    )
    new, left = checker.check(asked)
    facts.update((fact.anchor, fact) for fact in new)
    return Checked(
        folder=repository.folder,
        place=repository.place,
        # What was left over is asked again: as if the repository had changed.
        look=look if not left else [None],
        at=at,
        facts=tuple(facts[anchor] for anchor in wanted if anchor in facts),
        left=len(left),
    )
