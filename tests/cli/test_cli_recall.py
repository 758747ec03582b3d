"""`stillroom recall` as a person meets it: a pass over real sessions, then a session elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stillroom.cli.app import run_command

PROJECT = Path(__file__).parents[2]
NOW = "2026-11-30T09:00:00Z"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(PROJECT / "examples" / "codex-home", tmp_path / "codex")
    for name, value in (("HOME", ""), ("CODEX_HOME", "codex"), ("CLAUDE_CONFIG_DIR", "claude")):
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_user_is_told_that_there_is_no_memory_and_then_what_a_pass_found(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["recall"]) == 0
    empty = capsys.readouterr()
    assert (empty.out, empty.err) == ("", "A session is given nothing: there is no memory yet.\n")
    assert not (home / ".stillroom").exists()

    assert run_command(["run", "--backfill", "--now", NOW, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)["recall"]
    assert report["lines"] > 10
    assert (report["folders"], report["nothing"]) == (3, None)

    words = ("recall", "--cwd", "/home/dev/work/shopfront")
    command = [sys.executable, "-m", "stillroom", *words]
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")}
    told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (told.returncode, told.stderr) == (0, "")
    assert "we use biome here" in told.stdout
    assert "ledgerkit" not in told.stdout

    assert run_command([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["outcome"], answer["text"]) == ("told", told.stdout)
    assert answer["left_out"]["other_projects"] == 1
    assert len(answer["version"]) == 40

    assert run_command(["recall", "--json"]) == 0
    elsewhere = json.loads(capsys.readouterr().out)
    assert elsewhere == {"outcome": "nothing", "reason": "the memory holds nothing for this project"}


def test_a_pass_says_when_its_summary_is_told_to_nobody(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / ".stillroom").mkdir()
    (home / ".stillroom" / "config.toml").write_text("[memories]\nuse_memories = false\n", encoding="utf-8")
    assert run_command(["run", "--backfill", "--now", NOW]) == 0
    assert "a session is told nothing: `memories.use_memories` is false" in capsys.readouterr().err
