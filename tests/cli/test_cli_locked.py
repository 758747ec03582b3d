"""A client that writes into its database while a pass wants to read it."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stillroom.cli.app import run_command
from stillroom.clock import SystemClock
from stillroom.store import Store

DUMP = Path(__file__).parents[1] / "data" / "opencode" / "1.18.33-sqlite" / "opencode.sql"


def test_a_session_in_a_locked_database_waits_for_the_next_pass_and_loses_no_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr("stillroom.sessions.sqlite_source._TIMEOUT_SECONDS", 0.01)
    path = tmp_path / "opencode" / "opencode.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path, isolation_level=None)) as client:
        client.executescript(DUMP.read_text(encoding="utf-8"))
        client.execute("PRAGMA journal_mode = WAL")
        assert run_command(["threads"]) == 0

        client.execute("PRAGMA locking_mode = EXCLUSIVE")
        client.execute("UPDATE session SET slug = slug")
        locked = _run(capsys)
        assert locked["threads"]["unchanged"] == 5
        assert [(each["outcome"], each["reason"][-18:]) for each in locked["extract"]["outcomes"]] == [
            ("busy", "database is locked")
        ]
        assert (locked["extract"]["busy"], locked["extract"]["failed"]) == (1, 0)
        assert run_command(["run", "--backfill", "--now", "2026-12-01T12:00:00Z"]) == 0
        assert "1 left to the next pass: clients are writing there" in capsys.readouterr().err
    after = _run(capsys)["extract"]
    assert (after["claimed"], after["busy"], after["failed"]) == (1, 0, 0)


def test_who_asks_how_it_stands_is_told_within_seconds_that_the_database_is_locked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = ["--home", str(tmp_path)]
    Store.open(tmp_path / "state.sqlite3", clock=SystemClock()).close()
    with closing(sqlite3.connect(tmp_path / "state.sqlite3", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN IMMEDIATE")
        asked = time.monotonic()
        assert run_command(["status", *home]) == 1
        assert time.monotonic() - asked < 10
    assert "stays locked" in capsys.readouterr().err


def _run(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run_command(["run", "--backfill", "--json", "--now", "2026-12-01T12:00:00Z"]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]
