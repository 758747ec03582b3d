"""`stillroom pause`, `resume`, `memories`, `log` and `diff`, as a person meets them."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from stillroom.cli.app import run_command
from stillroom.integrations import hook

PROJECT = Path(__file__).parents[2]
NOW = "2026-11-30T09:00:00Z"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(PROJECT / "examples" / "codex-home", tmp_path / "codex")
    for name, value in (("HOME", ""), ("CODEX_HOME", "codex"), ("CLAUDE_CONFIG_DIR", "claude")):
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_while_passes_are_paused_none_does_anything(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["pause"]) == 0
    assert "passes are paused from now on" in capsys.readouterr().err
    assert run_command(["pause", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] is False
    (home / ".stillroom" / "state.sqlite3").write_text("damaged", encoding="utf-8")  # nobody looks at it
    assert run_command(["run", "--backfill", "--now", NOW]) == 0
    assert "skipped       passes are paused (`stillroom resume` lets them run again): since 20" in (
        capsys.readouterr().err
    )
    assert sorted(path.name for path in (home / ".stillroom").iterdir()) == ["pass.lock", "paused", "state.sqlite3"]
    assert hook.main(["codex", "session-start"]) == 0
    signal.setitimer(signal.ITIMER_REAL, 0)  # its process would have ended by now, and its alarm with it
    assert "no pass is started: paused since" in (home / ".stillroom" / "hook.log").read_text(encoding="utf-8")
    capsys.readouterr()
    (home / ".stillroom" / "state.sqlite3").unlink()

    assert run_command(["resume"]) == 0
    assert run_command(["resume"]) == 0
    assert capsys.readouterr().err == "passes run again\npasses were not paused\n"
    assert run_command(["run", "--backfill", "--now", NOW]) == 0
    assert (home / ".stillroom" / "memories" / "MEMORY.md").exists()


def test_a_project_is_switched_off_and_its_lines_leave_with_the_next_consolidation(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["run", "--backfill", "--now", NOW]) == 0
    handbook = home / ".stillroom" / "memories" / "MEMORY.md"
    assert "biome" in handbook.read_text(encoding="utf-8")
    capsys.readouterr()
    assert run_command(["memories", "--off", "--cwd", "/home/dev/work/shopfront"]) == 0
    told = capsys.readouterr().err
    assert "the memory is switched off for /home/dev/work/shopfront" in told
    assert "stillroom forget --repo '/home/dev/work/shopfront'" in told
    assert run_command(["memories"]) == 0
    assert "/home/dev/work/shopfront" in capsys.readouterr().out
    assert run_command(["recall", "--cwd", "/home/dev/work/shopfront"]) == 0
    assert "is switched off" in capsys.readouterr().err
    assert run_command(["run", "--backfill", "--now", "2026-11-30T10:00:00Z"]) == 0
    assert "biome" not in handbook.read_text(encoding="utf-8")
    assert "ledgerkit" in handbook.read_text(encoding="utf-8")
    capsys.readouterr()

    assert run_command(["log", "--json"]) == 0
    newest, first, _ = json.loads(capsys.readouterr().out)["versions"]
    assert newest["subject"].startswith("Consolidate")
    assert run_command(["diff"]) == 0
    assert "-- " in capsys.readouterr().out
    assert run_command(["diff", first["commit"][:8], "--now", "--json"]) == 0
    assert "biome" in json.loads(capsys.readouterr().out)["diff"]
    assert run_command(["diff", "0000"]) == 1
    assert "there is no version `0000`" in capsys.readouterr().err
    assert run_command(["log", "--limit", "1"]) == 0
    assert capsys.readouterr().out.startswith(newest["commit"][:10])

    assert run_command(["memories", "--on", "--cwd", "/home/dev/work/shopfront"]) == 0
    assert run_command(["run", "--backfill", "--now", "2026-11-30T11:00:00Z"]) == 0
    assert "biome" in handbook.read_text(encoding="utf-8")


def test_a_session_is_switched_off_for_itself_and_comes_back(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["run", "--backfill", "--now", NOW]) == 0
    handbook = home / ".stillroom" / "memories" / "MEMORY.md"
    capsys.readouterr()
    assert run_command(["memories", "--off", "--thread", "01a2273c-0761"]) == 0
    assert run_command(["explain", "01a2273c-0761", "--json"]) == 0
    rulings = json.loads(capsys.readouterr().out)["extraction"]
    (mode,) = (each for each in rulings if each["rule"] == "mode")
    assert (mode["verdict"], mode["values"]["chosen"]) == ("refuses", "disabled")
    assert run_command(["run", "--backfill", "--now", "2026-11-30T10:00:00Z"]) == 0
    assert "biome" not in handbook.read_text(encoding="utf-8")
    assert run_command(mode["command"].split()[1:]) == 0
    assert run_command(["run", "--backfill", "--now", "2026-11-30T11:00:00Z"]) == 0
    assert "biome" in handbook.read_text(encoding="utf-8")
    for wrong in (["--thread", "01a2"], ["--on", "--thread", "01a2", "--cwd", "."], ["--off", "--thread", "zz"]):
        assert run_command(["memories", *wrong]) in (1, 2)


def test_on_an_empty_home_each_says_so_and_creates_nothing(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["log"], ["diff"], ["memories"], ["resume"], ["undo"], ["redo"]):
        assert run_command(words) == 0
        assert capsys.readouterr().err
        assert run_command([*words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)
    assert not (home / ".stillroom").exists()
    assert run_command(["memories", "--on", "--off"]) == 2
