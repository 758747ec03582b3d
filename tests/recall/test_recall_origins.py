"""Where folders come from: one answer for all checkouts of a project, found in time that grows with their number."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Settings
from stillroom.recall.injection.folders import origins_of
from stillroom.store import Store
from stillroom.store.records import Checkout
from stillroom.thread import FileStamp, Thread

CLOCK = FixedClock(1_800_000_000_000)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with Store.open(settings.database, clock=CLOCK) as opened:
        yield opened


def remember(store: Store, checkouts: list[Checkout]) -> None:
    """A session in each, the first the newest."""
    threads = [
        Thread(
            thread_id=each.folder,
            agent="codex",
            rollout_path=f"/rollouts{each.folder}",
            source="cli",
            cwd=each.folder,
            created_at_ms=1000 * number,
            updated_at_ms=1000 * number,
            preview="hello",
        )
        for number, each in enumerate(reversed(checkouts), 1)
    ]
    store.threads.save([(thread, FileStamp(size=1, mtime_ns=1)) for thread in threads])
    store.folders.save([(each.folder, each) for each in checkouts])


def checkout(folder: str, *, place: str | None = None, remote: str | None = None, first: str | None = None) -> Checkout:
    return Checkout(place=place or f"{folder}/.git", folder=folder, is_git=True, remote=remote, first_commit=first)


def test_checkouts_of_one_project_come_from_one_place(settings: Settings, store: Store) -> None:
    remember(
        store,
        [
            checkout("/w/renamed", first="aa"),
            checkout("/w/fix", place="/w/renamed/.git", first="aa"),
            checkout("/w/old", first="aa"),
            checkout("/w/clone", remote="file:/w/renamed", first="aa"),
            checkout("/a/shop", remote="github.com/ada/shop", first="bb"),
            checkout("/b/shop", remote="github.com/ada/shop", first="bb"),
            checkout("/c/product", remote="github.com/ada/product", first="bb"),  # the same template
            Checkout(place="/plain", folder="/plain", is_git=False),
        ],
    )
    assert origins_of(settings, store) == {
        "/w/renamed": "/w/renamed",
        "/w/fix": "/w/renamed",
        "/w/old": "/w/renamed",
        "/w/clone": "/w/renamed",
        "/a/shop": "github.com/ada/shop",
        "/b/shop": "github.com/ada/shop",
        "/c/product": "github.com/ada/product",
    }


@pytest.mark.slow
def test_the_time_grows_with_the_number_of_folders_and_not_with_its_square(settings: Settings, store: Store) -> None:
    def took(count: int) -> float:
        remember(store, [checkout(f"/w/{number}", first=f"{number}") for number in range(count)])
        return min(_spent(settings, store) for _ in range(3))

    few = took(500)
    assert took(4000) < 16 * few


def _spent(settings: Settings, store: Store) -> float:
    begun = time.process_time()
    origins_of(settings, store)
    return time.process_time() - begun
