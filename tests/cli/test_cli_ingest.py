"""`stillroom ingest` and `stillroom export`, as a new user types them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stillroom import Recorder
from stillroom.cli.app import run_command

PROJECT = Path(__file__).parents[2]
SAMPLE = sorted((PROJECT / "examples" / "codex-home").rglob("rollout-*.jsonl"))[0]
ID = SAMPLE.stem[-36:]
Shown = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STILLROOM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_a_file_is_taken_in_once_and_a_pass_distils_it(home: Path, capsys: Shown) -> None:
    assert run_command(["ingest", str(SAMPLE), "--format", "codex"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{ID}  taken in: 16 records  The split_evenly test")
    assert "`stillroom run`" in shown.err
    assert run_command(["ingest", str(SAMPLE), "--format", "codex"]) == 0
    shown = capsys.readouterr()
    assert "nothing new" in shown.out and shown.err == ""
    assert run_command(["run", "--backfill", "--now", "2026-11-30T09:00:00Z", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["threads"]["found"] == 1 and report["extract"]["claimed"] == 1
    assert ID in (home / "memories" / "MEMORY.md").read_text(encoding="utf-8")


def test_what_came_in_and_what_was_left_out_is_told(tmp_path: Path, capsys: Shown) -> None:
    file = tmp_path / "copy.jsonl"
    script = SAMPLE.read_bytes().replace(b'"source":"vscode"', b'"source":"exec"')
    file.write_bytes(
        script + b'garbage\n{"timestamp":"2026-11-29T12:16:13.377Z","type":"from_tomorrow","payload":{}}\n'
    )
    assert run_command(["ingest", str(file), "--format", "codex", "--cwd", "/here"]) == 0
    shown = capsys.readouterr().out
    assert "left out: 1 line that can't be read" in shown and "1 × from_tomorrow" in shown
    assert "no person started it (`exec`)" in shown
    assert run_command(["ingest", str(file), "--format", "codex", "--cwd", "/here", "--json"]) == 0
    (thread,) = json.loads(capsys.readouterr().out)["threads"]
    assert (thread["outcome"], thread["cwd"], thread["left_out"]["bad_lines"]) == ("unchanged", "/here", 1)


def test_what_cannot_be_taken_in_says_why(tmp_path: Path, capsys: Shown) -> None:
    assert run_command(["ingest", str(tmp_path / "none"), "--format", "codex"]) == 1
    assert "is not there" in capsys.readouterr().err
    assert run_command(["ingest", str(SAMPLE), "--format", "nobodys"]) == 2
    assert "codex" in capsys.readouterr().err
    (tmp_path / "x").write_text("nothing\n")
    assert run_command(["ingest", str(tmp_path / "x"), "--format", "codex"]) == 1
    shown = capsys.readouterr()
    assert "can't be used" in shown.err and shown.out == ""


@pytest.mark.parametrize(
    ("format", "begins"), [("atif", '{"schema_version"'), ("codex", '{"timestamp"'), ("markdown", "#")]
)
def test_a_thread_is_written_to_a_file_or_to_standard_output(
    format: str, begins: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run_command(["ingest", str(SAMPLE), "--format", "codex"]) == 0
    capfdbinary.readouterr()
    output = tmp_path / "export"
    assert run_command(["export", ID[:8], "--format", format]) == 0
    shown = capfdbinary.readouterr()
    assert shown.out.startswith(begins.encode()) and shown.err == b""
    assert run_command(["export", ID[:8], "--format", format, "--output", str(output)]) == 0
    assert output.read_bytes() == shown.out and output.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".stillroom")] == []


def test_no_file_of_the_users_is_lost(home: Path, tmp_path: Path, capsys: Shown) -> None:
    with Recorder("bot", thread_id="gone", home=home) as recorder:
        recorder.user("hello")
    output = tmp_path / "notes.md"
    output.write_text("mine")
    words = ["export", "gone", "--format", "markdown", "--output", str(output)]
    assert run_command(words) == 1
    assert "`--overwrite` replaces it" in capsys.readouterr().err
    assert run_command([*words[:-1], str(tmp_path), "--overwrite"]) == 1
    assert "is no plain file" in capsys.readouterr().err
    assert run_command(["run", "--backfill"]) == 0
    recorder.path.unlink()
    assert run_command([*words, "--overwrite"]) == 1
    assert "can't be opened" in capsys.readouterr().err and output.read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"home", "notes.md"}


def test_a_thread_that_nobody_knows_is_an_error_with_a_remedy(capsys: Shown) -> None:
    assert run_command(["export", "nobody", "--format", "atif"]) == 1
    shown = capsys.readouterr()
    assert "no thread has an id that begins with `nobody`" in shown.err and "hint:" in shown.err


def test_whoever_reads_only_the_beginning_ends_it_quietly(home: Path) -> None:
    with Recorder("bot", thread_id="t", home=home) as recorder:
        for _ in range(200):
            recorder.user("many words " * 1000)
    source = str(PROJECT / "src")
    command = f"{sys.executable} -m stillroom export t --format codex --home {home} | head -c 100 | wc -c"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": source, "HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (141, "100", "")
