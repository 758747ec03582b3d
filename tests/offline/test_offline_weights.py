"""Weights that are missing or damaged: said, restored, and no session is the poorer for it."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from stillroom.offline import model
from stillroom.offline.model import COPY, WEIGHTS, DamagedWeights

PROJECT = Path(__file__).parents[2]
AGAIN = re.compile(r'"again": -?[\d.]+')
DAMAGES: dict[str, Callable[[str], str | None]] = {
    "missing": lambda text: None,
    "empty": lambda text: "",
    "truncated": lambda text: text[:3000],
    "another shape": lambda text: '{"user": 3, "assistant": []}',
    "one model": lambda text: text.replace('"assistant"', '"agent"'),
    "not a number": lambda text: AGAIN.sub('"again": NaN', text, count=1),
    "too large a number": lambda text: AGAIN.sub('"again": -2e999', text, count=1),
    "other bytes": lambda text: text.replace('"hashed": "', '"hashed": "x'),
}


def damaged(tmp_path: Path, kind: str) -> Path:
    path = tmp_path / "weights.json"
    if (text := DAMAGES[kind](WEIGHTS.read_text(encoding="utf-8"))) is not None:
        assert text != WEIGHTS.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("kind", DAMAGES)
def test_damaged_weights_are_named_and_restored(tmp_path: Path, kind: str) -> None:
    path = damaged(tmp_path, kind)
    with pytest.raises(DamagedWeights, match="the offline engine") as raised:
        model.load(path)
    assert raised.value.hint is not None and "doctor --fix" in raised.value.hint
    model.restore(path)
    assert path.read_bytes() == WEIGHTS.read_bytes()
    assert set(model.load(path)) == {"user", "assistant"}


def test_the_copy_is_equal() -> None:
    assert COPY.read_bytes() == WEIGHTS.read_bytes()


def test_a_damaged_copy_restores_nothing(tmp_path: Path) -> None:
    copy = damaged(tmp_path, "truncated")
    with pytest.raises(DamagedWeights):
        model.restore(tmp_path / "other.json", copy)
    assert not (tmp_path / "other.json").exists()


@pytest.mark.slow
def test_a_run_without_weights_costs_no_session_a_try_and_doctor_mends_it(tmp_path: Path) -> None:
    package = shutil.copytree(PROJECT / "src" / "stillroom", tmp_path / "src" / "stillroom")
    (package / "offline" / "weights.json").unlink()
    environment = {
        "HOME": str(tmp_path),
        "CODEX_HOME": str(PROJECT / "examples" / "codex-home"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(tmp_path / "src"),
    }

    def stillroom(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "stillroom", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    run = ("run", "--backfill", "--now", "2026-11-30T09:00:00Z")
    failed = stillroom(*run)
    assert failed.returncode == 2
    assert "cannot read the offline engine's weights" in failed.stderr and "doctor --fix" in failed.stderr
    with closing(sqlite3.connect(tmp_path / ".stillroom" / "state.sqlite3")) as db:
        assert db.execute("SELECT count(*) FROM jobs WHERE last_error IS NOT NULL").fetchall() == [(0,)]
    assert "cannot read the offline engine's weights" in stillroom("doctor").stdout
    assert "fixed: the weights are restored" in stillroom("doctor", "--fix").stdout
    assert stillroom(*run).returncode == 0
    assert (tmp_path / ".stillroom" / "memories" / "MEMORY.md").exists()
