"""`status` and `explain` as a person meets them: real processes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
#: Longer ago than the pause after a consolidation lasts: `status` goes by the machine's clock.
NOW = "2026-11-30T02:00:00Z"


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


def test_in_an_empty_home_there_is_nothing_and_it_stays_so(environment: dict[str, str], tmp_path: Path) -> None:
    done = stillroom("status", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "none known yet" in done.stdout
    assert "\x1b[" not in done.stdout
    assert not (tmp_path / ".stillroom").exists()
    unknown = stillroom("explain", "01a2", env=environment)
    assert unknown.returncode == 1
    assert "no thread has an id that begins with `01a2`" in unknown.stderr


def test_after_a_pass_it_is_told_what_became_of_each_session_and_why(environment: dict[str, str]) -> None:
    rollout = next(Path(environment["CODEX_HOME"]).rglob("rollout-*-01a2273c-0036*.jsonl"))
    first, *others = rollout.read_bytes().splitlines(keepends=True)
    odd = b'{"timestamp":"2026-11-29T12:00:00.000Z","type":"mood","payload":{"is":"calm"}}\n'
    rollout.write_bytes(b"".join([first, odd, *others]))
    assert stillroom("run", "--backfill", "--now", NOW, env=environment).returncode == 0
    done = stillroom("status", env=environment)
    assert done.returncode == 0
    assert "codex         6 sessions" in done.stdout
    assert "1 record of an unknown kind `mood` in 1 session" in " ".join(done.stdout.split())
    assert "rests on 3 of 3 extracted sessions; not cited yet" in done.stdout
    status = json.loads(stillroom("status", "--json", env=environment).stdout)
    assert status["agents"][0]["states"] == {"extracted": 3, "no_output": 3}
    assert status["passes"][0]["consolidation"] == "consolidated"
    assert status["consolidation"]["state"] == "up_to_date"
    explained = stillroom("explain", "01a2273c-0036", env=environment)
    assert explained.returncode == 0
    (line,) = [line for line in explained.stdout.splitlines() if "<- decides" in line]
    assert line.split()[:2] == ["done", "watermark"]
    rulings = json.loads(stillroom("explain", "01a2273c-0036", "--json", env=environment).stdout)
    assert [each["verdict"] for each in rulings["selection"]] == ["passes"] * 6
    thread_id = "01a2273c-0036-7133-90f0-7698c74b216a"
    assert stillroom("forget", thread_id, "--yes", env=environment).returncode == 0
    forgotten = stillroom("explain", thread_id, env=environment)
    assert (forgotten.returncode, "was forgotten" in forgotten.stderr) == (1, True)
    ambiguous = stillroom("explain", "01a2", env=environment)
    assert (ambiguous.returncode, "several ids" in ambiguous.stderr) == (1, True)


def test_a_damaged_database_is_said_to_be_one(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".stillroom").mkdir()
    (tmp_path / ".stillroom" / "state.sqlite3").write_bytes(b"no database, but long enough to be one" * 100)
    done = stillroom("status", env=environment)
    assert done.returncode == 1
    assert "is damaged" in done.stderr
    assert "hint:" in done.stderr
