"""`why` as a person meets it: real processes after a real pass."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
NOW = "2026-11-30T09:00:00Z"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    shutil.copytree(PROJECT / "examples" / "codex-home", tmp_path / "codex")
    return {
        "HOME": str(tmp_path),
        "CODEX_HOME": str(tmp_path / "codex"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PROJECT / "src"),
    }


def stillroom(*words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stillroom", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


def test_in_an_empty_home_no_line_can_be_explained(environment: dict[str, str], tmp_path: Path) -> None:
    done = stillroom("why", "MEMORY.md:1", env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no memory folder" in done.stderr
    assert not (tmp_path / ".stillroom").exists()


def test_after_a_pass_a_line_leads_to_the_words_of_the_person(environment: dict[str, str]) -> None:
    assert stillroom("run", "--backfill", "--now", NOW, env=environment).returncode == 0
    done = stillroom("why", "only the failures", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "by the offline engine, release " in done.stdout
    assert "01a2273c-0036-7133-90f0-7698c74b216a  codex, in /home/dev/work/ledgerkit" in done.stdout
    assert ": In future always run the tests with -q" in done.stdout
    answer = json.loads(stillroom("why", "only the failures", "--json", env=environment).stdout)
    line = answer["lines"][0]
    assert (line["origin"]["engine"], line["support"]) == ("offline", "quoted")
    assert {quote["who"] for quote in line["quotes"]} == {"user"}
