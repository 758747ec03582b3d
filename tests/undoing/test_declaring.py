"""What a person says of projects: folders that are one, and folders that are apart."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stillroom.cli.app import run_command
from stillroom.clock import FixedClock
from stillroom.config import Settings, StageOne
from stillroom.errors import InvalidRequest, WorkspaceError
from stillroom.recall.fulltext.ranked import RankedSearch
from stillroom.recall.injection.instructions import Instructions, Nothing, Stale, fast_instructions, instructions
from stillroom.recall.injection.preparing import prepare_recall
from stillroom.recall.projects.declared import FILE
from stillroom.recall.projects.switched_off import is_switched_off
from stillroom.store import Stage1Claim, Stage1Draft, Store
from stillroom.thread import FileStamp, Thread
from stillroom.undoing.choosing import Choice, choose
from stillroom.undoing.declaring import join, list_projects, set_apart, take_back
from stillroom.undoing.projects import switch_project

CLOCK = FixedClock(1_800_000_000_000)
FOLDERS = ("mono", "mono/api", "shop", "old-notes", "papers/one")


class House:
    """A home in which a session was remembered in each folder, and said its name."""

    def __init__(self, base: Path, store: Store, settings: Settings) -> None:
        self.base, self.store, self.settings = base, store, settings
        lines = ["v1", "", "## User preferences", ""]
        for name in FOLDERS:
            (base / name).mkdir(parents=True)
            if name in ("mono", "shop"):
                _git(base / name)
            self._remember(name)
            lines += [f"- wish of {name} (in {base / name})"]
        settings.root.mkdir(parents=True)
        (settings.root / "memory_summary.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
        prepare_recall(settings, store, CLOCK)

    def _remember(self, name: str) -> None:
        thread = Thread(
            thread_id=name,
            agent="codex",
            rollout_path=f"/sessions/{name}.jsonl",
            source="cli",
            cwd=str(self.base / name),
            created_at_ms=1000,
            updated_at_ms=1000,
            preview="hello",
        )
        self.store.threads.save([(thread, FileStamp(size=1, mtime_ns=1))])
        claim = self.store.extraction.try_claim(
            name, worker_id="w", source_updated_at=1, stage=StageOne(), max_running=8
        )
        assert isinstance(claim, Stage1Claim)
        draft = Stage1Draft(raw_memory=f"wish of {name}", rollout_summary=f"# {name}")
        assert self.store.extraction.finish(claim, draft, engine="offline")

    def told(self, folder: str) -> set[str]:
        """Whose wishes a session in this folder is told."""
        found = instructions(self.settings, str(self.base / folder))
        text = found.text if isinstance(found, Instructions) else ""
        return {name for name in FOLDERS if f"wish of {name} (" in text}

    def found(self, folder: str) -> set[str | None]:
        with RankedSearch(self.settings, clock=CLOCK) as search:
            return {hit.thread_id for hit in search.search("wish", cwd=self.base / folder).hits if hit.thread_id}


def _git(folder: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for words in (("init", "-q", "--template="), ("commit", "-q", "--allow-empty", "-m", folder.name)):
        subprocess.run(["git", *who, *words], cwd=folder, env=environment, capture_output=True, timeout=30, check=True)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    settings = Settings(home=tmp_path / "home")
    with Store.open(settings.database, clock=CLOCK) as store:
        yield House(tmp_path, store, settings)


def test_a_folder_without_git_that_moved_keeps_its_memory(house: House) -> None:
    (house.base / "old-notes").rename(house.base / "notes")
    assert house.told("notes") == set()
    join(house.settings, house.store, [house.base / "old-notes", house.base / "notes"])
    stale = fast_instructions(str(house.settings.home), None, str(house.base / "notes"))
    assert isinstance(stale, Stale)
    assert house.told("notes") == house.found("notes") == {"old-notes"}
    assert house.told("shop") == {"shop"}
    take_back(house.settings, house.store, house.base / "notes")
    assert house.told("notes") == set()
    assert not (house.settings.home / FILE).exists()


def test_repositories_share_their_memory_and_more_can_come(house: House) -> None:
    settings, base = house.settings, house.base
    join(settings, house.store, [base / "shop", base / "mono" / "api"])
    one = {"shop", "mono", "mono/api"}
    assert house.told("mono") == house.told("shop") == house.found("shop") == one
    assert len(join(settings, house.store, [base / "old-notes", base / "shop"])) == 3
    assert house.told("old-notes") == {*one, "old-notes"}
    with pytest.raises(InvalidRequest, match="one project already"):
        join(settings, house.store, [base / "old-notes", base / "mono"])
    with pytest.raises(InvalidRequest, match="one project already"):
        join(settings, house.store, [base / "shop"])
    take_back(settings, house.store, base / "old-notes")
    assert house.told("old-notes") == {"old-notes"}
    assert house.told("mono") == one


def test_a_folder_without_git_brings_all_below_it(house: House) -> None:
    papers = house.base / "papers"
    assert house.told("papers/two") == set()
    join(house.settings, house.store, [papers])
    assert house.told("papers/two") == house.told("papers") == {"papers/one"}


def test_a_part_of_a_repository_has_a_memory_of_its_own(house: House) -> None:
    settings, api = house.settings, house.base / "mono" / "api"
    assert house.told("mono") == house.told("mono/api") == {"mono", "mono/api"}
    set_apart(settings, api)
    assert house.told("mono") == house.found("mono") == {"mono"}
    assert house.told("mono/api/src") == house.found("mono/api") == {"mono/api"}
    with pytest.raises(InvalidRequest, match="already"):
        set_apart(settings, api)
    with pytest.raises(InvalidRequest, match="already"):
        set_apart(settings, house.base / "shop")
    join(settings, house.store, [api, house.base / "shop"])
    assert house.told("shop") == house.told("mono/api") == {"mono/api", "shop"}
    assert house.told("mono") == {"mono"}


def test_switches_and_forgetting_go_by_what_was_said(house: House) -> None:
    settings, base, home = house.settings, house.base, str(house.settings.home)
    join(settings, house.store, [base / "shop", base / "old-notes"])
    set_apart(settings, base / "mono" / "api")
    switch_project(settings, base / "old-notes", on=False)
    assert is_switched_off(home, str(base / "shop"))
    assert not is_switched_off(home, str(base / "mono"))
    switch_project(settings, base / "mono" / "api", on=False)
    assert is_switched_off(home, str(base / "mono" / "api" / "src"))
    assert not is_switched_off(home, str(base / "mono"))
    switch_project(settings, base / "mono", on=False)  # the whole is off with its parts
    switch_project(settings, base / "mono" / "api", on=True)
    assert is_switched_off(home, str(base / "mono" / "api"))

    def meant(folder: str) -> set[str]:
        return {each.thread_id for each in choose(settings, house.store, Choice(repository=str(base / folder)))}

    assert meant("shop") == {"shop", "old-notes"}
    assert meant("mono") == {"mono"}
    assert meant("mono/api") == {"mono/api"}


def test_all_projects_are_listed_with_what_was_said(house: House) -> None:
    join(house.settings, house.store, [house.base / "shop", house.base / "old-notes"])
    set_apart(house.settings, house.base / "mono" / "api")
    switch_project(house.settings, house.base / "mono", on=False)
    listed = {
        tuple(sorted(str(Path(folder).relative_to(house.base)) for folder in each.folders)): each
        for each in list_projects(house.settings, house.store)
    }
    joined, apart = ("old-notes", "shop"), ("mono/api",)
    assert {folders: each.sessions for folders, each in listed.items()} == {
        joined: 2,
        apart: 1,
        ("mono",): 1,
        ("papers/one",): 1,
    }
    assert {folders for folders, each in listed.items() if each.is_joined} == {joined}
    assert {folders for folders, each in listed.items() if each.is_off} == {("mono",), apart}
    assert (listed[apart].name, listed[apart].part) == ("api", str(house.base / "mono" / "api"))


@pytest.mark.parametrize("content", ["{", "[]", '{"format": 1, "joined": [[[1]]], "apart": []}', '{"format": 9}'])
def test_nobody_is_told_anything_while_it_can_not_be_read(house: House, content: str) -> None:
    (house.settings.home / FILE).write_text(content, encoding="utf-8")
    found = instructions(house.settings, str(house.base / "shop"))
    assert isinstance(found, Nothing)
    assert found.is_fault and FILE in found.reason
    with pytest.raises(WorkspaceError, match="can't be read"):
        set_apart(house.settings, house.base / "mono" / "api")


def test_the_command_says_and_lists(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STILLROOM_HOME", str(house.settings.home))
    monkeypatch.chdir(house.base)
    assert run_command(["projects", "--join", "shop", "old-notes"]) == 0
    assert "one project from now on" in capsys.readouterr().err
    assert run_command(["projects"]) == 0
    assert "(joined by you)" in capsys.readouterr().out
    for words in (["--join"], ["shop"], ["--apart", "shop", "mono"], ["--apart", "--undo", "shop"]):
        assert run_command(["projects", *words]) == 2, words
    assert run_command(["projects", "--undo", "mono"]) == 1
    assert "nothing was said" in capsys.readouterr().err
