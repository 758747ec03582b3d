"""`stillroom doctor` as a person meets it: real processes, real hooks, a real model server."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from stillroom.testing import LoopbackModel, Say, Status

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    shutil.copytree(PROJECT / "examples" / "codex-home", tmp_path / ".codex")
    (tmp_path / ".claude").mkdir()
    return {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT / "src")}


def stillroom(*words: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stillroom", *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


def findings(*words: str, env: dict[str, str]) -> list[dict[str, Any]]:
    done = stillroom("doctor", "--json", *words, env=env)
    assert "Traceback" not in done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    wrong = any(each["severity"] in ("warning", "error") and each["fixed"] is None for each in found)
    assert done.returncode == wrong
    return found


def outside(home: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in home.rglob("*") if path.is_file() and ".stillroom" not in path.parts
    }


def test_a_new_user_s_machine_is_well_and_stays_untouched(environment: dict[str, str], tmp_path: Path) -> None:
    before = outside(tmp_path)
    done = stillroom("doctor", "--fix", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "nothing is wrong" in done.stdout
    assert "stillroom init --agent codex" in done.stdout
    assert not (tmp_path / ".stillroom").exists()
    assert stillroom("run", "--backfill", env=environment).returncode == 0
    started = time.monotonic()
    assert stillroom("doctor", env=environment).returncode == 0
    assert time.monotonic() - started < 10  # 0.7 s of CPU; a loaded machine takes longer
    assert outside(tmp_path) == before


def test_each_thing_that_is_wrong_has_a_remedy_and_fix_does_the_safe_ones(
    environment: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / ".stillroom"
    assert stillroom("run", "--backfill", env=environment).returncode == 0
    home.chmod(0o755)
    (home / "state.sqlite3").chmod(0o644)
    shutil.rmtree(home / "history.git")
    wrong = [each for each in findings(env=environment) if each["severity"] in ("warning", "error")]
    assert [each["check"] for each in wrong] == ["home", "home", "history"]
    assert all(each["remedy"] and each["fixable"] for each in wrong)
    before = outside(tmp_path)
    fixed = [each["check"] for each in findings("--fix", env=environment) if each["fixed"]]
    assert fixed == ["home", "home", "history"]
    assert outside(tmp_path) == before
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    again = findings("--fix", env=environment)
    assert not any(each["fixed"] for each in again)
    assert stillroom("log", env=environment).returncode == 0


def test_hooks_are_tried_and_what_they_said_lately_is_told(environment: dict[str, str], tmp_path: Path) -> None:
    assert stillroom("run", "--backfill", env=environment).returncode == 0
    assert stillroom("init", "--yes", env=environment).returncode == 0
    told = {
        each["what"].split(":")[0]: each["severity"] for each in findings(env=environment) if each["check"] == "hooks"
    }
    assert told == {"Claude Code": "ok", "Codex CLI": "warning", "the hook starts": "ok"}  # nobody trusted it yet
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    (tmp_path / ".stillroom" / "hook.log").write_text(f"2020-01-01T00:00:00Z old\n{moment} codex: it broke\n")
    settings = tmp_path / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace("session-start", "session-start --older"))
    wrong = [each for each in findings(env=environment) if each["check"] == "hooks" and each["severity"] == "warning"]
    assert any("it broke" in each["what"] for each in wrong)
    assert any(each["remedy"] == "stillroom init --agent claude-code" for each in wrong)


def test_models_are_asked_only_when_wanted_and_each_call_is_paid_for(
    environment: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / ".stillroom"
    home.mkdir(mode=0o700)
    with LoopbackModel([Say('{"ok": true}'), Status(status=401), Status(status=401)]) as server:
        text = f"""
[memories]
extract_model = "local:a"
[providers.local]
kind = "openai-chat"
base_url = "{server.base_url}"
"""
        (home / "config.toml").write_text(text, encoding="utf-8")
        assert not [each for each in findings(env=environment) if each["check"] == "models"]
        assert server.requests == []
        (answered,) = [each for each in findings("--model", env=environment) if each["check"] == "models"]
        assert answered["severity"] == "ok"
        (refused,) = [each for each in findings("--model", env=environment) if each["check"] == "models"]
        assert refused["severity"] == "error" and refused["remedy"]
        assert len(server.requests) == 2
        spent = json.loads(stillroom("status", "--json", env=environment).stdout)["spent"]
        assert [(each["phase"], each["calls"], each["failed_calls"]) for each in spent] == [("doctor", 2, 1)]
        capped = text.replace("[providers", "max_weighted_tokens_per_day = 0\n[providers")
        (home / "config.toml").write_text(capped, encoding="utf-8")
        (refused,) = [each for each in findings("--model", env=environment) if each["check"] == "models"]
        assert "max_weighted_tokens_per_day" in refused["what"]
        assert len(server.requests) == 2


def test_broken_settings_are_the_first_finding(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".stillroom").mkdir(mode=0o700)
    (tmp_path / ".stillroom" / "config.toml").write_text("[memories\n", encoding="utf-8")
    (first, *_) = findings(env=environment)
    assert (first["check"], first["severity"]) == ("settings", "error")
    assert "config.toml" in first["what"] and first["remedy"]
