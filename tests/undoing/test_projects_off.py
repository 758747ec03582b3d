"""A project whose memory is switched off: its sessions are told nothing, and nothing of them is learnt."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, StageOne, StageTwo
from stillroom.errors import WorkspaceError
from stillroom.recall.injection.instructions import Nothing, instructions
from stillroom.recall.projects.declared import Declared
from stillroom.recall.projects.repository import identify
from stillroom.recall.projects.switched_off import FILE, is_switched_off, load_switched_off
from stillroom.store import Store
from stillroom.store.records import Stage1Draft
from stillroom.thread import FileStamp, Thread
from stillroom.undoing.projects import obey_switches, switch_project, switched_off_projects

NOW = 1_800_000_000


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "--template=")
    git(folder, "commit", "-q", "--allow-empty", "-m", folder.name)
    return folder


def git(folder: Path, *words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *words], cwd=folder, env=environment, capture_output=True, timeout=30, check=True)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with Store.open(settings.database, clock=FixedClock(NOW * 1000)) as opened:
        yield opened


def add(store: Store, thread_id: str, cwd: Path) -> None:
    thread = Thread(
        thread_id=thread_id,
        agent="codex",
        rollout_path=f"/sessions/{thread_id}.jsonl",
        source="cli",
        cwd=str(cwd),
        created_at_ms=(NOW - 86_400) * 1000,
        updated_at_ms=(NOW - 86_400) * 1000,
        preview="hello",
    )
    store.threads.save([(thread, FileStamp(size=1, mtime_ns=2))])


def claim(store: Store) -> list[str]:
    claims = store.extraction.claim(
        worker_id="w", current_thread_id=None, memories=Memories(), stage=StageOne(), max_claims=8
    )
    for each in claims:
        draft = Stage1Draft(raw_memory="raw", rollout_summary="summary")
        assert store.extraction.finish(each, draft, engine="offline")
    return sorted(each.thread_id for each in claims)


def selected(store: Store) -> list[str]:
    return [output.thread_id for output in store.consolidation.select(limit=8, max_unused_days=30).selected]


def test_a_repository_is_off_with_its_worktrees_sub_folders_and_clones_and_nothing_else_is(
    settings: Settings, tmp_path: Path
) -> None:
    shop, api = repository(tmp_path / "shop"), repository(tmp_path / "api")
    git(shop, "worktree", "add", "-q", str(tmp_path / "fix"))
    git(tmp_path, "clone", "-q", str(shop), "copy")
    (shop / "src").mkdir()
    (tmp_path / "shop-notes").mkdir()
    done = switch_project(settings, shop / "src", on=False)
    assert (done.changed, done.project.folder, done.project.is_git) == (True, str(shop), True)
    home = str(settings.home)
    for folder in (shop, shop / "src", tmp_path / "fix", tmp_path / "copy"):
        assert is_switched_off(home, str(folder)), folder
    for folder in (api, tmp_path, tmp_path / "shop-notes"):
        assert not is_switched_off(home, str(folder)), folder
    assert not switch_project(settings, tmp_path / "fix", on=False).changed
    assert switch_project(settings, tmp_path / "copy", on=True).changed
    assert not is_switched_off(home, str(shop))
    assert not (settings.home / FILE).exists()


def test_a_folder_without_git_is_off_with_all_that_is_below_it(settings: Settings, tmp_path: Path) -> None:
    client = repository(tmp_path / "clients" / "acme")
    switch_project(settings, tmp_path / "clients", on=False)
    assert is_switched_off(str(settings.home), str(client))
    assert is_switched_off(str(settings.home), str(tmp_path / "clients" / "gone" / "since"))
    assert not is_switched_off(str(settings.home), str(tmp_path / "clients-of-others"))
    assert [project.is_git for project in switched_off_projects(settings)] == [False]


def test_nothing_is_learnt_where_it_is_off_and_what_was_remembered_leaves_and_comes_back(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    shop, api = repository(tmp_path / "shop"), repository(tmp_path / "api")
    add(store, "in-shop", shop)
    add(store, "in-api", api)
    assert claim(store) == ["in-api", "in-shop"]
    token = store.consolidation.claim(worker_id="w", stage=StageTwo())
    chosen = store.consolidation.select(limit=8, max_unused_days=30)
    assert store.consolidation.succeed(
        getattr(token, "ownership_token"),  # noqa: B009 - the claim, not why there is none
        watermark=NOW,
        selected=chosen.selected,
    )

    done = switch_project(settings, shop, on=False)
    assert (done.threads, done.remembered, done.unsure) == (1, 1, None)
    add(store, "later", shop)
    assert obey_switches(settings, store) == 1
    assert claim(store) == []
    assert selected(store) == ["in-api"]
    job = store.consolidation.job()
    assert job is not None and job.status == "pending"
    thread = store.threads.get("later")
    assert thread is not None and thread.memory_mode == "disabled"
    assert obey_switches(settings, store) == 0

    switch_project(settings, shop, on=True)
    assert claim(store) == ["later"]
    assert sorted(selected(store)) == ["in-api", "in-shop", "later"]


def test_a_thread_that_its_own_agent_switched_off_stays_off(settings: Settings, store: Store, tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    add(store, "polluted", shop)
    store.threads.set_memory_mode("polluted", "polluted")
    switch_project(settings, shop, on=False)
    switch_project(settings, shop, on=True)
    thread = store.threads.get("polluted")
    assert thread is not None and thread.memory_mode == "polluted"


def test_a_session_there_is_told_why_it_is_told_nothing(settings: Settings, tmp_path: Path) -> None:
    shop = repository(tmp_path / "shop")
    settings.root.mkdir(parents=True)
    (settings.root / "memory_summary.md").write_text("v1\n\n## User preferences\n\n- in English\n", encoding="utf-8")
    assert not isinstance(instructions(settings, str(shop)), Nothing)
    switch_project(settings, shop, on=False)
    told = instructions(settings, str(shop))
    assert isinstance(told, Nothing) and not told.is_fault
    assert "switched off" in told.reason
    assert not isinstance(instructions(settings, str(tmp_path)), Nothing)


@pytest.mark.parametrize("damage", [b"", b"{", b'{"format":2,"projects":[]}', b'{"format":1,"projects":[[1]]}'])
def test_a_damaged_list_tells_nobody_anything_and_lets_nothing_be_forgotten(
    settings: Settings, store: Store, tmp_path: Path, damage: bytes
) -> None:
    add(store, "any", tmp_path)
    (settings.home / FILE).write_bytes(damage)
    assert load_switched_off(str(settings.home)).covers("/", identify("/"), Declared())
    with pytest.raises(WorkspaceError, match="can't be read"):
        obey_switches(settings, store)
    with pytest.raises(WorkspaceError, match="can't be read"):
        switch_project(settings, tmp_path, on=True)
    assert (settings.home / FILE).read_bytes() == damage
    thread = store.threads.get("any")
    assert thread is not None and thread.memory_mode == "enabled"
