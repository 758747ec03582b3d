"""A consolidation that is killed anywhere: the next pass comes to the same folder, and loses nothing of a person's."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stillroom.clock import FixedClock
from stillroom.config import Settings, Source
from stillroom.consolidate.outcome import Consolidated, NoChanges
from stillroom.extract.run import run_phase1
from stillroom.pipeline import Options, run_pipeline
from stillroom.store import Store
from stillroom.workspace.git import Repository
from stillroom.workspace.trailers import EDITS

HERE = Path(__file__).parent
CODEX_HOME = HERE.parents[1] / "examples" / "codex-home"
DAY_AFTER = 1_796_029_200_000  # 2026-11-30T09:00:00Z
NOTE = "- Mine: releases are cut on Tuesdays.\n"
LATER_SECONDS = 8 * 3600  # beyond the lease of the dead and the pause after a success


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def consolidate_and_die(home: Path, at: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(HERE / "kill_at.py"), str(home), str(CODEX_HOME), str(at), str(moment())]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(HERE.parents[1] / "src")}
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)


def moment() -> int:
    return DAY_AFTER + LATER_SECONDS * 1000


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a first memory folder, edited by a person, and more to consolidate."""
    home = tmp_path_factory.mktemp("prepared") / "home"
    settings = Settings(home=home, sources=(Source(format="codex", root=str(CODEX_HOME)),))
    clock = FixedClock(DAY_AFTER)
    asyncio.run(run_pipeline(settings, options=Options(backfill=True, max_threads=3), clock=clock))
    handbook = home / "memories" / "MEMORY.md"
    handbook.write_text(handbook.read_text(encoding="utf-8") + NOTE, encoding="utf-8")
    with Store.open(settings.database, clock=clock) as store:  # extracted, and not consolidated yet
        asyncio.run(run_phase1(settings, store, clock, worker_id="more", backfill=True))
    return home


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_any_step_the_next_pass_comes_to_the_same_folder(prepared: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(prepared, whole)
    undisturbed = consolidate_and_die(whole, at=0)
    *steps, status = undisturbed.stdout.splitlines()
    assert status == "succeeded", undisturbed.stderr
    assert len(steps) > 20
    expected = files(whole / "memories")
    assert NOTE.strip() in expected["MEMORY.md"].decode()
    for number, step in enumerate(steps, 1):
        home = tmp_path / "killed"
        shutil.copytree(prepared, home)
        before = files(home / "memories")
        assert consolidate_and_die(home, at=number).returncode == 9, step
        half = files(home / "memories")
        for path, content in half.items():
            if not Path(path).name.startswith("."):
                assert content in (before.get(path), expected.get(path)), f"{path} is torn after {step}"
        settings = Settings(home=home, sources=(Source(format="codex", root=str(CODEX_HOME)),))
        clock = FixedClock(moment() + LATER_SECONDS * 1000)
        report = asyncio.run(run_pipeline(settings, options=Options(backfill=True), clock=clock))
        assert isinstance(report.consolidate, Consolidated | NoChanges), (step, report.consolidate)
        assert files(home / "memories") == expected, step
        subjects = Repository(home / "history.git").run("log", "--format=%s").decode().splitlines()
        assert subjects.count(EDITS) == 1, step
        assert [path.name for path in (home / "staging").iterdir() if path.name not in (".lock", "spare")] == [], step
        shutil.rmtree(home)
