"""`stillroom threads`, as a person meets it."""

from __future__ import annotations

import json
import os
import pty
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from stillroom.cli.app import run_command
from stillroom.testing import sample_rollout

#: 2026-06-01: long ago for any clock that runs these tests.
STARTED_MS = 1_780_313_600_000
OPENCODE = Path(__file__).parents[1] / "data" / "opencode" / "1.1.65-json"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in (("HOME", ""), ("CODEX_HOME", "codex"), ("CLAUDE_CONFIG_DIR", "claude")):
        monkeypatch.setenv(name, str(tmp_path / value))
    return tmp_path


def threads(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, list[dict[str, object]]]:
    assert run_command(["threads", "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)  # type: ignore[no-any-return]


def test_sessions_are_listed_with_where_they_ran_and_what_becomes_of_them(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["threads"]) == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "no session is known\n")

    sample_rollout(home / "codex", number=0, started_at_ms=STARTED_MS, messages=("Always use tabs.",))
    assert run_command(["threads"]) == 0
    told = capsys.readouterr()
    first, place, state = told.out.splitlines()
    assert first.startswith("01900000-0000-7000-8000-000000000000  codex 0.171.0  - messages  - tokens  ")
    assert first.endswith("  Always use tabs.")
    assert "  /home/dev/project" in place
    assert state == (
        "    excluded: not active for more than 10 days (`memories.max_rollout_age_days` or `stillroom run --backfill`)"
    )
    assert told.err == ""  # no bar where nobody looks

    (row,) = threads(capsys, "--count")["threads"]
    assert (row["rule"], row["eligible"], row["grown"]) == ("age", False, False)
    assert isinstance(row["messages"], int) and isinstance(row["tokens"], int)
    path = Path(str(row["path"]))
    path.write_bytes(path.read_bytes() + path.read_bytes().splitlines(keepends=True)[-1])
    assert threads(capsys)["threads"][0]["grown"] is True
    assert run_command(["threads"]) == 0
    assert f"  {row['messages']}+ messages  {row['tokens']:,}+ tokens  " in capsys.readouterr().out


def test_a_session_in_many_files_or_rows_has_no_size(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    shutil.copytree(OPENCODE / "storage", home / "opencode" / "storage")
    assert {row["size_bytes"] for row in threads(capsys)["threads"]} == {None}
    assert run_command(["threads", "--no-scan"]) == 0
    assert " - tokens  Fix sign bug in add" in capsys.readouterr().out
    assert run_command(["status"]) == 0
    assert "opencode      3 sessions: " in capsys.readouterr().out


def test_a_new_session_of_a_project_that_is_off_is_not_said_to_be_next(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["memories", "--off", "--cwd", str(home)]) == 0
    sample_rollout(home / "codex", number=0, started_at_ms=STARTED_MS, cwd=str(home / "deep"))
    capsys.readouterr()
    (row,) = threads(capsys)["threads"]
    assert (row["state"], row["rule"]) == ("excluded", "project")
    assert row["remedy"] == f"`stillroom memories --on --cwd {home / 'deep'}`"
    (home / ".stillroom" / "memories-off.json").write_text("{bad", encoding="utf-8")
    assert run_command(["threads"]) == 0
    assert "nobody knows what is switched off" in capsys.readouterr().err


def test_the_list_is_narrowed_by_agent_folder_and_number(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        sample_rollout(home / "codex", number=number, started_at_ms=STARTED_MS)
    sample_rollout(home / "codex", number=3, started_at_ms=STARTED_MS).write_text("no session\n", encoding="utf-8")
    everything = threads(capsys)
    assert len(everything["threads"]) == 3
    assert [file["reason"] for file in everything["broken"]]
    assert threads(capsys, "--no-scan")["broken"] == []
    assert len(threads(capsys, "--cwd", "/home/dev")["threads"]) == 3
    assert threads(capsys, "--cwd", "/home/dev/pro")["threads"] == []
    assert threads(capsys, "--agent", "claude-code")["threads"] == []
    assert run_command(["threads", "--agent", "claude-code", "--no-scan"]) == 0
    assert capsys.readouterr().err == "no such session is known; `stillroom threads` shows all\n"
    some = threads(capsys, "--limit", "1", "--no-scan")
    assert (len(some["threads"]), some["left_out"]) == (1, 2)
    assert run_command(["threads", "--limit", "1"]) == 0
    told = capsys.readouterr().err
    assert told.startswith("and 2 more; a larger `--limit` shows them\nnot readable: ")
    assert run_command(["threads", "--agent", "nobody"]) == 2
    assert "`--agent nobody` is not known" in capsys.readouterr().err


@pytest.mark.slow
def test_a_bar_is_drawn_on_a_terminal_only(home: Path) -> None:
    sample_rollout(home / "codex", number=0, started_at_ms=STARTED_MS)
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "stillroom", "threads"],
            env={**os.environ, "TERM": "xterm"},
            stdout=subprocess.PIPE,
            stderr=theirs,
            timeout=60,
            check=True,
        )
        os.close(theirs)
        assert b"Reading sessions" in os.read(ours, 65536)
        assert done.stdout.startswith(b"01900000-0000-7000-8000-000000000000  codex")
    finally:
        os.close(ours)


def test_what_is_only_known_is_shown_without_a_look_at_the_sources(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_rollout(home / "codex", number=0, started_at_ms=STARTED_MS)
    assert threads(capsys, "--no-scan")["threads"] == []
    (row,) = threads(capsys)["threads"]
    path.unlink()
    assert threads(capsys, "--no-scan")["threads"] == [row]
    (row,) = threads(capsys)["threads"]
    assert (row["state"], row["rule"], row["why"]) == ("excluded", "missing", "its file is gone")


def test_a_path_that_is_no_text_does_not_end_the_list(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_rollout(home / "codex", number=1, started_at_ms=STARTED_MS)
    (row,) = threads(capsys)["threads"]
    with closing(sqlite3.connect(home / ".stillroom" / "state.sqlite3")) as db:
        db.execute("UPDATE threads SET rollout_path = ?, cwd = ?", (b"/caf\xed\xb3\xa9", b"/caf\xed\xb3\xa9"))
        db.commit()
    (odd,) = threads(capsys, "--no-scan")["threads"]
    assert odd["cwd"] == "/caf\udce9"
    assert odd["thread_id"] == row["thread_id"]
    assert run_command(["threads", "--no-scan"]) == 0
    assert "  /caf\ufffd" in capsys.readouterr().out


def test_a_session_without_a_folder_is_explained_as_such(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample_rollout(home / "codex", number=0, started_at_ms=STARTED_MS, cwd="")
    assert run_command(["threads"]) == 0
    assert run_command(["explain", "01900000"]) == 0
    assert "it does not say in which folder it ran" in capsys.readouterr().out
