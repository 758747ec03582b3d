"""Sessions in several checkouts of one repository: one project in the memory, and in what sessions are told."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Memories, Settings, Source
from stillroom.pipeline import Options, run_pipeline
from stillroom.recall.injection.folders import origins_of
from stillroom.recall.injection.instructions import Instructions, instructions
from stillroom.recall.injection.sharing import propose
from stillroom.store import Store
from stillroom.undoing.declaring import set_apart

WISH = "From now on always use pnpm in this repo, never npm."
NOW = 1_796_029_200_000


class House:
    """A home, and Codex sessions in any folder."""

    def __init__(self, base: Path) -> None:
        self.base, self.clock, self.count = base, FixedClock(NOW), 0
        source = Source(format="codex", root=str(base / "codex"))
        self.settings = Settings(home=base / "home", sources=(source,), memories=Memories(default_sources=False))

    def session(self, folder: str, wish: str, *, remote: str | None = None) -> None:
        self.count += 1
        stamp = f"2026-11-28T1{self.count}:00:00.000Z"
        name = f"01a2273c-000{self.count}-7133-90f0-7698c74b216a"
        git = {"branch": "main"} | ({"repository_url": remote} if remote else {})
        meta = {"id": name, "timestamp": stamp, "cwd": str(self.base / folder), "cli_version": "0.171.0", "git": git}
        said = [("user", "Fix the total of the cart."), ("assistant", "Done."), ("user", wish), ("assistant", "Noted.")]
        lines = [{"timestamp": stamp, "type": "session_meta", "payload": {**meta, "source": "cli", "originator": "x"}}]
        for role, text in said:
            content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
            payload = {"type": "message", "role": role, "content": content}
            lines.append({"timestamp": stamp, "type": "response_item", "payload": payload})
        path = (
            self.base
            / "codex"
            / "sessions"
            / "2026"
            / "11"
            / "28"
            / f"rollout-2026-11-28T1{self.count}-00-00-{name}.jsonl"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    def run(self) -> None:
        report = asyncio.run(run_pipeline(self.settings, options=Options(backfill=True), clock=self.clock))
        assert not report.failed, report
        self.clock.advance(seconds=3600)

    def groups(self) -> list[str]:
        text = (self.settings.root / "MEMORY.md").read_text("utf-8")
        return sorted(
            row.removeprefix("# Task Group: ") for row in text.split("\n") if row.startswith("# Task Group: ")
        )

    def is_told(self, folder: str) -> bool:
        found = instructions(self.settings, str(self.base / folder))
        return isinstance(found, Instructions) and WISH in found.text


def _git(folder: Path, *words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *words], cwd=folder, env=environment, capture_output=True, timeout=30, check=True)


@pytest.fixture
def house(tmp_path: Path) -> House:
    for name in ("shop", "api"):
        (tmp_path / name).mkdir()
        _git(tmp_path / name, "init", "-q", "--template=")
        _git(tmp_path / name, "commit", "-q", "--allow-empty", "-m", name)
    for name in ("fix-1", "fix-2", "fix-3"):
        _git(tmp_path / "shop", "worktree", "add", "-q", str(tmp_path / name))
    return House(tmp_path)


def test_a_wish_in_three_worktrees_is_one_wish_of_one_project(house: House) -> None:
    for name in ("fix-1", "fix-2", "fix-3"):
        house.session(name, WISH)
    house.session("api", "In this repo always write docs in English.")
    house.run()
    assert house.groups() == ["api", "shop"]
    summary = (house.settings.root / "memory_summary.md").read_text("utf-8")
    assert "every project" not in summary
    assert summary.count(f'the user said: "{WISH}"') == 1
    assert [house.is_told(name) for name in ("shop", "fix-1", "fix-3", "api")] == [True, True, True, False]
    assert propose(house.settings, house.base / "shop").rules == (WISH,)
    assert WISH not in propose(house.settings, house.base / "api").rules


def test_a_session_without_a_noted_remote_joins_those_with_one(house: House) -> None:
    _git(house.base / "shop", "remote", "add", "origin", "git@github.com:Ada/Store.git")
    house.session("shop", WISH, remote="https://github.com/Ada/Store")
    house.session("fix-1", WISH)
    house.run()
    assert house.groups() == ["Store"]


def test_a_part_that_is_set_apart_is_a_group_of_its_own(house: House) -> None:
    (house.base / "shop" / "web").mkdir()
    house.session("shop", "In this repo always write docs in English.")
    house.session("shop/web", WISH)
    house.run()
    assert house.groups() == ["shop"]
    set_apart(house.settings, house.base / "shop" / "web")
    house.session("api", "In this repo always use tabs for indentation.")
    house.run()
    assert house.groups() == ["api", "shop", "web"]
    assert [house.is_told(name) for name in ("shop", "shop/web", "fix-1")] == [False, True, False]
    with Store.open(house.settings.database, clock=house.clock) as store:
        web = str(house.base / "shop" / "web")
        assert origins_of(house.settings, store)[web] == web
